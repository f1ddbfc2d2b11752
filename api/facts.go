package api

import (
	"context"
	"fmt"
	"reflect"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/store"
)

// facts reads the facts to plan a request's commands from, or to check whether collectors
// can run it.
func (s *requestHandlers) facts(ctx context.Context, r bench.Request, project store.Project) (plan.Facts, error) {
	f := plan.Facts{Request: r}
	var err error
	if f.Config, err = bench.ReadProjectConfig(project.Config); err != nil {
		return f, fmt.Errorf("project %s: %w; apply a corrected configuration", project.Name, err)
	}
	f.Fleet, err = s.record.Fleet(ctx, s.OfflineAfter)
	return f, err
}

// readConstraints returns the constraints that a request names, without its project's;
// nil: none.
func readConstraints(spec bench.ConstraintSpec) (*bench.Constraints, error) {
	if spec.IsZero() {
		return nil, nil //nolint:nilnil // no constraints are an answer
	}
	read, err := spec.Read()
	return &read, err
}

func sameConstraints(stored *bench.Constraints, wanted bench.ConstraintSpec) bool {
	read, err := wanted.Read()
	if err != nil || stored == nil {
		return err == nil && read.IsZero()
	}
	return reflect.DeepEqual(*stored, read)
}
