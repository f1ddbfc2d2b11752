package admission

import (
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Snapshot holds everything that [View] and [ExpectAdHoc] depend on, read at one moment.
type Snapshot struct {
	// Open lists the tracked requests of the project whose jobs are not done. Done holds those of the tags they wait
	// for that are done (value true).
	Open []bench.Request
	Done map[string]bool
	// Jobs lists open jobs of all projects, since they share collectors, in the order in which they are handed out.
	Jobs []OpenJob
	// LeftOut counts the open jobs beyond Jobs: only the first of very many are read.
	LeftOut int
	// Past lists the last jobs that ended with success, of the project and of others with open jobs.
	Past []PastJob
	// Examples lists the last requests of the project whose jobs were recorded, one for each type and selection,
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
	// CasesDigest is equal for jobs with the same test cases and number of iterations.
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
	// Waiters lists the requests that wait for its end.
	Waiters []bench.RequestID
}

// Example is a request whose jobs were recorded. Requests like it are expected to have the same jobs.
type Example struct {
	Request   bench.RequestID
	Type      bench.RequestType
	Tag       string
	Selection bench.Selection
	// Seconds is the time from its admission to the end of its last job; 0 before that.
	Seconds float64
	// Jobs lists the jobs that measure the request's own artifact and that it waits for.
	Jobs []JobShape
}
