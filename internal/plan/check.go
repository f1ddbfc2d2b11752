package plan

import (
	"errors"
	"slices"

	"github.com/benchloom/benchloom/internal/placement"
)

// Check tells whether registered collectors could ever run what a request selects of its
// suite. Warnings say of what they could why it has to wait. The error is a
// [placement.Unplaceable], or says which name the suite does not have. Optional targets
// may have no collector.
func (f Facts) Check() ([]string, error) {
	if _, err := f.constraints(); err != nil {
		return nil, err
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
		case optional[p.Target]: // nobody waits for it
		case err != nil:
			return nil, err
		default:
			found.add(placement.Warning(f.Fleet, f.requirements(p), at.Place))
		}
	}
	return found, nil
}

// Unplaceable finds the one in an error that says that no registered collector can ever
// run a job; nil when there is none.
func Unplaceable(err error) *placement.Unplaceable {
	unplaceable, _ := errors.AsType[*placement.Unplaceable](err)
	return unplaceable
}

// maxWarnings bounds how many warnings a request has.
const maxWarnings = 10

type warnings []string

func (w *warnings) add(text string) {
	if text != "" && len(*w) < maxWarnings && !slices.Contains(*w, text) {
		*w = append(*w, text)
	}
}
