package apiclient

import (
	"context"
	"net/url"
	"time"

	"github.com/benchloom/benchloom/internal/diagnose"
)

// ShapeList is of what shapes something is known.
type ShapeList struct {
	Shapes []Shape `json:"shapes" doc:"What was learned of last first."`
}

// Shape is a shape of jobs, of whose need of a machine something is known.
type Shape struct {
	Project   string    `json:"project"`
	Shape     string    `json:"shape"`
	About     string    `json:"about" doc:"What the jobs are, in words."`
	Runs      int       `json:"runs" doc:"That have ended: with a success, or on the largest class."`
	Next      string    `json:"next" doc:"On which class the next job most likely runs, or why nobody knows."`
	UpdatedAt time.Time `json:"updated_at"`
}

// Shapes lists the shapes of a project, of all when it is empty.
func (c *Client) Shapes(ctx context.Context, project string) (ShapeList, error) {
	query := url.Values{}
	set(query, "project", project)
	return get[ShapeList](ctx, c, v1("sizeclasses"), query)
}

// Shape reads what is known of a shape, or of that of a job, named by its key. The
// project decides when several have the shape.
func (c *Client) Shape(ctx context.Context, ref, project string) (diagnose.ShapeExplanation, error) {
	query := url.Values{}
	set(query, "project", project)
	return get[diagnose.ShapeExplanation](ctx, c, v1("sizeclasses", ref), query)
}
