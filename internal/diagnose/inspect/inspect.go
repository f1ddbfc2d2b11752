// Package inspect reads the facts about a request, a job or a shape of jobs from the
// record and Temporal, applies the rules of package diagnose, and carries out the
// repairs that they name.
//
// It must not know HTTP, nor who may ask. Only repairs change anything.
package inspect

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graphset"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

// Inspector explains the state of requests and jobs. All fields must be set. It is safe
// for concurrent use.
type Inspector struct {
	Record    Record
	Workflows Workflows
	// OfflineAfter is the silence after which a collector counts as offline.
	OfflineAfter time.Duration
	Now          func() time.Time
	Log          *slog.Logger
}

// Record holds the facts; a *store.Store is one. An [Inspector] calls it, and with it its
// parts, under no lock and from many goroutines at once; none is ever nil. Each method reads
// separately, so facts may be of different moments.
type Record interface {
	Requests
	Jobs
	Collectors
	Sizes
}

// Requests holds the facts about requests.
type Requests interface {
	// Request returns store.ErrNotFound for an unknown ID.
	Request(ctx context.Context, id bench.RequestID) (bench.Request, error)
	// ParentDone reports whether the parent's jobs that a request waits for are done.
	ParentDone(ctx context.Context, id bench.RequestID) (bool, error)
	// InFlightOf reports whether a job of a request was handed out and has not ended.
	InFlightOf(ctx context.Context, id bench.RequestID) (bool, error)
	// RequestJobPage lists jobs of a request in the order of their creation.
	RequestJobPage(ctx context.Context, id bench.RequestID, page store.JobPage) ([]bench.Job, error)
	// OpenJobsOf lists at most limit open jobs of a request: running jobs first, then
	// the others in hand-out order.
	OpenJobsOf(ctx context.Context, id bench.RequestID, limit int) ([]store.OpenJob, error)
	// QueuePause returns nil for a project whose queue is not paused.
	QueuePause(ctx context.Context, project string) (*store.Pause, error)
}

// Jobs holds the facts about jobs. Unknown keys give store.ErrNotFound; lists and maps
// leave them out.
type Jobs interface {
	Job(ctx context.Context, key bench.JobKey) (bench.Job, error)
	JobRuns(ctx context.Context, key bench.JobKey) ([]bench.Run, error)
	JobWaiters(ctx context.Context, key bench.JobKey) ([]store.JobWaiter, error)
	QueuePosition(ctx context.Context, key bench.JobKey) (store.QueuePosition, error)
	// MissingInputs returns, for jobs held until others have ended, these others.
	MissingInputs(ctx context.Context, keys ...bench.JobKey) (map[bench.JobKey][]graphset.Missing, error)
	// Submitters returns the account of each job.
	Submitters(ctx context.Context, keys []bench.JobKey) (map[bench.JobKey]string, error)
	// AccountHold returns the limits of an account on a branch; an empty branch stands for
	// no particular one.
	AccountHold(ctx context.Context, account, branch string) (store.AccountHold, error)
	// StrandedJobs returns the jobs whose task queue no live collector serves.
	StrandedJobs(ctx context.Context, keys ...bench.JobKey) ([]store.WaitingJob, error)
	// Project returns store.ErrNotFound for an unknown name; its configuration is read.
	Project(ctx context.Context, name string) (store.Project, error)
}

// Collectors holds the facts about collectors.
type Collectors interface {
	// Fleet lists the registered collectors as placement sees them.
	Fleet(ctx context.Context, offlineAfter time.Duration) (plan.Fleet, error)
	Collectors(ctx context.Context) ([]bench.Collector, error)
	CollectorTaskQueues(ctx context.Context, c bench.Collector) ([]string, error)
	// SetMembers names the collectors of a set by its task queue; a pool's task queue has
	// none.
	SetMembers(ctx context.Context, taskQueue string) ([]string, error)
}

// Sizes holds the facts about size classes. SizingOf, SizeStatistics and LastOfShape
// return store.ErrNotFound when nothing is known.
type Sizes interface {
	SizingOf(ctx context.Context, key bench.JobKey) (store.Sizing, error)
	SizeStatistics(ctx context.Context, project string, shape bench.Shape) (store.SizeStatistics, error)
	// SizeStatisticsOf lists the statistics of a shape in all projects that have it.
	SizeStatisticsOf(ctx context.Context, shape bench.Shape) ([]store.SizeStatistics, error)
	// AllSizeStatistics lists the statistics of a project, or of all when it is empty,
	// the latest learned first.
	AllSizeStatistics(ctx context.Context, project string, limit int) ([]store.SizeStatistics, error)
	LastOfShape(ctx context.Context, project string, shape bench.Shape) (store.Sizing, error)
}

// Workflows describes and repairs workflows; a *starter.Starter is one. An [Inspector] calls
// it under no lock, from many goroutines at once; it is never nil.
type Workflows interface {
	// Explain describes a workflow. One that does not exist is a state, not an error;
	// an error means that Temporal did not answer.
	Explain(ctx context.Context, workflowID string) (protocol.WorkflowState, error)
	// RestartRequest restarts a request's workflow unless it runs.
	RestartRequest(ctx context.Context, request bench.RequestRef) error
	// QueueChanged wakes a project's Queue workflow, and starts it unless it runs.
	QueueChanged(ctx context.Context, project string) error
	// ResetToStart resets a workflow to its first decision.
	ResetToStart(ctx context.Context, workflowID, reason string) error
	// TriggerReconcile runs the reconciliation now.
	TriggerReconcile(ctx context.Context) error
}

// TemporalError reports that Temporal could not be asked about a workflow.
type TemporalError struct{ Err error }

// Error names what to look at.
func (e *TemporalError) Error() string {
	return fmt.Sprintf("Temporal cannot be asked: %v; is it running, and TEMPORAL_ADDRESS right?", e.Err)
}

// Unwrap returns the error of the Temporal client.
func (e *TemporalError) Unwrap() error { return e.Err }

// workflow describes a workflow; its error is a *TemporalError.
func (i *Inspector) workflow(ctx context.Context, id string) (protocol.WorkflowState, error) {
	state, err := i.Workflows.Explain(ctx, id)
	if err != nil {
		return state, &TemporalError{Err: err}
	}
	return state, nil
}

func (i *Inspector) fleet(ctx context.Context) (plan.Fleet, error) {
	return i.Record.Fleet(ctx, i.OfflineAfter)
}
