package apiclient

import (
	"context"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Estimate gives the estimated start and end of an open request.
type Estimate struct {
	EstimatedStart *time.Time `json:"estimated_start,omitempty" doc:"Expected or actual start; absent if unknown."`
	EstimatedEnd   *time.Time `json:"estimated_end,omitempty" doc:"Expected end of its last job; absent if unknown."`
	EstimateBasis  string     `json:"estimate_basis,omitempty" doc:"Basis of the estimate, or why there is none."`
}

// Queue is the order in which a project's requests run.
type Queue struct {
	Project       string       `json:"project"`
	Policy        string       `json:"policy" enum:"spec,upstream" doc:"Rule of the order."`
	MaxInProgress int          `json:"max_in_progress" doc:"Maximum number of requests in progress."`
	Paused        string       `json:"paused,omitempty" doc:"Who paused it, since when and why; absent: it is not paused."`
	Requests      []QueueEntry `json:"requests" doc:"In order; requests whose jobs are done are left out."`
}

// QueueEntry is a request's position in a project's order, with the reason.
type QueueEntry struct {
	Position   int                 `json:"position" doc:"Counts from 1."`
	ID         bench.RequestID     `json:"id"`
	Tag        string              `json:"tag,omitempty"`
	Type       bench.RequestType   `json:"type"`
	Status     bench.RequestStatus `json:"status"`
	PR         int                 `json:"pr,omitempty"`
	Parent     string              `json:"parent,omitempty"`
	CreatedAt  time.Time           `json:"created_at"`
	Level      int                 `json:"level" doc:"Number of its ancestors that are neither finished nor in progress."`
	Reason     string              `json:"reason" doc:"Reason for its position."`
	Admissible bool                `json:"admissible" doc:"It waits only for a free slot."`
	Blocked    string              `json:"blocked,omitempty" doc:"What else it waits for."`
	Estimate
}

// Queue reads the order in which a project's requests run.
func (c *Client) Queue(ctx context.Context, project string) (Queue, error) {
	return get[Queue](ctx, c, v1("projects", project, "queue"), nil)
}
