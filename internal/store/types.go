package store

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
)

// Errors that callers decide on.
var (
	// ErrNotFound: there is no such row.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the row exists already and differs.
	ErrConflict = errors.New("conflict")
	// ErrStale: it was decided from what has changed since; decide again.
	ErrStale = errors.New("the record has changed since it was read")
	// ErrJobClosed: the job has ended; nothing of it may start.
	ErrJobClosed = errors.New("the job has ended")
	// ErrNobodyWaits: no open request waits for the job.
	ErrNobodyWaits = errors.New("no open request waits for the job")
	// ErrFenced: a newer registration of the collector exists, or it is unknown.
	ErrFenced = errors.New("the collector was registered again since")
	// ErrRunClosed: the run has ended.
	ErrRunClosed = errors.New("the run has ended")
	// ErrNameTaken: another live machine has registered the collector's name.
	ErrNameTaken = errors.New("another live machine has this collector name")
	// ErrDraining: the collector is to take no further job.
	ErrDraining = errors.New("the collector is draining")
	// ErrOutdated: another version of the collector is wanted.
	ErrOutdated = errors.New("the collector is out of date")
	// ErrUnfit: the collector does not meet what the job is constrained to.
	ErrUnfit = errors.New("the collector cannot run the job as it is constrained")
)

// Project is what is tracked.
type Project struct {
	Name      string
	Config    json.RawMessage
	SuiteHash string // empty: none yet
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Principal is whom a token belongs to.
type Principal struct {
	Kind  string // user or collector
	Owner string
	Role  string // reader, writer, admin or collector
	// Collector is the only one that the token opens anything for; empty: any.
	Collector string
}

// RequestFilter narrows a list of requests; zero values do not narrow.
type RequestFilter struct {
	Project string
	Type    bench.RequestType
	Status  bench.RequestStatus
	Tag     string
	// Before continues a list: only requests created before this one's (time,
	// ID) are listed.
	BeforeTime *time.Time
	BeforeID   bench.RequestID
	Limit      int // 1 to 500
}

// RunStart is what a collector says at the fence.
type RunStart struct {
	Run       bench.RunID
	Reason    bench.RunReason
	Collector string
	Epoch     int64
	// Lacks says what a collector lacks that a job needs; nil: nothing ever.
	Lacks func(placement.Collector, placement.Requirements) []string
}

// RunPlan is the fence's answer: what is to be done in this run.
type RunPlan struct {
	Run    bench.Run
	Job    bench.Job
	Config json.RawMessage // the project's
	// Missing are the job's test cases without an accepted result on this
	// collector's size class and hardware. When it measures in turns, those of
	// which either side has none: they are measured anew on both.
	Missing []bench.TestCase
}
