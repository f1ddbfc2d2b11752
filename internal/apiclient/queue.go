package apiclient

import (
	"context"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Estimate gives the estimated start and end of an open request.
type Estimate struct {
	EstimatedStart *time.Time `json:"estimated_start,omitempty" doc:"When it is expected to start, or has started; absent when nobody can tell."`
	EstimatedEnd   *time.Time `json:"estimated_end,omitempty" doc:"When its last job is expected to end; absent when nobody can tell."`
	EstimateBasis  string     `json:"estimate_basis,omitempty" doc:"What the estimate rests on, or why there is none."`
}

// Queue is the order in which a project's requests run.
type Queue struct {
	Project       string       `json:"project"`
	Policy        string       `json:"policy" enum:"spec,upstream" doc:"By which rule they are ordered."`
	MaxInProgress int          `json:"max_in_progress" doc:"How many run at once."`
	Paused        string       `json:"paused,omitempty" doc:"By whom, since when and why nothing is admitted or handed out; absent: it is not paused."`
	Requests      []QueueEntry `json:"requests" doc:"In their order; those whose jobs are done have left the queue."`
}

// QueueEntry is a request's place in a queue, and why it is there.
type QueueEntry struct {
	Position   int                 `json:"position" doc:"Counts from 1."`
	ID         bench.RequestID     `json:"id"`
	Tag        string              `json:"tag,omitempty"`
	Type       bench.RequestType   `json:"type"`
	Status     bench.RequestStatus `json:"status"`
	PR         int                 `json:"pr,omitempty"`
	Parent     string              `json:"parent,omitempty"`
	CreatedAt  time.Time           `json:"created_at"`
	Level      int                 `json:"level" doc:"How many of its ancestors are neither finished nor in progress."`
	Reason     string              `json:"reason" doc:"Why it stands there."`
	Admissible bool                `json:"admissible" doc:"True when it only waits for a free slot."`
	Blocked    string              `json:"blocked,omitempty" doc:"What else it waits for."`
	Estimate
}

// Queue reads the order in which a project's requests run.
func (c *Client) Queue(ctx context.Context, project string) (Queue, error) {
	return get[Queue](ctx, c, v1("projects", project, "queue"), nil)
}
