package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/plan"
)

func TestSizePolicy(t *testing.T) {
	t.Parallel()
	zero, exponent, none := 0.0, 0.3, 0
	policy, err := plan.SizePolicy(bench.SizePolicy{Exponent: &exponent, Minimum: "2s", Stepwise: true})
	require.NoError(t, err)
	require.Equal(t, []any{0.3, "2s", 1.5, true}, []any{policy.Exponent, policy.Minimum.String(), policy.TimeoutMultiplier, policy.Stepwise})
	for field, p := range map[string]bench.SizePolicy{
		"exponent": {Exponent: &zero}, "timeout_multiplier": {TimeoutMultiplier: &zero}, "minimum": {Minimum: "0s"}, "history": {History: &none},
		"probe_budget": {ProbeBudget: &zero}, "recheck": {Recheck: &none}, "failure_cache": {FailureCache: "soon"}, "probe_expiry": {ProbeExpiry: "-1h"},
		"maximum_timeout": {MaximumTimeout: "25h"}, "default_timeout": {DefaultTimeout: "3h"},
	} {
		_, err := plan.SizePolicy(p)
		require.ErrorIs(t, err, bench.ErrInvalid, field)
	}
}
