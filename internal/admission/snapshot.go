package admission

import (
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Snapshot holds all that [View] and [ExpectAdHoc] depend on, read at one moment.
type Snapshot struct {
	// Open lists the tracked requests of the project whose jobs are not done. Done holds the tags that they wait
	// for and that are (value true).
	Open []bench.Request
	Done map[string]bool
	// Jobs lists open jobs of all projects, since they share collectors, in the order in which they are handed out.
	Jobs []OpenJob
	// LeftOut counts the open jobs beyond Jobs: of very many only the first are read.
	LeftOut int
	// Past lists the last jobs that ended with success, of the project and of others with open jobs.
	Past []PastJob
	// Examples lists the last requests of the project that wrote their jobs, one for each type and selection, the
	// latest first.
	Examples []Example
	Pools    []bench.PoolCount
}

// JobShape describes a job apart from the artifact that it measures.
type JobShape struct {
	Project string
	Kind    bench.JobKind
	Target  bench.Target
	Backend string
	Profile string
	// CasesDigest is equal for jobs with the same test cases, iterated as often.
	CasesDigest string
	CaseCount   int
	SizeClass   bench.SizeClass
	Pool        string
	TaskQueue   string
}

// PastJob is a job that ended with success.
type PastJob struct {
	JobShape
	// Seconds is the time that collectors worked on it, in all its runs.
	Seconds     float64
	CompletedAt time.Time
}

// OpenJob is a job that has not ended.
type OpenJob struct {
	JobShape
	Status bench.JobStatus
	// Seconds is the time that collectors have worked on it so far.
	Seconds float64
	// Waiters lists the requests that do not end before it.
	Waiters []bench.RequestID
}

// Example is a request that has written its jobs: requests like it are expected to write the same.
type Example struct {
	Request   bench.RequestID
	Type      bench.RequestType
	Tag       string
	Selection bench.Selection
	// Seconds is the time from its admission to the end of its last job; 0 before that.
	Seconds float64
	// Jobs measure the request's own artifact and keep it from ending.
	Jobs []JobShape
}
