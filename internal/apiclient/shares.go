package apiclient

import (
	"context"
	"net/url"
	"time"
)

// Shares lists shares due and received, by queue, user, host or pool.
type Shares struct {
	By            string  `json:"by" enum:"queue,user,host,pool" doc:"Whose shares these are."`
	WindowSeconds float64 `json:"window_seconds" doc:"Runs count that began within this time before now."`
	Shares        []Share `json:"shares" doc:"By name: all with open jobs or recent runs, and all configured queues."`
}

// Share is the share due and received of one of them, with its backlog.
type Share struct {
	Name        string     `json:"name"`
	Class       string     `json:"class,omitempty" enum:"weighted,strict" doc:"Of a queue: weighted ones share, strict ones go before or after all of another level."`
	Weight      float64    `json:"weight,omitempty" doc:"Of a queue, relative to the other weighted ones."`
	Level       int        `json:"level,omitempty" doc:"Of a queue: 1 goes first, the weighted ones are 3."`
	Share       *float64   `json:"share,omitempty" doc:"Part of the weights of all weighted queues with open jobs, at whichever task queue, 0 to 1; absent where that is no question."`
	Started     int        `json:"started" doc:"Runs that began within the window."`
	Received    *float64   `json:"received,omitempty" doc:"Part of all runs that began within the window, 0 to 1; absent when none did."`
	Queued      int        `json:"queued" doc:"Jobs that are rows, not yet handed out."`
	HandedOut   int        `json:"handed_out" doc:"Jobs that wait in Temporal for an idle collector."`
	Running     int        `json:"running"`
	WaitMedian  *float64   `json:"wait_p50_seconds,omitempty" doc:"From the moment when a job was ready to its run's start, of the runs that began within the window; so are the next two."`
	Wait90      *float64   `json:"wait_p90_seconds,omitempty"`
	WaitMax     *float64   `json:"wait_max_seconds,omitempty"`
	OldestSince *time.Time `json:"oldest_since,omitempty" doc:"Since when the job is ready that has waited longest; absent: none waits."`
}

// Shares reads the shares by queue, user, host or pool; of one name alone when it
// is not empty.
func (c *Client) Shares(ctx context.Context, by, name string) (Shares, error) {
	query := url.Values{}
	set(query, "by", by)
	set(query, "name", name)
	return get[Shares](ctx, c, v1("shares"), query)
}
