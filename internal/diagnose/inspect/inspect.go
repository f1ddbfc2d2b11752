// Package inspect reads what the record and Temporal say of a request, a job or a
// shape of jobs, hands it to the rules of package diagnose, and carries out the
// repairs that they name.
//
// It must not know HTTP, nor who may ask. It changes nothing but by a repair.
package inspect

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

// Inspector finds out why requests and jobs are where they are. All fields must be
// set. It is safe for concurrent use.
type Inspector struct {
	Record    Record
	Workflows Workflows
	// OfflineAfter is how long a collector may be silent before it counts as offline.
	OfflineAfter time.Duration
	Now          func() time.Time
	Log          *slog.Logger
}

// Record holds the facts; a *store.Store is one. Each method reads by itself, without
// a lock: facts that are read one after the other may be of different moments.
type Record interface {
	Requests
	Jobs
	Collectors
	Sizes
}

// Requests is read for the explanation of a request.
type Requests interface {
	// Request returns store.ErrNotFound for an unknown ID.
	Request(ctx context.Context, id bench.RequestID) (bench.Request, error)
	// ParentDone reports whether the jobs are done that a request waits for.
	ParentDone(ctx context.Context, id bench.RequestID) (bool, error)
	// InFlightOf reports whether Temporal has a job of a request: it was handed out and
	// has not ended.
	InFlightOf(ctx context.Context, id bench.RequestID) (bool, error)
	// RequestJobPage lists jobs of a request as they were written.
	RequestJobPage(ctx context.Context, id bench.RequestID, page store.JobPage) ([]bench.Job, error)
	// OpenJobsOf lists at most limit open jobs of a request: those that run first,
	// then in the order in which they are handed out.
	OpenJobsOf(ctx context.Context, id bench.RequestID, limit int) ([]store.OpenJob, error)
	// QueuePause returns nil for a project whose queue is not paused.
	QueuePause(ctx context.Context, project string) (*store.Pause, error)
}

// Jobs is read for the explanation of a job. Unknown keys are store.ErrNotFound, but
// are left out of lists and maps.
type Jobs interface {
	Job(ctx context.Context, key bench.JobKey) (bench.Job, error)
	JobRuns(ctx context.Context, key bench.JobKey) ([]bench.Run, error)
	JobWaiters(ctx context.Context, key bench.JobKey) ([]store.JobWaiter, error)
	QueuePosition(ctx context.Context, key bench.JobKey) (store.QueuePosition, error)
	// Submitters returns the account of each job.
	Submitters(ctx context.Context, keys []bench.JobKey) (map[bench.JobKey]string, error)
	// AccountHold returns the limits of an account on a branch; an empty branch is
	// none in particular.
	AccountHold(ctx context.Context, account, branch string) (store.AccountHold, error)
	// StrandedJobs returns those of the jobs whose task queue no live collector serves.
	StrandedJobs(ctx context.Context, keys ...bench.JobKey) ([]store.WaitingJob, error)
	// Project returns store.ErrNotFound for an unknown name; its configuration is read.
	Project(ctx context.Context, name string) (store.Project, error)
}

// Collectors is read for who takes a job and who does not.
type Collectors interface {
	// Fleet lists the registered collectors as placement sees them.
	Fleet(ctx context.Context, offlineAfter time.Duration) (plan.Fleet, error)
	Collectors(ctx context.Context) ([]bench.Collector, error)
	CollectorTaskQueues(ctx context.Context, c bench.Collector) ([]string, error)
	// SetMembers names the collectors of a set by its task queue; that of a pool has
	// none.
	SetMembers(ctx context.Context, taskQueue string) ([]string, error)
}

// Sizes is read for how size classes come about. SizingOf, SizeStatistics and
// LastOfShape return store.ErrNotFound where nothing is known.
type Sizes interface {
	SizingOf(ctx context.Context, key bench.JobKey) (store.Sizing, error)
	SizeStatistics(ctx context.Context, project string, shape bench.Shape) (store.SizeStatistics, error)
	// SizeStatisticsOf lists those of all projects that have the shape.
	SizeStatisticsOf(ctx context.Context, shape bench.Shape) ([]store.SizeStatistics, error)
	// AllSizeStatistics lists those of a project, of all when it is empty, what was
	// learned of last first.
	AllSizeStatistics(ctx context.Context, project string, limit int) ([]store.SizeStatistics, error)
	LastOfShape(ctx context.Context, project string, shape bench.Shape) (store.Sizing, error)
}

// Workflows looks into workflows and mends them; the starter is one.
type Workflows interface {
	// Explain describes a workflow. One that does not exist is a state, not an error;
	// an error means that Temporal did not answer.
	Explain(ctx context.Context, workflowID string) (protocol.WorkflowState, error)
	// RestartRequest starts a request's workflow unless it runs.
	RestartRequest(ctx context.Context, request bench.RequestRef) error
	// QueueChanged wakes a project's Queue workflow, and starts it where it does not run.
	QueueChanged(ctx context.Context, project string) error
	// ResetToStart takes a workflow back to its first decision.
	ResetToStart(ctx context.Context, workflowID, reason string) error
	// TriggerReconcile runs the reconciliation now.
	TriggerReconcile(ctx context.Context) error
}

// TemporalError reports that Temporal could not be asked about a workflow.
type TemporalError struct{ Err error }

// Error says what to look at.
func (e *TemporalError) Error() string {
	return fmt.Sprintf("Temporal cannot be asked: %v; is it running, and TEMPORAL_ADDRESS right?", e.Err)
}

// Unwrap returns what the client of Temporal has said.
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
