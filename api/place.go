package api

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/plan"
)

// constraints are those that the request names, and together with its project's.
func constraints(r apiclient.NewRequest, config bench.ProjectConfig) (own *bench.Constraints, all bench.Constraints, err error) {
	if !r.Constraints.IsZero() {
		read, err := r.Constraints.Read()
		if err != nil {
			return nil, all, err
		}
		own = &read
	}
	if all, err = config.Narrowed(own); err != nil {
		return own, all, fmt.Errorf("project %s and the request: %w", r.Project, err)
	}
	return own, all, nil
}

func sameConstraints(stored *bench.Constraints, wanted bench.ConstraintSpec) bool {
	read, err := wanted.Read()
	if err != nil || stored == nil {
		return err == nil && read.IsZero()
	}
	return reflect.DeepEqual(*stored, read)
}

// fitting asks whether registered collectors can run something.
type fitting struct {
	config bench.ProjectConfig
	class  bench.SizeClass
	// own are the request's constraints, without the project's; nil: none.
	own         *bench.Constraints
	constraints bench.Constraints // all together
	fleet       plan.Fleet
	// warnings say of what was placed that it has to wait.
	warnings []string
}

func (f *fitting) place(target bench.Target, smallest bench.SizeClass) error {
	wish := plan.Needs{Target: target, MinClass: smallest, Constraints: &f.constraints}.Requirements().On(f.class)
	place, err := placement.Choose(f.fleet, wish)
	if err != nil {
		return err
	}
	if w := placement.Warning(f.fleet, wish, place); w != "" && !slices.Contains(f.warnings, w) {
		f.warnings = append(f.warnings, w)
	}
	return nil
}
