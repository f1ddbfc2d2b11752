package bench

import (
	"fmt"
	"path"
	"strings"
)

// Workflow IDs let operators tell requests and jobs, tags and test cases apart in the
// Temporal Web UI's list. They are made only here, from fields of a row that change only
// when a job is asked for again. Their last part alone identifies the row.

// RequestRef names a request and holds the parts of its workflow's ID.
type RequestRef struct {
	Project string
	ID      RequestID
	Type    RequestType
	Tag     string
	PR      int
	Command bool // it runs a command
	Batch   int  // number of commands in the batch; 0: not a batch
}

// Ref returns the request's reference.
func (r Request) Ref() RequestRef {
	return RequestRef{Project: r.Project, ID: r.ID, Type: r.Type, Tag: r.Tag, PR: r.PR, Command: r.Command != nil, Batch: r.Batch}
}

// WorkflowID returns request/<project>/<what>/<request ID>. What is the tag; for a try
// build, whose tag may be attached later, pr-<number> or "try"; else "command", "batch"
// or "adhoc".
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

// JobRef names a job among all projects and holds the parts of its workflow's ID.
type JobRef struct {
	Project string
	Key     JobKey
	Rerun   int // how often it was asked for again
	Kind    JobKind
	Tag     string
	Versus  string // tag that it measures in turns with Tag; empty: none
	Backend string
	Profile string
	// Profiler is the profiler of a profile job.
	Profiler string
	Name     string // the submitter's name for a command
	Program  string // program that a command runs
	// Benchmark is the benchmark of the first test case, TestCases the number of cases.
	Benchmark string
	TestCases int
	Chunk     int // number of the part of a divided job; 0: not a part
}

// Ref returns the job's reference.
func (j Job) Ref() JobRef {
	r := JobRef{
		Project: j.Project, Key: j.Key, Rerun: j.Rerun, Kind: j.Kind, Tag: j.Tag, Versus: j.Versus, Backend: j.Backend, Profile: j.Profile,
		Profiler: j.Profiler, Name: j.Name, TestCases: len(j.TestCases), Chunk: j.Chunk,
	}
	if j.Command != nil && len(j.Command.Argv) > 0 {
		r.Program = j.Command.Argv[0]
	}
	if len(j.TestCases) > 0 {
		r.Benchmark = j.TestCases[0].Benchmark
	}
	return r
}

// WorkflowID returns job/<project>/<what>/<work>/<job key>. What is the tag, or a
// command's name, else "command". Work is a command's program, "build", or the
// benchmark with profile, backend and profiler; several test cases are given by their number.
// A chunk has its number instead. A job that was asked for again has rerun-<number> after its work.
func (r JobRef) WorkflowID() string {
	what, work := r.labels()
	if r.Rerun > 0 {
		work += fmt.Sprintf(",rerun-%d", r.Rerun)
	}
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
	if r.Chunk > 0 { // whose test cases are decided later
		work = fmt.Sprintf("chunk-%d", r.Chunk)
	} else if r.TestCases != 1 {
		work = fmt.Sprintf("%d-test-cases", r.TestCases)
	}
	for _, part := range []string{r.Profile, r.Backend, r.Profiler} {
		if part != "" {
			work += "," + part
		}
	}
	return idPart(what, string(r.Kind)), idPart(work, string(r.Kind))
}

// maxIDPart bounds a part of a workflow's ID, in bytes. With a project's name of at
// most 64 bytes, the longest ID has less than 200.
const maxIDPart = 52

// idPart turns a text into a part of a workflow's ID, without slashes and anything that
// must be quoted in a shell or a URL. A text that is too long is cut and ends in "~".
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

// QueueWorkflowID returns queue/<project>.
func QueueWorkflowID(project string) string { return "queue/" + project }

// WatchWorkflowID returns commits/<project>, the ID of the Schedule that watches a
// project's commits. Each of its workflows has this ID followed by the time.
func WatchWorkflowID(project string) string { return "commits/" + project }

// WorkflowKind is the kind of a workflow, as its ID says.
type WorkflowKind string

// Kinds of workflows whose IDs name a row of the record.
const (
	RequestWorkflow WorkflowKind = "request"
	JobWorkflow     WorkflowKind = "job"
	QueueWorkflow   WorkflowKind = "queue"
)

// ParseWorkflowID splits the ID of a workflow into its kind, its project and, as name,
// the request's ID or the job's key; a queue has none. ours is false for any other ID.
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
