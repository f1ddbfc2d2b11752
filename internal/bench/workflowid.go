package bench

import (
	"fmt"
	"path"
	"strings"
)

// Workflow IDs, as an operator finds them in the Temporal Web UI: request and job, tag
// and test cases can be told apart in its list. They are made here and nowhere else, of
// what never changes in a row. Their last part alone identifies the row.

// RequestRef names a request and holds what the ID of its workflow is made of.
type RequestRef struct {
	Project string
	ID      RequestID
	Type    RequestType
	Tag     string
	PR      int
	Command bool // it runs a command
	Batch   int  // commands in the batch that it is; 0: it is none
}

// Ref names the request.
func (r Request) Ref() RequestRef {
	return RequestRef{Project: r.Project, ID: r.ID, Type: r.Type, Tag: r.Tag, PR: r.PR, Command: r.Command != nil, Batch: r.Batch}
}

// WorkflowID is request/<project>/<what>/<request ID>. What is the tag; of a try, whose
// tag may be attached later, pr-<number> or "try"; else "command", "batch" or "adhoc".
func (r RequestRef) WorkflowID() string {
	return "request/" + r.Project + "/" + r.what() + "/" + string(r.ID)
}

func (r RequestRef) what() string {
	switch {
	case r.Batch > 0:
		return "batch"
	case r.Command:
		return "command"
	case r.Type == Try && r.PR > 0:
		return fmt.Sprintf("pr-%d", r.PR)
	case r.Type == Try:
		return "try"
	}
	return idPart(r.Tag, "adhoc")
}

// JobRef names a job within all projects and holds what the ID of its workflow is made
// of.
type JobRef struct {
	Project string
	Key     JobKey
	Kind    JobKind
	Tag     string
	Versus  string // tag that it measures in turns with Tag; empty: none
	Backend string
	Profile string
	Name    string // of a command, as its submitter calls it
	Program string // that a command runs
	// Benchmark is that of the first test case, TestCases their number.
	Benchmark string
	TestCases int
}

// Ref names the job.
func (j Job) Ref() JobRef {
	r := JobRef{
		Project: j.Project, Key: j.Key, Kind: j.Kind, Tag: j.Tag, Versus: j.Versus, Backend: j.Backend, Profile: j.Profile,
		Name: j.Name, TestCases: len(j.TestCases),
	}
	if j.Command != nil && len(j.Command.Argv) > 0 {
		r.Program = j.Command.Argv[0]
	}
	if len(j.TestCases) > 0 {
		r.Benchmark = j.TestCases[0].Benchmark
	}
	return r
}

// WorkflowID is job/<project>/<what>/<work>/<job key>. What is the tag, or the name of
// a command, else "command". Work is a command's program; "build"; or the benchmark, of
// several test cases their number, with profile and backend.
func (r JobRef) WorkflowID() string {
	what, work := r.labels()
	return "job/" + r.Project + "/" + what + "/" + work + "/" + string(r.Key)
}

func (r JobRef) labels() (what, work string) {
	switch r.Kind {
	case KindCommand:
		return idPart(r.Name, "command"), idPart(path.Base(r.Program), "command")
	case KindBuild:
		return idPart(r.Tag, "build"), "build"
	}
	what, work = r.Tag, r.Benchmark
	if r.Versus != "" {
		what += "~" + r.Versus
	}
	if r.TestCases != 1 {
		work = fmt.Sprintf("%d-test-cases", r.TestCases)
	}
	for _, part := range []string{r.Profile, r.Backend} {
		if part != "" {
			work += "," + part
		}
	}
	return idPart(what, string(r.Kind)), idPart(work, string(r.Kind))
}

// maxIDPart bounds a part of a workflow's ID in bytes, so that the longest one has less
// than 200: a project's name has at most 64.
const maxIDPart = 52

// idPart makes a text part of a workflow's ID: no slash, and nothing that a shell or a
// URL would have to quote. One that is too long is cut and ends in "~".
func idPart(text, otherwise string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("._+=:,@~-", r):
			return r
		}
		return '-'
	}, text)
	if clean == "" || clean == "." {
		return otherwise
	}
	if len(clean) > maxIDPart {
		return clean[:maxIDPart-1] + "~"
	}
	return clean
}

// QueueWorkflowID is queue/<project>.
func QueueWorkflowID(project string) string { return "queue/" + project }

// WatchWorkflowID is commits/<project>: the Schedule that watches a project's
// commits, and, with the time behind it, each of its looks.
func WatchWorkflowID(project string) string { return "commits/" + project }

// WorkflowKind tells what the workflow with an ID is for.
type WorkflowKind string

// Kinds of workflows whose IDs name something of the record.
const (
	RequestWorkflow WorkflowKind = "request"
	JobWorkflow     WorkflowKind = "job"
	QueueWorkflow   WorkflowKind = "queue"
)

// ParseWorkflowID takes the ID of a workflow apart: its kind, its project, and
// the request's ID or the job's key, which a queue has not. Any other ID is not
// ours.
func ParseWorkflowID(id string) (kind WorkflowKind, project, name string, ours bool) {
	parts := strings.Split(id, "/")
	kind = WorkflowKind(parts[0])
	want := map[WorkflowKind]int{RequestWorkflow: 4, JobWorkflow: 5, QueueWorkflow: 2}[kind]
	if want == 0 || len(parts) != want {
		return "", "", "", false
	}
	for _, part := range parts {
		if part == "" {
			return "", "", "", false
		}
	}
	if kind != QueueWorkflow {
		name = parts[len(parts)-1]
	}
	return kind, parts[1], name, true
}
