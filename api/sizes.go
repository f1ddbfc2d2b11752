package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/diagnose"
)

func (s *explainHandlers) registerSizes() {
	handle(s.base, operation{id: "list-shapes", method: http.MethodGet, path: "/sizeclasses", need: toRead, tag: "jobs",
		summary: "List job shapes with learned sizes", description: "At most 500, the latest learned first."}, s.listShapes)
	handle(s.base, operation{id: "get-shape", method: http.MethodGet, path: "/sizeclasses/{shape}", need: toRead, tag: "jobs",
		summary:     "Show what was learned of a job shape's size",
		description: "Samples, acceptable time, timeout and probability of each size class. The path names the shape, or the key of one of its jobs."}, s.getShape)
}

type listShapes struct {
	Project string `query:"project" doc:"Only those of this project."`
}

func (s *explainHandlers) listShapes(ctx context.Context, in *listShapes) (*body[apiclient.ShapeList], error) {
	shapes, err := s.inspector.Shapes(ctx, in.Project)
	out := apiclient.ShapeList{Shapes: make([]apiclient.Shape, len(shapes))}
	for i, e := range shapes {
		next := e.Next.Why
		if e.Next.Class > 0 {
			next = fmt.Sprintf("class %d", e.Next.Class)
		}
		out.Shapes[i] = apiclient.Shape{Project: e.Project, Shape: e.Shape, About: e.About, Runs: e.Runs, Next: next, UpdatedAt: e.UpdatedAt}
	}
	return answer(out, err)
}

type getShape struct {
	Shape   string `path:"shape" doc:"The shape, or the key of one of its jobs."`
	Project string `query:"project" doc:"The project, if several have the shape."`
}

func (s *explainHandlers) getShape(ctx context.Context, in *getShape) (*body[diagnose.ShapeExplanation], error) {
	e, err := s.inspector.Shape(ctx, in.Shape, in.Project)
	return answer(e, err)
}
