package api

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/benchloom/benchloom/internal/admission"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/intake"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/results"
	"github.com/benchloom/benchloom/internal/store"
)

// Store is what the API needs of the record; a *store.Store is one.
type Store interface {
	Ping(ctx context.Context) error
	Projects
	Tokens
	Requests
	Jobs
	Runs
	Builds
	Collectors
	Commits
	Enrolments
	Operations
	Queues
	Shares
	results.Record
	MeasuredTags(ctx context.Context, project string, requestType bench.RequestType) ([]string, error)
	ExportCollections(ctx context.Context, project string, tags []string, yield func(bench.CollectionRow) error) error
}

// Projects is where projects and suites are recorded.
type Projects interface {
	ApplyProject(ctx context.Context, p store.Project) (changed bool, err error)
	Project(ctx context.Context, name string) (store.Project, error)
	Projects(ctx context.Context) ([]store.Project, error)
	PutSuite(ctx context.Context, hash, name string, archive []byte) error
	SuiteArchive(ctx context.Context, hash string) (name string, archive []byte, err error)
}

// Tokens is where tokens are recorded, by the SHA-256 of their secrets.
type Tokens interface {
	PutToken(ctx context.Context, secretHash []byte, p store.Principal) error
	PrincipalOf(ctx context.Context, secretHash []byte) (store.Principal, error)
}

// Requests is where requests are recorded.
type Requests interface {
	intake.Record
	RequestLike(ctx context.Context, r bench.Request) (bench.Request, error)
	OpenTaskQueues(ctx context.Context, id bench.RequestID, stage bench.Stage) ([]string, error)
	CreateCommands(ctx context.Context, r bench.Request, jobs iter.Seq2[bench.Job, error]) (stored bench.Request, created bool, err error)
	CancelRequest(ctx context.Context, id bench.RequestID, who, why string) ([]bench.JobRef, error)
	Request(ctx context.Context, id bench.RequestID) (bench.Request, error)
	RequestByTag(ctx context.Context, project, tag string) (bench.Request, error)
	Requests(ctx context.Context, filter store.RequestFilter) ([]bench.Request, error)
	ShownJobs(ctx context.Context, id bench.RequestID, limit int) (jobs []bench.Job, total int, err error)
	RequestJobPage(ctx context.Context, id bench.RequestID, page store.JobPage) ([]bench.Job, error)
	FirstStart(ctx context.Context, id bench.RequestID) (*time.Time, error)
	RunsOf(ctx context.Context, jobs []int64) ([]bench.Run, error)
	ErrorsOf(ctx context.Context, id bench.RequestID, jobs []int64) ([]bench.RunError, error)
	JobProgress(ctx context.Context, id bench.RequestID) (bench.JobProgress, error)
	MarkWorkflowStarted(ctx context.Context, id bench.RequestID) error
	Admissions(ctx context.Context, project string) ([]store.AdmissionRecord, error)
	AdmissionSnapshot(ctx context.Context, project string, offlineAfter time.Duration) (admission.Snapshot, error)
}

// Operations is what operators do, and the audit of it.
type Operations interface {
	EndRequest(ctx context.Context, id bench.RequestID, ending store.Ending, act store.Act) (store.Operation, []bench.JobRef, error)
	Reopen(ctx context.Context, id bench.RequestID, again store.Again, act store.Act) (store.Operation, error)
	JobRequest(ctx context.Context, key bench.JobKey) (bench.Request, error)
	InvalidateResults(ctx context.Context, f store.ResultFilter, act store.Act) (store.Operation, error)
	PurgeArtifact(ctx context.Context, project, tag string, act store.Act) (store.Operation, error)
	PauseQueue(ctx context.Context, project string, act store.Act) (store.Operation, error)
	QueuePause(ctx context.Context, project string) (*store.Pause, error)
	ResumeQueue(ctx context.Context, project string, act store.Act) (store.Operation, error)
	Audit(ctx context.Context, f store.AuditFilter) ([]store.Operation, error)
}

// Shares is where it is recorded what queues and others have had.
type Shares interface {
	Shares(ctx context.Context, by store.ShareBy, window time.Duration) ([]store.Share, error)
}

// Jobs is where jobs are recorded.
type Jobs interface {
	Job(ctx context.Context, key bench.JobKey) (bench.Job, error)
	JobRuns(ctx context.Context, key bench.JobKey) ([]bench.Run, error)
}

// Runs is where runs, their results and their output are recorded.
type Runs interface {
	Run(ctx context.Context, id bench.RunID) (bench.Run, error)
	StartRun(ctx context.Context, start store.RunStart) (store.RunPlan, error)
	StoreBlock(ctx context.Context, run bench.RunID, results []bench.TestCaseResult, errs []bench.RunError) (bench.BlockReceipt, error)
	AppendLog(ctx context.Context, run bench.RunID, offset int64, data []byte, limit int64) (next int64, err error)
	ReadLog(ctx context.Context, run bench.RunID, from int64, most int) (data []byte, next int64, err error)
	FinishRun(ctx context.Context, run bench.RunID, end bench.RunEnd) error
}

// Collectors is where collectors are recorded.
type Collectors interface {
	RegisterCollector(ctx context.Context, c bench.Collector, offlineAfter time.Duration) (bench.Collector, error)
	Heartbeat(ctx context.Context, name string, epoch int64, run bench.RunID, progress json.RawMessage) (bench.Collector, error)
	CollectorTaskQueues(ctx context.Context, c bench.Collector) ([]string, error)
	Collectors(ctx context.Context) ([]bench.Collector, error)
	SetActive(ctx context.Context, name string, active bool) error
	RemoveCollector(ctx context.Context, name string) error
	Fleet(ctx context.Context, offlineAfter time.Duration) (plan.Fleet, error)
}

// Enrolments is where it is recorded which collectors may come, and in which
// version.
type Enrolments interface {
	InviteCollector(ctx context.Context, i store.Invitation, tokenHash []byte, validity time.Duration, replace bool) (store.Invitation, error)
	Invitation(ctx context.Context, name string) (store.Invitation, error)
	InvitationByToken(ctx context.Context, tokenHash []byte) (store.Invitation, error)
	EnrollCollector(ctx context.Context, tokenHash, secretHash []byte) (store.Invitation, error)
	WantVersion(ctx context.Context, pool, version, who string) error
	WantedVersions(ctx context.Context) ([]store.WantedVersion, error)
	JobsWaiting(ctx context.Context, taskQueues []string) (int, error)
	QueueWaits(ctx context.Context, taskQueues []string) (map[string]float64, error)
	SetCacheDirs(ctx context.Context, name string, epoch int64, dirs []string) error
}

// Starter reaches workflows. What it starts or cancels was recorded before, so
// its failures are repeated by a reconciliation and are nobody's error here.
type Starter interface {
	StartRequest(ctx context.Context, project string, id bench.RequestID) error
	ArtifactsReady(ctx context.Context, project string, id bench.RequestID, artifact protocol.ArtifactsReady) error
	CancelRequest(ctx context.Context, project string, id bench.RequestID, jobs []bench.JobRef) error
	// SettleRequest waits until no workflow of a request runs that has ended.
	SettleRequest(ctx context.Context, project string, id bench.RequestID) error
	// RestartRequest starts the workflow of a request that was opened again.
	RestartRequest(ctx context.Context, project string, id bench.RequestID) error
	QueueChanged(ctx context.Context, project string) error
	// TriggerReconcile has what waits handed out now.
	TriggerReconcile(ctx context.Context) error
	RunStarted(ctx context.Context, project string, key bench.JobKey, run protocol.RunStarted) error
	// GoFirst lets a job whose run has failed go first within its queue when it is
	// tried again.
	GoFirst(ctx context.Context, project string, key bench.JobKey) error
	Watcher
}
