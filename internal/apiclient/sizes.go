package apiclient

import (
	"context"
	"net/url"
	"time"

	"github.com/benchloom/benchloom/internal/diagnose"
)

// ShapeList lists job shapes with learned sizes.
type ShapeList struct {
	Shapes []Shape `json:"shapes" doc:"Latest learned first."`
}

// Shape is a job shape with learned sizes.
type Shape struct {
	Project   string    `json:"project"`
	Shape     string    `json:"shape"`
	About     string    `json:"about" doc:"Description of the jobs."`
	Runs      int       `json:"runs" doc:"Runs that succeeded or ended on the largest class."`
	Next      string    `json:"next" doc:"Most likely class of the next job, or why it is unknown."`
	UpdatedAt time.Time `json:"updated_at"`
}

// Shapes lists the shapes of a project; if project is empty, of all projects.
func (c *Client) Shapes(ctx context.Context, project string) (ShapeList, error) {
	query := url.Values{}
	set(query, "project", project)
	return get[ShapeList](ctx, c, v1("sizeclasses"), query)
}

// Shape returns what was learned about a shape, named by itself or by the key of one
// of its jobs. project selects one if several have the shape.
func (c *Client) Shape(ctx context.Context, ref, project string) (diagnose.ShapeExplanation, error) {
	query := url.Values{}
	set(query, "project", project)
	return get[diagnose.ShapeExplanation](ctx, c, v1("sizeclasses", ref), query)
}
