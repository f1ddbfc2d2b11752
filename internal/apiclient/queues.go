package apiclient

import (
	"context"
	"net/http"
	"time"

	"github.com/benchloom/benchloom/internal/fairshare"
)

// QueueConfig configures queues and account limits: it is applied as a whole or not at
// all.
type QueueConfig struct {
	Act
	Queues   []fairshare.QueueSetting `json:"queues,omitempty" maxItems:"10000" doc:"Queues with their weights or levels."`
	Accounts []fairshare.AccountLimit `json:"accounts,omitempty" maxItems:"10000" doc:"Account limits."`
	Replace  bool                     `json:"replace,omitempty" doc:"Reset queues and limits that are not named to their defaults; otherwise they stay."`
	DryRun   bool                     `json:"dry_run,omitempty" doc:"Only report what would change."`
}

// QueueWeight sets the weight of a queue.
type QueueWeight struct {
	Act
	Weight float64 `json:"weight" doc:"Share relative to the other weighted queues, 0.1 to 1000."`
	Create bool    `json:"create,omitempty" doc:"Also accept an unknown queue."`
}

// FairQueue is a queue with its backlog.
type FairQueue struct {
	Name          string          `json:"name" example:"user:ada"`
	Class         fairshare.Class `json:"class" enum:"weighted,strict"`
	Weight        float64         `json:"weight" doc:"Share relative to the other queues of its level."`
	Level         int             `json:"level" doc:"1 goes first; a job starts only while none of an earlier level waits for the same collectors."`
	WaitObjective float64         `json:"wait_objective_seconds" doc:"Time within which its jobs should start once they can run. It changes no order."`
	Queued        int             `json:"queued" doc:"Jobs that wait to be handed out."`
	HandedOut     int             `json:"handed_out" doc:"Jobs that wait for an idle collector."`
	Running       int             `json:"running"`
	Warning       string          `json:"warning,omitempty" doc:"Queues that a strict queue can starve."`
	UpdatedBy     string          `json:"updated_by,omitempty" doc:"Account that configured it last; absent: it has its defaults."`
	UpdatedAt     *time.Time      `json:"updated_at,omitempty"`
}

// Account describes an account's limits and present use.
type Account struct {
	fairshare.AccountLimit
	Queued    int       `json:"queued" doc:"Jobs that wait to be handed out."`
	Running   int       `json:"running" doc:"Jobs that were handed out and have not ended."`
	UpdatedBy string    `json:"updated_by"`
	UpdatedAt time.Time `json:"updated_at"`
}

// FairQueues lists all queues in the order in which they are served, and all account
// limits.
type FairQueues struct {
	Queues   []FairQueue `json:"queues"`
	Accounts []Account   `json:"accounts"`
}

// Queues lists the queues and account limits.
func (c *Client) Queues(ctx context.Context) (FairQueues, error) {
	return get[FairQueues](ctx, c, v1("queues"), nil)
}

// ApplyQueues configures queues and account limits.
func (c *Client) ApplyQueues(ctx context.Context, config QueueConfig) (done Operation, err error) {
	_, _, err = c.do(ctx, call{method: http.MethodPut, path: v1("queues"), in: config, out: &done})
	return done, err
}

// SetWeight sets the weight of a queue.
func (c *Client) SetWeight(ctx context.Context, queue string, w QueueWeight) (done Operation, err error) {
	_, _, err = c.do(ctx, call{method: http.MethodPut, path: v1("queues", queue, "weight"), in: w, out: &done})
	return done, err
}
