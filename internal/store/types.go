package store

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/suite"
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

// Command is the command line of an ad-hoc job.
type Command struct {
	Argv []string `json:"argv"`
	// Env is added to the fixed environment.
	Env map[string]string `json:"env,omitempty"`
	// TimeoutSeconds bounds one iteration.
	TimeoutSeconds int `json:"timeout_seconds"`
	Iterations     int `json:"iterations"`
}

// Request is a row of benchmark_request.
type Request struct {
	ID         bench.RequestID
	Project    string
	Type       bench.RequestType
	Tag        string
	Parent     string
	PR         int
	CommitDate *time.Time
	bench.Standing
	// WaitsFor is the tag whose jobs must be done before the request may be
	// admitted: its parent's, or that of the nearest ancestor with a request.
	// Empty: it waits for nobody.
	WaitsFor string
	// ParentNote says why there is no parent to wait for or to compare with.
	ParentNote string
	Submitter  string
	Selection  suite.Selection
	// Versus is the tag that an ad-hoc request measures its artifact in turns with,
	// and compares it with; empty: with none.
	Versus string
	// SizeClass pins an ad-hoc request's jobs to a class; 0: the project's.
	SizeClass bench.SizeClass
	// Queue is the one that was named; empty: the default one.
	Queue  string
	Branch string
	// Constraints narrow where its jobs may run; nil: nothing does.
	Constraints *bench.Constraints
	// Deferred: its jobs were written with it, and its workflow starts with the
	// first that is handed out.
	Deferred bool
	Command  *Command
	// Batch is how many commands were submitted in one request; 0: it is none.
	Batch int
	// Digest is of all that a batch asks for; two with the same key are to agree in
	// it.
	Digest            string
	IdempotencyKey    string
	CreatedAt         time.Time
	WorkflowStartedAt *time.Time
	// ReopenedAt is when it was last opened again after its end.
	ReopenedAt *time.Time
	AdmittedAt *time.Time
	ExpandedAt *time.Time
	JobsDoneAt *time.Time
	Baseline   string
	Summary    json.RawMessage
	Message    string
	// Limited: the submitter may not have more waiting than its limit says. For
	// writing; what nobody submits is not refused.
	Limited bool `db:"-"`
}

// WaitsSince is when it began to wait: when it was made, or opened again.
func (r Request) WaitsSince() time.Time {
	if r.ReopenedAt != nil {
		return *r.ReopenedAt
	}
	return r.CreatedAt
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

// JobProgress counts a request's jobs.
type JobProgress struct {
	Total, Queued, HandedOut, InProgress, Success, Failure, Cancelled int
	TestCases, TestCasesDone                                          int
}

// Open tells how many jobs can still run.
func (p JobProgress) Open() int { return p.Queued + p.HandedOut + p.InProgress }

// Job is a row of job_queue.
type Job struct {
	ID             int64
	Project        string
	Key            bench.JobKey
	Tag            string
	Versus         string // tag that it measures in turns with Tag; empty: none
	Kind           bench.JobKind
	Target         bench.Target
	Backend        string
	Profile        string
	SuiteHash      string
	TestCases      []bench.TestCase
	Iterations     int
	Command        *Command
	Build          *bench.BuildSpec // of a build job
	SizeClass      bench.SizeClass
	Pool           string
	TaskQueue      string
	Generation     int
	Queue          string
	Weight         float64
	Priority       int
	Status         bench.JobStatus
	Message        string
	RequestCreated time.Time
	CreatedAt      time.Time
	HandedOutAt    *time.Time
	HandedOutTo    bench.RequestID
	StartedAt      *time.Time
	CompletedAt    *time.Time
	// MovedFrom is the task queue of the pool that it has left because nobody
	// there could take it, and MovedAt when; empty for one that has not moved.
	MovedFrom string
	MovedAt   *time.Time
	// Submitter is whose limits count for it.
	Submitter   string
	Branch      string
	Constraints *bench.Constraints // nil: none
	// Shape is what makes jobs alike whatever their artifact; empty: its size class
	// is fixed. SelectedAt is when its class was selected, at hand-out, and SelectedWhy
	// why, in a sentence.
	Shape       string
	SelectedAt  *time.Time
	SelectedWhy string
	// MinClass is the smallest size class that will do; 0: any.
	MinClass bench.SizeClass
	// Probe: it runs where it runs to learn from it.
	Probe bool
	// TimeoutSeconds bounds the whole job, by its size class; 0: nothing does.
	TimeoutSeconds float64
	// AffinityUntil is until when it waits for a collector that has its caches.
	AffinityUntil *time.Time
	// Place within its batch, from 1; 0: it belongs to none.
	Place int
	// Name as its submitter calls it; may be empty.
	Name string
	// Set is who takes it, where not all of its pool do, and AffinityFor how long it
	// waits so. Both are for writing: the record has them by its task queue and as
	// AffinityUntil.
	Set         []string      `db:"-"`
	AffinityFor time.Duration `db:"-"`
	// Done is how many of its test cases have an accepted result; of a job that
	// measures in turns, those of either side count.
	Done int
}

// SuiteShape is the shape of a job of a suite with the test cases that it has now.
func (j Job) SuiteShape() bench.Shape {
	parts := bench.SuiteShape(j.Kind, j.Target, j.TestCases, j.Iterations)
	if j.Versus != "" {
		parts = parts.InTurns()
	}
	return parts.Shape()
}

// HandOut is a job that was handed out: its workflow is to be started.
type HandOut struct {
	Request   bench.RequestID
	Project   string
	Job       bench.JobKey
	Tag       string
	Target    bench.Target
	TaskQueue string
	Queue     string
	Turn      int // numbers the queue's fairness keys in the task queue
	Weight    float64
	Priority  int
	SizeClass bench.SizeClass
	Summary   string // what the job is, in words
}

// At is where a job that is to be written waits.
func (j Job) At() bench.Place {
	return bench.Place{Pool: bench.Pool{Target: j.Target, SizeClass: j.SizeClass, Name: j.Pool}, Set: j.Set}
}

// PutAt says where a job that is to be written waits.
func (j *Job) PutAt(p bench.Place) {
	j.Target, j.SizeClass, j.Pool, j.Set, j.TaskQueue = p.Target, p.SizeClass, p.Name, p.Set, p.TaskQueue()
}

// PoolCount is a pool with its registered collectors.
type PoolCount struct {
	bench.Pool
	Live, Total int
	// Away is how long none of them could take a job; 0 while one can.
	Away time.Duration
	// HardwareIDs of its collectors; more than one means that they are not
	// interchangeable.
	HardwareIDs []string
}

// Run is a row of job_run.
type Run struct {
	ID         bench.RunID
	Project    string
	Job        bench.JobKey
	Number     int
	Reason     bench.RunReason
	SizeClass  bench.SizeClass
	Pool       string
	Collector  string
	Epoch      int64
	Version    string
	HardwareID string
	CoLocated  bool
	Facts      json.RawMessage
	Outcome    bench.RunOutcome
	Message    string
	OutputTail string
	Progress   json.RawMessage
	// LogSize is how many bytes of output there are, also those beyond the limit
	// up to which output is kept.
	LogSize    int64
	StartedAt  time.Time
	FinishedAt *time.Time
	// TimeoutSeconds bounded the whole run, by its size class; 0: nothing did.
	TimeoutSeconds float64
	Probe          bool
	// MeasuredSeconds is how long it measured, PeakMemory in bytes and CPUSeconds
	// are what it used; 0: not known.
	MeasuredSeconds float64
	PeakMemory      int64
	CPUSeconds      float64
}

// RunStart is what a collector says at the fence.
type RunStart struct {
	Run       bench.RunID
	Reason    bench.RunReason
	Collector string
	Epoch     int64
	// Lacks says what a collector lacks that a job needs; nil: nothing ever.
	Lacks func(placement.Collector, placement.Wish) []string
}

// RunPlan is the fence's answer: what is to be done in this run.
type RunPlan struct {
	Run    Run
	Job    Job
	Config json.RawMessage // the project's
	// Missing are the job's test cases without an accepted result on this
	// collector's size class and hardware. When it measures in turns, those of
	// which either side has none: they are measured anew on both.
	Missing []bench.TestCase
}

// TestCaseResult is what a run found for one test case.
type TestCaseResult struct {
	TestCase bench.TestCase
	// Tag says which of the two artifacts was measured, when the job measures in
	// turns; empty is the job's own.
	Tag string
	// Skipped is why it was left out; then it has no collections.
	Skipped     string
	Collections []Collection
}

// Collection is all statistics of one iteration.
type Collection struct {
	Iteration   int
	CollectedAt time.Time
	Values      map[bench.Metric]float64
	Facts       json.RawMessage
}

// RunError is what went wrong in a run.
type RunError struct {
	Run        bench.RunID
	TestCase   *bench.TestCase // nil: the job as a whole
	Kind       bench.FailureKind
	Message    string
	OutputTail string
	CreatedAt  time.Time
}

// BlockReceipt tells what became of an uploaded block.
//
// A block that is sent again gets the same receipt.
type BlockReceipt struct {
	Accepted   int // test cases whose accepted result is this run's
	Superseded int // test cases that had another one's already, or whose job has ended
}

// RunEnd closes a run.
type RunEnd struct {
	Outcome    bench.RunOutcome
	Message    string
	OutputTail string
	// Seconds is how long it measured, PeakMemory in bytes and CPUSeconds are what
	// it used; 0: not known.
	Seconds    float64
	PeakMemory int64
	CPUSeconds float64
}

// JobEnd is what a job's record says at its end.
type JobEnd struct {
	Status  bench.JobStatus
	Message string
	// TaskQueue is where it was last.
	TaskQueue string
	// Submitter is whose limits counted for it.
	Submitter string
	// Waiters are the open requests that wait for the job.
	Waiters []Waiter
}

// Waiter is a request that waits for a job.
type Waiter struct {
	Project string
	Request bench.RequestID
}

// Collector is a row of collector_config.
type Collector struct {
	Name          string
	Target        bench.Target
	SizeClass     bench.SizeClass
	Pool          string
	MachineID     string
	Epoch         int64
	Version       string
	HardwareID    string
	Facts         json.RawMessage
	Unenforced    json.RawMessage
	CoLocated     bool
	Labels        map[string]string
	BenchmarkSets []string
	// MachineType is hw, vm or dc.
	MachineType  string
	MachineGroup string
	Devices      []string
	// MemoryBytes and CPUs are what a job may use; 0: not known.
	MemoryBytes int64
	CPUs        int
	// CacheDirs are those that it last reported.
	CacheDirs []string
	// Host is the shared host that it is a slot of; empty: none.
	Host          string
	Active        bool
	RegisteredAt  time.Time
	LastHeartbeat time.Time
	CurrentRun    bench.RunID
	// WantedVersion is that of its pool; empty: any.
	WantedVersion string
}

// Outdated tells whether another version than the collector's is wanted.
func (c Collector) Outdated() bool { return c.WantedVersion != "" && c.WantedVersion != c.Version }

// State is what the collector is seen to do at now. One that has been silent
// for offlineAfter is offline; so is one whose last heartbeat is as far in the
// future, for then a clock was set back and nothing is known of it.
func (c Collector) State(now time.Time, offlineAfter time.Duration) bench.CollectorState {
	switch {
	case now.Sub(c.LastHeartbeat).Abs() > offlineAfter:
		return bench.CollectorOffline
	case !c.Active && c.CurrentRun != "":
		return bench.CollectorDraining
	case !c.Active:
		return bench.CollectorInactive
	case c.CurrentRun != "":
		return bench.CollectorBenchmarking
	}
	return bench.CollectorWaiting
}

// Samples are all values of one metric of one test case of one artifact, by
// iteration, measured in one surrounding.
type Samples struct {
	TestCase bench.TestCase
	Metric   bench.Metric
	Kind     bench.JobKind
	Surrounding
	Values []float64
	// InTurns: measured in turns with what it was asked for together with.
	InTurns bool
}

// Surrounding is what two results must share to be comparable.
type Surrounding struct {
	SizeClass  bench.SizeClass
	HardwareID string
	CoLocated  bool
}

// CollectionRow is one collection with its values, for exports.
type CollectionRow struct {
	Tag       string
	TestCase  bench.TestCase
	Kind      bench.JobKind
	Collector string
	Pool      string
	Surrounding
	Iteration   int
	CollectedAt time.Time
	Values      map[bench.Metric]float64
}

// Lacking is a test case of an artifact that has no result and will have none
// from the jobs so far.
type Lacking struct {
	TestCase bench.TestCase
	// Reason: it was left out, or it failed, and why.
	Reason string
}
