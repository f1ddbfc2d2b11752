package plan

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/sizeclass"
)

// MaxJobTime bounds the duration of any job, and so the activity that runs it.
const MaxJobTime = 24 * time.Hour

// SizePolicy returns a project's policy of sizes, with the recommended value for each
// field left out. The error names the invalid field.
func SizePolicy(p bench.SizePolicy) (sizeclass.Policy, error) {
	written := map[string]any{"stepwise": p.Stepwise}
	for name, text := range map[string]string{
		"minimum": p.Minimum, "failure_cache": p.FailureCache, "probe_expiry": p.ProbeExpiry,
		"maximum_timeout": p.MaximumTimeout, "default_timeout": p.DefaultTimeout,
	} {
		if text != "" {
			written[name] = text
		}
	}
	for name, number := range map[string]*float64{"exponent": p.Exponent, "timeout_multiplier": p.TimeoutMultiplier, "probe_budget": p.ProbeBudget} {
		if number != nil {
			written[name] = *number
		}
	}
	for name, number := range map[string]*int{"history": p.History, "recheck": p.Recheck} {
		if number != nil {
			written[name] = *number
		}
	}
	text, err := json.Marshal(written)
	if err != nil {
		return sizeclass.Policy{}, fmt.Errorf("%w: size: %w", bench.ErrInvalid, err)
	}
	policy, err := sizeclass.ReadPolicy(text)
	if err != nil {
		return sizeclass.Policy{}, fmt.Errorf("%w: size: %w", bench.ErrInvalid, err)
	}
	if time.Duration(policy.MaximumTimeout) > MaxJobTime {
		return sizeclass.Policy{}, fmt.Errorf("%w: size: maximum_timeout %s: use at most %s, for no job runs longer", bench.ErrInvalid, policy.MaximumTimeout, MaxJobTime)
	}
	return policy, nil
}
