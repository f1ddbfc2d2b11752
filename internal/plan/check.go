package plan

import (
	"errors"
	"slices"

	"github.com/benchloom/benchloom/internal/placement"
)

// Check returns an error if no registered collector can ever run some part of the request's
// selection: a [placement.Unplaceable], or an error that names what the suite lacks.
// Warnings explain why other parts have to wait. Optional targets may lack a collector.
func (f Facts) Check() ([]string, error) {
	if _, err := f.constraints(); err != nil {
		return nil, err
	}
	if f.Request.Profiler != "" {
		p, at, err := f.profiled()
		if err != nil {
			return nil, err
		}
		needs := f.requirements(p)
		needs.Constraints = at.constraints
		var found warnings
		found.add(placement.Warning(f.Fleet, needs, at.Place))
		return found, nil
	}
	parts, err := f.parts()
	if err != nil {
		return nil, err
	}
	optional := f.Optional()
	var found warnings
	for _, p := range parts {
		at, err := f.choose(p)
		switch {
		case optional[p.Target]: // no request waits for it
		case err != nil:
			return nil, err
		default:
			found.add(placement.Warning(f.Fleet, f.requirements(p), at.Place))
		}
	}
	return found, nil
}

// Unplaceable returns the [placement.Unplaceable] in an error; nil when there is none.
func Unplaceable(err error) *placement.Unplaceable {
	unplaceable, _ := errors.AsType[*placement.Unplaceable](err)
	return unplaceable
}

// maxWarnings bounds the number of warnings of a request.
const maxWarnings = 10

type warnings []string

func (w *warnings) add(text string) {
	if text != "" && len(*w) < maxWarnings && !slices.Contains(*w, text) {
		*w = append(*w, text)
	}
}
