package workflows

import (
	"strconv"
	"strings"

	"go.temporal.io/sdk/workflow"
)

// Revisions of the workflows' code. The name under which a worker completes tasks carries
// its revision, and histories keep that name. So each run of a workflow goes on like the
// worker that began it, whichever worker continues it, and without the events of
// [workflow.GetVersion].
const (
	// briefJobs is the first revision whose jobs skip what the server shows already, and
	// record their end within the workflow's task.
	briefJobs = 2
	// briefRequests is the first revision whose requests let the record answer within the
	// workflow's task when a person waits, and join updates of the search attributes.
	briefRequests = 3

	// Revision is the present one. Raise it with a change that depends on it.
	Revision = briefRequests
)

const revisionMark = ", workflows "

// Identity returns the name of a worker of a program in a version, for
// [worker.SetBinaryChecksum].
func Identity(version string) string {
	return "benchloom " + version + revisionMark + strconv.Itoa(Revision)
}

// revision returns the revision of the worker that carries out, or has carried out, the
// present task. Call it in a run's first task.
func revision(ctx workflow.Context) int {
	return revisionOf(workflow.GetInfo(ctx).GetCurrentBuildID())
}

// revisionOf reads a worker's name. Names without a revision are older than revisions. Only
// the SDK's test environment has no name.
func revisionOf(name string) int {
	if name == "" {
		return Revision
	}
	at := strings.LastIndex(name, revisionMark)
	if at < 0 {
		return 1
	}
	n, err := strconv.Atoi(name[at+len(revisionMark):])
	if err != nil {
		return 1
	}
	return n
}
