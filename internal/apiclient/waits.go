package apiclient

import (
	"context"
	"net/url"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/waittime"
)

// WaitStats tells how long jobs wait for a collector, and how long requests take.
type WaitStats struct {
	From         time.Time   `json:"from" doc:"Jobs count that became able to run from then on, and all that could run and have not started."`
	Until        time.Time   `json:"until"`
	BlockSeconds float64     `json:"block_seconds" doc:"Length of the blocks, which begin at its multiples since midnight, UTC."`
	StepSeconds  float64     `json:"step_seconds" doc:"Length of the steps of waiting times."`
	Total        WaitLevel   `json:"total" doc:"All pools and queues together, each job judged by the objective of its queue."`
	Places       []WaitLevel `json:"places" doc:"By pool and queue, in the order of their names."`
	EndToEnd     []EndToEnd  `json:"end_to_end" doc:"By project and type, of requests completed within the period with a result. Empty where a pool or queue is asked for."`
}

// WaitFigures count jobs by whether and how soon they started.
type WaitFigures struct {
	Started int      `json:"started" doc:"Jobs that became able to run within the period, and have started."`
	Waiting int      `json:"waiting" doc:"Jobs that can run and have not started."`
	Overdue int      `json:"overdue" doc:"Jobs that have not started and have waited for longer than the objective."`
	Within  int      `json:"within" doc:"Those that started within the objective."`
	Share   *float64 `json:"share,omitempty" doc:"Part of those that started or are overdue that started within the objective, 0 to 1; absent: none did."`
	Median  *float64 `json:"wait_p50_seconds,omitempty" doc:"Time within which half of those that started or are overdue have started. An overdue job counts with its time so far. Rounded up to a tenth of a second."`
	Ninth   *float64 `json:"wait_p90_seconds,omitempty"`
	Longest *float64 `json:"wait_max_seconds,omitempty"`
}

// WaitLevel is the service level of a queue at a pool.
type WaitLevel struct {
	Pool      string  `json:"pool,omitempty" doc:"Task queue of the pool; absent: all."`
	Queue     string  `json:"queue,omitempty" doc:"Absent: all."`
	Objective float64 `json:"objective_seconds,omitempty" doc:"Time within which jobs should start; absent: the queues have several."`
	WaitFigures
	Steps   []int         `json:"steps" doc:"Those that started or are overdue by their waiting time, in steps; the last one has no end."`
	Blocked []BlockedTime `json:"blocked" doc:"Time in which jobs could not run, which is no waiting time."`
	Blocks  []WaitBlock   `json:"blocks" doc:"By when jobs became able to run; blocks without any are left out. One that became able to run before the period, and still waits, is in the first."`
}

// BlockedTime is the time in which jobs could not run for one reason.
type BlockedTime struct {
	Reason  waittime.Reason `json:"reason" enum:"turn,pause,limit,collector" doc:"turn: no request that waits for the job had its turn; pause: its project was paused; limit: its account had as much under way as it may; collector: no collector that could run it was live."`
	Seconds float64         `json:"seconds" doc:"Of all jobs together."`
	Now     int             `json:"now" doc:"Jobs that it keeps from running at present."`
}

// WaitBlock has the figures of the jobs that became able to run within a block of time.
type WaitBlock struct {
	From time.Time `json:"from"`
	WaitFigures
}

// EndToEnd tells how long requests took from what caused them to their results.
type EndToEnd struct {
	Project   string            `json:"project"`
	Type      bench.RequestType `json:"type" enum:"release,master,try,adhoc"`
	Requests  int               `json:"requests"`
	Median    float64           `json:"p50_seconds" doc:"From the commit of a request that a commit source has made, the reopening of one that was opened again, else its creation, to its completion."`
	Ninth     float64           `json:"p90_seconds"`
	Longest   float64           `json:"max_seconds"`
	Admission *float64          `json:"admission_p50_seconds,omitempty" doc:"Median time until they had their turn: artifacts, parents and requests that go first; absent: they need none."`
}

// WaitQuery narrows waiting times; empty: all.
type WaitQuery struct {
	Pool, Queue, Project string
	// Since is a duration, such as 24h; empty: 24h.
	Since string
	// Block is 15m or 2h; empty: 15m.
	Block string
}

// WaitStats returns how long jobs wait for a collector.
func (c *Client) WaitStats(ctx context.Context, q WaitQuery) (WaitStats, error) {
	query := url.Values{}
	set(query, "pool", q.Pool)
	set(query, "queue", q.Queue)
	set(query, "project", q.Project)
	set(query, "since", q.Since)
	set(query, "block", q.Block)
	return get[WaitStats](ctx, c, v1("stats", "wait"), query)
}
