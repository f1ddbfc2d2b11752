// Package apiclient is the contract of the HTTP API: the types under /api/v1 and a
// client for them.
//
// The API serves these types; collectors and the command line use the client. The
// package must not know how the server stores or starts anything.
package apiclient

import (
	"encoding/json"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/profiler"
)

// Project is a tracked project.
type Project struct {
	Name      string              `json:"name" doc:"Name, in workflow IDs and commands." example:"go"`
	Config    bench.ProjectConfig `json:"config"`
	SuiteHash string              `json:"suite_hash,omitempty" doc:"Content hash of the suite; upload it first."`
	Suite     string              `json:"suite,omitempty" readOnly:"true" doc:"Name of the suite."`
	// SourceState is absent where the configuration names no source.
	SourceState *SourceState `json:"source_state,omitempty" readOnly:"true" doc:"State of the looks at its commits."`
	CreatedAt   time.Time    `json:"created_at,omitzero" readOnly:"true"`
	UpdatedAt   time.Time    `json:"updated_at,omitzero" readOnly:"true"`
}

// Applied is the effect of applying a project; of a dry run, the effect it would have.
type Applied struct {
	Project Project  `json:"project"`
	Changed bool     `json:"changed"`
	DryRun  bool     `json:"dry_run"`
	Changes []string `json:"changes" doc:"What differs from before, in words."`
}

// Command is the command line of an ad-hoc job.
type Command struct {
	Argv           []string          `json:"argv" minItems:"1" maxItems:"1000" doc:"Program and arguments; no shell."`
	Env            map[string]string `json:"env,omitempty" doc:"Added to the fixed environment. Answers hide the values, except to the run of the job."`
	TimeoutSeconds int               `json:"timeout_seconds,omitempty" minimum:"0" maximum:"86400" doc:"Time limit of one iteration, at most the project's size.maximum_timeout; 0: its size.default_timeout, 30 minutes unless configured."`
	Iterations     int               `json:"iterations,omitempty" minimum:"0" maximum:"1000" doc:"Number of measurements; 0: one."`
}

// NewRequest asks for an artifact to be benchmarked.
type NewRequest struct {
	Project        string            `json:"project,omitempty" doc:"Name of the project; for a command the default is adhoc." example:"go"`
	Type           bench.RequestType `json:"type,omitempty" enum:"release,master,try,adhoc" doc:"Default: adhoc for a command, else release."`
	Tag            string            `json:"tag,omitempty" doc:"The artifact: a version or SHA. Not needed for a command; a try build may get it later." example:"1.26.0"`
	Parent         string            `json:"parent,omitempty" doc:"For master and try: tag of the commit that it was built from; default: from the commit source."`
	PR             int               `json:"pr,omitempty" minimum:"0" maximum:"2147483647" doc:"For master and try: number of the pull request."`
	ArtifactsReady bool              `json:"artifacts_ready,omitempty" doc:"For try: its artifacts exist already; otherwise it waits for a notification."`
	CommitDate     *time.Time        `json:"commit_date,omitempty" doc:"Date of the release or commit; determines the order of releases."`
	Selection      bench.Selection   `json:"selection,omitzero" doc:"Part of the suite to measure; empty: all defaults."`
	Versus         string            `json:"versus,omitempty" doc:"For adhoc, with a tag: the baseline, an artifact that is measured in turns with it, iteration by iteration, and compared with it." example:"1.25.0"`
	Profiler       string            `json:"profiler,omitempty" maxLength:"64" doc:"For adhoc, with a tag and a selection of one test case: run that once under this profiler of the suite instead of measuring it, and with versus, also the other artifact." example:"pprof-cpu"`
	Command        *Command          `json:"command,omitempty" doc:"For adhoc: a command line instead of the suite."`
	Jobs           []NewJob          `json:"jobs,omitempty" minItems:"1" maxItems:"100000" doc:"For adhoc: many command lines, each a job of this request; all are accepted or none. A job inherits from the request what it leaves out."`
	Profiling      bench.Profiling   `json:"profiling,omitzero" doc:"What is recorded beside its runs; what is left out is as in its project."`
	Branch         string            `json:"branch,omitempty" maxLength:"255" doc:"Branch that it belongs to, for account limits by branch."`
	IdempotencyKey string            `json:"idempotency_key,omitempty" maxLength:"128" doc:"The same key by the same user gives the same request."`
	Reason         string            `json:"reason,omitempty" maxLength:"500" doc:"Reason, recorded in the audit."`
	PlacementWish
}

// PlacementWish selects where and how to run the command of a request, or one job of a batch.
// The jobs of a batch inherit the request's settings.
type PlacementWish struct {
	Target    bench.Target    `json:"target,omitempty" doc:"For a command: its target; default: the project's first target or the only registered one."`
	SizeClass bench.SizeClass `json:"size_class,omitempty" minimum:"0" maximum:"4096" doc:"For adhoc: the size class; 0: the project's or the learned one."`
	Queue     string          `json:"queue,omitempty" maxLength:"64" doc:"Queue of its jobs; default: the submitter's own; for releases and commits, their project's." example:"single-build"`
	// Shape groups commands that share learned sizes.
	Shape string `json:"shape,omitempty" maxLength:"100" doc:"For a command: commands of the same shape share learned sizes; default: those with the same command line, environment and iterations." example:"nightly-index"`
	// Constraints apply in addition to those of the project.
	Constraints bench.ConstraintSpec `json:"constraints,omitzero" doc:"For adhoc: where it may run."`
}

// Request is a request to benchmark one artifact or run commands, with its state.
type Request struct {
	ID         bench.RequestID     `json:"id"`
	Project    string              `json:"project"`
	Type       bench.RequestType   `json:"type"`
	Tag        string              `json:"tag,omitempty"`
	Parent     string              `json:"parent,omitempty" doc:"Tag of the commit that it was built from."`
	PR         int                 `json:"pr,omitempty" doc:"Number of the pull request."`
	WaitsFor   string              `json:"waits_for,omitempty" doc:"Tag whose jobs must be done before this request may be admitted."`
	ParentNote string              `json:"parent_note,omitempty" doc:"Why there is no parent to wait for or to compare with."`
	Status     bench.RequestStatus `json:"status"`
	Outcome    bench.Outcome       `json:"outcome,omitempty"`
	Submitter  string              `json:"submitter"`
	Queue      string              `json:"queue,omitempty" doc:"Named queue; absent: the default one."`
	Branch     string              `json:"branch,omitempty"`
	Selection  bench.Selection     `json:"selection,omitzero"`
	Versus     string              `json:"versus,omitempty" doc:"Tag of the artifact that it is measured in turns with, or that is profiled, too."`
	Profiler   string              `json:"profiler,omitempty" doc:"Its test case is run under this profiler, not measured."`
	Command    *Command            `json:"command,omitempty"`
	Batch      int                 `json:"batch,omitempty" doc:"Number of commands submitted in it."`
	Template   *TemplateCall       `json:"template,omitempty" doc:"The graph template that it runs."`
	CommitDate *time.Time          `json:"commit_date,omitempty"`
	CreatedAt  time.Time           `json:"created_at"`
	AdmittedAt *time.Time          `json:"admitted_at,omitempty"`
	JobsDoneAt *time.Time          `json:"jobs_done_at,omitempty"`
	EndedAt    *time.Time          `json:"completed_at,omitempty"`
	Baseline   string              `json:"baseline,omitempty" doc:"Tag that it was compared with."`
	Verdicts   string              `json:"verdicts,omitempty" doc:"What the comparison with the baseline found, in a sentence."`
	Message    string              `json:"message,omitempty" doc:"What it waits for, or why it ended as it did."`
	WorkflowID string              `json:"workflow_id" doc:"In the Temporal Web UI."`
	Created    bool                `json:"created,omitempty" doc:"False in the answer to a repeated submission."`

	// Constraints are the request's own; those of its project apply as well.
	Constraints bench.ConstraintSpec `json:"constraints,omitzero"`
	Profiling   bench.Profiling      `json:"profiling,omitzero" doc:"What it asks to record beside its runs."`
	Warnings    []string             `json:"warnings,omitempty" doc:"In the answer to a submission: why it may have to wait."`
}

// ArtifactsReady reports that a request's artifacts are ready.
type ArtifactsReady struct {
	Tag    string `json:"tag" minLength:"1" doc:"The artifact: a version or SHA."`
	Parent string `json:"parent,omitempty" doc:"Tag of the commit that it was built from; default: from the commit source."`
}

// Notified is the effect of a notification.
type Notified struct {
	Request   Request `json:"request"`
	Duplicate bool    `json:"duplicate" doc:"The same was reported before; nothing changed."`
	Late      bool    `json:"late" doc:"The request had ended; nothing was started."`
}

// Admission is one request's admission, with the state that decided it.
type Admission struct {
	Request bench.RequestID `json:"request"`
	Policy  string          `json:"policy"`
	At      time.Time       `json:"at"`
	State   json.RawMessage `json:"state" doc:"The queue at that moment, as 'benchloom queue simulate' reads it."`
}

// AdmissionList is a list of admissions, the oldest first.
type AdmissionList struct {
	Admissions []Admission `json:"admissions"`
}

// RequestDetail is a request with everything below it.
type RequestDetail struct {
	Request
	Estimate
	Progress  Progress        `json:"progress"`
	Steps     []Step          `json:"steps" doc:"Its course: what is over, what it is at, and what may follow."`
	Jobs      []Job           `json:"jobs" doc:"At most 100: running ones, failed ones, then the latest. For all, see /requests/{request}/jobs."`
	JobsTotal int             `json:"jobs_total" doc:"Number of its jobs, including replaced ones."`
	Graphs    int             `json:"graphs,omitempty" doc:"Number of its graphs; see /graphs/{request}."`
	Runs      []Run           `json:"runs" doc:"Of these jobs."`
	Errors    []RunError      `json:"errors" doc:"At most 100: errors that keep these jobs from completing."`
	Summary   json.RawMessage `json:"summary,omitempty" doc:"Comparison with the baseline."`
	// Verification is nil if nothing was compared with the baseline yet.
	Verification *Verification `json:"verification,omitempty"`
}

// Verification describes how suspects of a request are measured in turns with its
// baseline.
type Verification struct {
	Baseline string `json:"baseline"`
	// Provisional is set until each suspect has its verdict.
	Provisional bool `json:"provisional"`
	Looks       int  `json:"looks" doc:"Number of times at which suspects were measured in turns."`
	// Machine time: of the request's own jobs, of the looks, and what these may take.
	OwnSeconds    float64 `json:"own_seconds"`
	SpentSeconds  float64 `json:"spent_seconds"`
	BudgetSeconds float64 `json:"budget_seconds"`
}

// Progress counts a request's jobs and test cases.
type Progress struct {
	Jobs          int `json:"jobs"`
	JobsDone      int `json:"jobs_done"`
	JobsRunning   int `json:"jobs_running"`
	JobsFailed    int `json:"jobs_failed"`
	TestCases     int `json:"test_cases"`
	TestCasesDone int `json:"test_cases_done"`
	// EstimateSeconds is the remaining time at the pace so far.
	EstimateSeconds *float64 `json:"estimate_seconds,omitempty"`
}

// Job is one work item.
type Job struct {
	Key        bench.JobKey     `json:"key"`
	Name       string           `json:"name,omitempty" doc:"Name given by its submitter."`
	Place      int              `json:"place,omitempty" doc:"Position in its batch, from 1."`
	Command    []string         `json:"command,omitempty" doc:"Program and arguments, of a command."`
	Project    string           `json:"project"`
	Tag        string           `json:"tag,omitempty"`
	Versus     string           `json:"versus,omitempty" doc:"Tag of the artifact that is measured in turns with it; its results count as well."`
	Profiler   string           `json:"profiler,omitempty" doc:"Runs its test case under this profiler."`
	Kind       bench.JobKind    `json:"kind"`
	Target     bench.Target     `json:"target"`
	Backend    string           `json:"backend,omitempty"`
	Profile    string           `json:"profile,omitempty"`
	TestCases  []bench.TestCase `json:"test_cases"`
	Done       int              `json:"done" doc:"Test cases with a stored result; of a job that measures in turns, those of either side."`
	SizeClass  bench.SizeClass  `json:"size_class"`
	SizeReason string           `json:"size_reason,omitempty" doc:"Why it has its size class; absent: it is fixed, or not chosen yet."`
	Pool       string           `json:"pool"`
	TaskQueue  string           `json:"task_queue"`
	Queue      string           `json:"queue" doc:"Queue in which it waits."`
	Generation int              `json:"generation,omitempty" doc:"Above 0: it replaced an earlier job."`
	Status     bench.JobStatus  `json:"status"`
	Message    string           `json:"message,omitempty"`
	Waits      string           `json:"waits,omitempty" doc:"What the job waits for, in words; absent while it runs."`
	MovedFrom  string           `json:"moved_from,omitempty" doc:"Task queue that it left because no collector there was live, or because others meet its constraints now."`
	MovedAt    *time.Time       `json:"moved_at,omitempty"`
	CreatedAt  time.Time        `json:"created_at"`
	StartedAt  *time.Time       `json:"started_at,omitempty"`
	EndedAt    *time.Time       `json:"completed_at,omitempty"`
	WorkflowID string           `json:"workflow_id"`

	ExpectedSeconds float64 `json:"expected_seconds,omitempty" doc:"Median duration of the project's last jobs like it that succeeded, apart from those in the same answer; absent: there are none."`
	// Constraints narrow the collectors that can run it.
	Constraints bench.ConstraintSpec `json:"constraints,omitzero"`
	Canary      bool                 `json:"canary,omitempty" doc:"It measures its artifact in turns with itself, to see what its collector tells then; versus only names the second side."`
}

// Results returns the number of results the job yields: one per test case and
// artifact.
func (j Job) Results() int {
	if j.Versus != "" {
		return 2 * len(j.TestCases)
	}
	return len(j.TestCases)
}

// JobDetail is a job with its runs.
type JobDetail struct {
	Job
	Runs []Run `json:"runs"`
}

// JobList is one page of a request's jobs, in order of creation.
type JobList struct {
	Jobs []Job `json:"jobs"`
	// Next continues the list; empty on the last page.
	Next string `json:"next,omitempty" doc:"Value of after for the next page; absent on the last one."`
}

// Run is one attempt at a job.
type Run struct {
	ID         bench.RunID      `json:"id"`
	Job        bench.JobKey     `json:"job"`
	Number     int              `json:"number"`
	Reason     bench.RunReason  `json:"reason" doc:"scheduled; retry and escalation, which are automatic and count as attempts; rerun, which a person asked for."`
	AskedBy    string           `json:"asked_by,omitempty" doc:"Who asked for a rerun."`
	Collector  string           `json:"collector"`
	Pool       string           `json:"pool"`
	SizeClass  bench.SizeClass  `json:"size_class"`
	CoLocated  bool             `json:"co_located"`
	Outcome    bench.RunOutcome `json:"outcome"`
	Message    string           `json:"message,omitempty"`
	OutputTail string           `json:"output_tail,omitempty"`
	Progress   RunProgress      `json:"progress,omitzero"`
	StartedAt  time.Time        `json:"started_at"`
	FinishedAt *time.Time       `json:"finished_at,omitempty"`
	// TimeoutSeconds bounds the run's measurements, by its size class.
	TimeoutSeconds float64 `json:"timeout_seconds,omitempty" doc:"Time limit of the whole run, by its size class; absent: none."`
	Probe          bool    `json:"probe,omitempty" doc:"Learning probe; its results enter no comparison."`
	Seconds        float64 `json:"seconds,omitempty" doc:"Duration of measuring; absent: not known."`
	PeakMemory     int64   `json:"peak_memory,omitempty" doc:"Largest resident set of any process, in bytes; absent: not known."`
	CPUSeconds     float64 `json:"cpu_seconds,omitempty" doc:"CPU time of all its processes; absent: not known."`
}

// RunProgress is the present step of a run.
type RunProgress struct {
	Phase      string `json:"phase,omitempty" doc:"fetching, building, preparing, measuring, uploading, recording or completing."`
	TestCase   string `json:"test_case,omitempty"`
	Iteration  int    `json:"iteration,omitempty"`
	Iterations int    `json:"iterations,omitempty"`
	Done       int    `json:"done" doc:"Test cases finished in this run."`
	Total      int    `json:"total"`
}

// RunError is an error of a run.
type RunError struct {
	Run        bench.RunID       `json:"run"`
	TestCase   *bench.TestCase   `json:"test_case,omitempty" doc:"Absent: the job as a whole."`
	Kind       bench.FailureKind `json:"kind"`
	Message    string            `json:"message"`
	OutputTail string            `json:"output_tail,omitempty"`
	CreatedAt  time.Time         `json:"created_at,omitzero"`
}

// RunStart asks at the fence whether a run may begin.
type RunStart struct {
	Reason    bench.RunReason `json:"reason" enum:"scheduled,retry,escalation,rerun"`
	Collector string          `json:"collector"`
	Epoch     int64           `json:"epoch"`
	Dispatch  bench.Dispatch  `json:"dispatch,omitempty" maxLength:"64" doc:"Secret that the job's task carries."`
	TaskQueue string          `json:"task_queue,omitempty" maxLength:"1000" doc:"Task queue from which the task came."`
	// Facts of its machine now; they replace the registered ones.
	Facts json.RawMessage `json:"facts,omitempty" doc:"Facts of its machine now; absent: as registered."`
}

// RunPlan is the work of a run.
type RunPlan struct {
	Run     Run    `json:"run"`
	Job     Job    `json:"job"`
	Project string `json:"project"`
	// Missing lists the test cases that lack a result, of either artifact if the job
	// measures in turns. If empty, there is nothing to do.
	Missing    []bench.TestCase `json:"missing"`
	Iterations int              `json:"iterations" doc:"Replaces the suite's number; 0: it does not."`
	// TimeoutSeconds bounds the run once everything is fetched.
	TimeoutSeconds float64  `json:"timeout_seconds,omitempty" doc:"Time limit of the whole run, by its size class; absent: none."`
	SuiteHash      string   `json:"suite_hash,omitempty"`
	Command        *Command `json:"command,omitempty"`
	// Script says what else the job of the command does.
	Script *bench.Script `json:"script,omitempty" doc:"What runs before the command, in which trees, and what its end means; absent: nothing, and exit code 0 is success."`
	// Artifacts are the project's overrides of the suite's artifact provider.
	Artifacts bench.ArtifactSource `json:"artifacts,omitzero"`
	// Norms tell what the test cases usually do to the machine.
	Norms []SeriesNorms `json:"norms,omitempty" doc:"What the machine usually does while a test case is measured, to judge disturbances by."`
	// Profiling says how the run is recorded; absent: not at all.
	Profiling *profiler.Settings `json:"profiling,omitempty" doc:"How the machine and the job are recorded while it runs; absent: they are not."`
	// Build is the order of a build job.
	Build *BuildOrder `json:"build,omitempty"`
	// BuiltAs is the build of the artifact; empty if it is not built.
	BuiltAs bench.BuildKey `json:"built_as,omitempty"`
	// VersusBuiltAs is the same for the artifact measured in turns with it.
	VersusBuiltAs bench.BuildKey `json:"versus_built_as,omitempty"`
}

// SeriesNorms holds medians of earlier iterations of a test case. Shares are of 1.
type SeriesNorms struct {
	TestCase bench.TestCase `json:"test_case"`
	machine.Norms
}

// Block is a finished block: all collections of its test cases.
type Block struct {
	Results []TestCaseResult `json:"results"`
	Errors  []BlockError     `json:"errors,omitempty"`
}

// TestCaseResult is a run's result for one test case.
type TestCaseResult struct {
	TestCase    bench.TestCase `json:"test_case"`
	Tag         string         `json:"tag,omitempty" doc:"Measured artifact, if the job measures in turns; absent: the job's own."`
	Skipped     string         `json:"skipped,omitempty" doc:"Reason for leaving it out."`
	Collections []Collection   `json:"collections,omitempty"`
}

// Collection is all statistics of one iteration.
type Collection struct {
	Iteration   int                      `json:"iteration" minimum:"1"`
	CollectedAt time.Time                `json:"collected_at"`
	Values      map[bench.Metric]float64 `json:"values"`
	Disturbed   string                   `json:"disturbed,omitempty" maxLength:"1000" doc:"Why the iteration is disturbed, as cause: size; absent: it is not."`
	Facts       json.RawMessage          `json:"facts,omitempty"`
}

// BlockError is the failure of a test case or, without one, of the job.
type BlockError struct {
	TestCase   *bench.TestCase   `json:"test_case,omitempty"`
	Kind       bench.FailureKind `json:"kind"`
	Message    string            `json:"message"`
	OutputTail string            `json:"output_tail,omitempty"`
}

// BlockReceipt acknowledges a block: it may be deleted from the spool.
type BlockReceipt struct {
	Accepted   int `json:"accepted"`
	Superseded int `json:"superseded"`
}

// RunFinish closes a run.
type RunFinish struct {
	Outcome bench.RunOutcome `json:"outcome" enum:"success,failure,too_small,timeout,oom,permanent,cancelled,lost"`
	// Seconds is the duration of measuring, without fetching.
	Seconds float64 `json:"seconds,omitempty" minimum:"0" doc:"Duration of measuring; 0: not known."`
	// PeakMemory is the largest resident set of any process.
	PeakMemory int64   `json:"peak_memory,omitempty" minimum:"0" doc:"Bytes; 0: not known."`
	CPUSeconds float64 `json:"cpu_seconds,omitempty" minimum:"0" doc:"CPU time of all its processes; 0: not known."`
	Message    string  `json:"message,omitempty"`
	OutputTail string  `json:"output_tail,omitempty"`
	// Rest holds the parts that were not handed in before.
	Rest *RunRest `json:"rest,omitempty" doc:"What was not uploaded before; absent: nothing."`
}

// RunRest holds the parts that a short run hands in with its end, instead of uploading each.
type RunRest struct {
	Block   *Block           `json:"block,omitempty" doc:"Last block, as by upload-block. If it is refused, the run is not closed."`
	Output  *OutputPiece     `json:"output,omitempty" doc:"Last piece of output, as by append-run-log."`
	Profile *profiler.Upload `json:"profile,omitempty" doc:"Last samples, as by upload-profile. If they are refused, the run is closed without them."`
}

// OutputPiece is a piece of a run's output.
type OutputPiece struct {
	Offset int64  `json:"offset" minimum:"0" doc:"Offset of this piece in bytes."`
	Data   []byte `json:"data"`
}

// Info describes the API.
type Info struct {
	Version    string `json:"version"`
	TemporalUI string `json:"temporal_ui,omitempty" doc:"Address of the Temporal Web UI."`
	Temporal   string `json:"temporal,omitempty" doc:"Address at which collectors on other machines reach Temporal."`
	Namespace  string `json:"namespace"`
	Principal  string `json:"principal,omitempty" doc:"Owner of the token used."`
	Role       string `json:"role,omitempty"`
	Project    string `json:"project,omitempty" doc:"The only project that the token may change; absent: any."`
	Collector  string `json:"collector,omitempty" doc:"Collector whose own token was used."`
	// TaskQueues are those that this collector, or the slots of this shared host, may poll.
	TaskQueues  []string `json:"task_queues,omitempty" doc:"Task queues that the collector may poll at present."`
	MaxBodySize int64    `json:"max_body_size"`
}

// AdHocProject is the project of ad-hoc commands. It always exists.
const AdHocProject = "adhoc"

// ProjectList is all projects, by name.
type ProjectList struct {
	Projects []Project `json:"projects"`
}

// SuiteInfo is a stored suite.
type SuiteInfo struct {
	Hash        string   `json:"hash"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Benchmarks  []string `json:"benchmarks"`
	Sets        []string `json:"sets"`
}

// RequestList is a page of requests, newest first.
type RequestList struct {
	Requests []Request `json:"requests"`
	// Next is the cursor of the next page; empty on the last one.
	Next string `json:"next,omitempty"`
}

// CollectorList is all collectors, by name.
type CollectorList struct {
	Collectors []Collector `json:"collectors"`
}

// LogReceipt acknowledges a piece of a run's output.
type LogReceipt struct {
	// NextOffset counts the bytes of output the API has; the next piece begins there.
	NextOffset int64 `json:"next_offset"`
}

// ExportedCollection is one collection in a JSON export.
type ExportedCollection struct {
	Tag         string                   `json:"tag"`
	Kind        bench.JobKind            `json:"kind"`
	TestCase    bench.TestCase           `json:"test_case"`
	Collector   string                   `json:"collector"`
	Pool        string                   `json:"pool"`
	SizeClass   bench.SizeClass          `json:"size_class"`
	HardwareID  string                   `json:"hardware_id"`
	CoLocated   bool                     `json:"co_located"`
	Iteration   int                      `json:"iteration"`
	CollectedAt time.Time                `json:"collected_at"`
	Values      map[bench.Metric]float64 `json:"values"`
	Segment     bench.Segment            `json:"segment,omitempty" doc:"Kernel, governor, microcode, boot options, turbo and SMT of the machine, and isolation of benchmarks; an empty part is not known."`
	Disturbed   string                   `json:"disturbed,omitempty" doc:"Why the iteration is disturbed; absent: it is not."`
	InTurns     string                   `json:"in_turns,omitempty" doc:"Tags of the two artifacts that were measured in turns, the baseline first, separated by a space."`
}

// Names of response headers.
const (
	// HeaderNextOffset carries the offset of the next piece of a log.
	HeaderNextOffset = "X-Next-Offset"
	// HeaderComplete is true at the end of a finished log.
	HeaderComplete = "X-Complete"
	// HeaderRun is the run whose log was read.
	HeaderRun = "X-Run"
	// HeaderRequestID names an HTTP exchange in the API's log.
	HeaderRequestID = "X-Request-Id"
	// HeaderAPI is part of every answer of the API; an answer without it came from
	// something else.
	HeaderAPI = "Benchloom-Api"
)

// ProblemPrefix begins the type of every problem that the API answers.
const ProblemPrefix = "urn:benchloom:"

// Types of problems that need more than a status.
const (
	ProblemJobClosed   = "urn:benchloom:job-closed"
	ProblemNobodyWaits = "urn:benchloom:nobody-waits"
	ProblemRateLimited = "urn:benchloom:rate-limited"
	ProblemFenced      = "urn:benchloom:fenced"
	ProblemNameTaken   = "urn:benchloom:name-taken"
	ProblemRunClosed   = "urn:benchloom:run-closed"
	ProblemDraining    = "urn:benchloom:draining"
	ProblemOutdated    = "urn:benchloom:outdated"
	ProblemUnfit       = "urn:benchloom:unfit"
	// ProblemForeignHost: the API does not answer for the host that the request names.
	ProblemForeignHost = "urn:benchloom:foreign-host"
	// ProblemForeignOrigin: a page of another origin has made the request.
	ProblemForeignOrigin = "urn:benchloom:foreign-origin"
	// ProblemNotYours: the token is that of another collector.
	ProblemNotYours   = "urn:benchloom:not-yours"
	ProblemNewMachine = "urn:benchloom:new-machine"
	ProblemElsewhere  = "urn:benchloom:elsewhere"
	ProblemUnderWay   = "urn:benchloom:under-way"
	ProblemStale      = "urn:benchloom:stale-dispatch"
	// ProblemUnknownSuite: a project names a suite that was not uploaded.
	ProblemUnknownSuite = "urn:benchloom:unknown-suite"
)
