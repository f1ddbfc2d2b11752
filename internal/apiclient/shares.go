package apiclient

import (
	"context"
	"net/url"
	"time"
)

// Shares lists shares due and received, by queue, user, host or pool.
type Shares struct {
	By            string  `json:"by" enum:"queue,user,host,pool" doc:"Owners of the shares."`
	WindowSeconds float64 `json:"window_seconds" doc:"Period before now whose runs count, by their beginning."`
	Shares        []Share `json:"shares" doc:"Sorted by name: all with open jobs or recent runs, and all configured queues."`
}

// Share is the share due and received of one queue, user, host or pool, with its
// backlog.
type Share struct {
	Name        string     `json:"name"`
	Class       string     `json:"class,omitempty" enum:"weighted,strict" doc:"Of a queue: weighted ones share, strict ones go before or after all of another level."`
	Weight      float64    `json:"weight,omitempty" doc:"Of a queue, relative to the other weighted ones."`
	Level       int        `json:"level,omitempty" doc:"Of a queue: 1 goes first, the weighted ones are 3."`
	Share       *float64   `json:"share,omitempty" doc:"Part of the weights of all weighted queues with open jobs, at any task queue, 0 to 1; absent where it does not apply."`
	Started     int        `json:"started" doc:"Runs that began within the window."`
	Received    *float64   `json:"received,omitempty" doc:"Part of all runs that began within the window, 0 to 1; absent when none did."`
	Queued      int        `json:"queued" doc:"Jobs that wait to be handed out."`
	HandedOut   int        `json:"handed_out" doc:"Jobs that wait in Temporal for an idle collector."`
	Running     int        `json:"running"`
	WaitMedian  *float64   `json:"wait_p50_seconds,omitempty" doc:"Median time from a job's readiness to its run's beginning, of the runs that began within the window."`
	Wait90      *float64   `json:"wait_p90_seconds,omitempty"`
	WaitMax     *float64   `json:"wait_max_seconds,omitempty"`
	OldestSince *time.Time `json:"oldest_since,omitempty" doc:"When the longest-waiting job became ready; absent: none waits."`
}

// Shares returns the shares by queue, user, host or pool; a name that is not empty
// selects one of them.
func (c *Client) Shares(ctx context.Context, by, name string) (Shares, error) {
	query := url.Values{}
	set(query, "by", by)
	set(query, "name", name)
	return get[Shares](ctx, c, v1("shares"), query)
}
