package apiclient

import (
	"context"
	"net/http"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// RetentionList lists how long everything is kept.
type RetentionList struct {
	Kinds []Retention `json:"kinds" doc:"In the order in which they are removed; none before the orchestrator's first pass."`
}

// Retention says how long a kind is kept.
type Retention struct {
	Kind       bench.RetentionKind `json:"kind" doc:"What is kept, such as output or commands."`
	Keep       string              `json:"keep" doc:"Days, such as 90d, or forever."`
	Projects   map[string]string   `json:"projects,omitempty" doc:"Projects that keep it for another time."`
	Due        Amount              `json:"due" doc:"What a pass would remove now."`
	Removed    Amount              `json:"removed" doc:"What was removed so far."`
	LastPassAt time.Time           `json:"last_pass_at"`
}

// Amount is an amount of data.
type Amount struct {
	Rows  int64 `json:"rows" doc:"Runs, requests, suites and so on."`
	Bytes int64 `json:"bytes" doc:"Their size with what belongs to them, without indexes."`
}

// Retention lists how long everything is kept, and what would be removed now.
func (c *Client) Retention(ctx context.Context) (RetentionList, error) {
	return get[RetentionList](ctx, c, v1("retention"), nil)
}

// RunRetention begins to remove what was kept long enough.
func (c *Client) RunRetention(ctx context.Context) error {
	_, _, err := c.do(ctx, call{method: http.MethodPost, path: v1("retention", "run")})
	return err
}
