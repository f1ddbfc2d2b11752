package retry_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/retry"
)

var policy = retry.Policy{MaxJobFails: 3}

func outcomes(failures, losses int) []bench.RunOutcome {
	var out []bench.RunOutcome
	for range failures {
		out = append(out, bench.RunFailure)
	}
	for range losses {
		out = append(out, bench.RunLost)
	}
	return out
}

// The third failure of its own fails a job; losses never count towards that.
func TestFailuresAreCountedAndLossesAreNot(t *testing.T) {
	t.Parallel()
	for failures := range 3 {
		d := retry.Decide(policy, outcomes(failures, 10), bench.FailInfrastructure)
		require.True(t, d.Again)
		require.Equal(t, 3-failures, d.AttemptsLeft)
	}
	d := retry.Decide(policy, outcomes(3, 0), bench.FailJob)
	require.False(t, d.Again)
	require.Contains(t, d.Why, "failed 3 times")
}

// Losses have a bound of their own, for a job that kills whatever takes it.
func TestLossesAreBounded(t *testing.T) {
	t.Parallel()
	require.True(t, retry.Decide(policy, outcomes(0, retry.MaxLosses-1), bench.FailInfrastructure).Again)
	require.False(t, retry.Decide(policy, outcomes(0, retry.MaxLosses), bench.FailInfrastructure).Again)
}

// A first loss is answered at once: another collector may be idle. Then pauses
// grow up to a minute.
func TestPausesGrow(t *testing.T) {
	t.Parallel()
	last := time.Duration(-1)
	for losses := range retry.MaxLosses {
		d := retry.Decide(policy, outcomes(0, losses), bench.FailInfrastructure)
		require.GreaterOrEqual(t, d.Pause, min(last, time.Minute))
		require.LessOrEqual(t, d.Pause, time.Minute)
		last = d.Pause
	}
	require.Equal(t, time.Minute, last)
	require.Zero(t, retry.Decide(policy, outcomes(0, 1), bench.FailInfrastructure).Pause)
}

func TestNothingFollowsWhatIsFinal(t *testing.T) {
	t.Parallel()
	for _, kind := range []bench.FailureKind{bench.FailPermanent, bench.FailCancelled} {
		d := retry.Decide(policy, nil, kind)
		require.False(t, d.Again)
		require.NotEmpty(t, d.Why)
	}
}
