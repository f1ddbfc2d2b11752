package retry_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/retry"
)

var policy = retry.Policy{MaxJobFails: 3}

// largest is the standing of a job on the largest class.
var largest = retry.Standing{Class: 4}

func outcomes(failures, losses int) []retry.Try {
	var out []retry.Try
	for range failures {
		out = append(out, retry.Try{Outcome: bench.RunFailure, Class: 4})
	}
	for range losses {
		out = append(out, retry.Try{Outcome: bench.RunLost, Class: 4})
	}
	return out
}

// A job fails with its third own failure; losses never count towards that.
func TestFailuresAreCountedAndLossesAreNot(t *testing.T) {
	t.Parallel()
	for failures := range 3 {
		d := retry.Decide(policy, outcomes(failures, 10), largest, bench.FailInfrastructure)
		require.True(t, d.Again)
		require.Equal(t, 3-failures, d.AttemptsLeft)
	}
	d := retry.Decide(policy, outcomes(3, 0), largest, bench.FailJob)
	require.False(t, d.Again)
	require.Contains(t, d.Why, "failed 3 times")
}

// Losses have a separate limit, for a job that crashes every collector.
func TestLossesAreBounded(t *testing.T) {
	t.Parallel()
	require.True(t, retry.Decide(policy, outcomes(0, retry.MaxLosses-1), largest, bench.FailInfrastructure).Again)
	require.False(t, retry.Decide(policy, outcomes(0, retry.MaxLosses), largest, bench.FailInfrastructure).Again)
}

// A job that crashes each collector of a small class is tried on a larger one,
// with all its attempts, before it fails.
func TestAJobThatIsLostAgainAndAgainEscalates(t *testing.T) {
	t.Parallel()
	small := retry.Standing{Class: 1, Next: 4}
	var tries []retry.Try
	for range retry.MaxLossesBelow {
		d := retry.Decide(policy, tries, small, bench.FailInfrastructure)
		require.True(t, d.Again)
		require.Zero(t, d.EscalateTo)
		tries = append(tries, retry.Try{Outcome: bench.RunLost, Class: 1})
	}
	d := retry.Decide(policy, tries, small, bench.FailInfrastructure)
	require.Equal(t, retry.Decision{Again: true, Reason: bench.Escalation, EscalateTo: 4, AttemptsLeft: 1}, d)
	// Asked again after it was moved.
	d = retry.Decide(policy, tries, largest, bench.FailInfrastructure)
	require.Equal(t, retry.Decision{Again: true, Reason: bench.Escalation, AttemptsLeft: 3}, d)
	tries = append(tries, outcomes(0, retry.MaxLosses-1)...)
	require.True(t, retry.Decide(policy, tries, largest, bench.FailInfrastructure).Again)
	tries = append(tries, outcomes(0, 1)...)
	require.False(t, retry.Decide(policy, tries, largest, bench.FailInfrastructure).Again)

	// If its class is pinned, it has all attempts there.
	d = retry.Decide(policy, tries[:retry.MaxLossesBelow], retry.Standing{Class: 1}, bench.FailInfrastructure)
	require.Equal(t, bench.Retry, d.Reason)
}

// After a first loss the job is retried at once: another collector may be idle.
// Then pauses grow up to a minute.
func TestPausesGrow(t *testing.T) {
	t.Parallel()
	last := time.Duration(-1)
	for losses := range retry.MaxLosses {
		d := retry.Decide(policy, outcomes(0, losses), largest, bench.FailInfrastructure)
		require.GreaterOrEqual(t, d.Pause, min(last, time.Minute))
		require.LessOrEqual(t, d.Pause, time.Minute)
		last = d.Pause
	}
	require.Equal(t, time.Minute, last)
	require.Zero(t, retry.Decide(policy, outcomes(0, 1), largest, bench.FailInfrastructure).Pause)
}

func TestFinalFailuresAreNotRetried(t *testing.T) {
	t.Parallel()
	for _, kind := range []bench.FailureKind{bench.FailPermanent, bench.FailCancelled} {
		d := retry.Decide(policy, nil, largest, kind)
		require.False(t, d.Again)
		require.NotEmpty(t, d.Why)
	}
}

// Below the largest class every failure escalates and is not counted: the job
// has all its attempts on the larger class.
func TestFailuresBelowTheLargestClassEscalate(t *testing.T) {
	t.Parallel()
	small := retry.Standing{Class: 1, Next: 4}
	for outcome, kind := range map[bench.RunOutcome]bench.FailureKind{
		bench.RunFailure: bench.FailJob, bench.RunTimeout: bench.FailTooSmall, bench.RunOutOfMemory: bench.FailTooSmall, bench.RunTooSmall: bench.FailTooSmall,
	} {
		tries := []retry.Try{{Outcome: outcome, Class: 1}}
		d := retry.Decide(policy, tries, small, kind)
		require.Equal(t, retry.Decision{Again: true, Reason: bench.Escalation, EscalateTo: 4, AttemptsLeft: 1}, d, outcome)
		// Asked again after it was moved.
		d = retry.Decide(policy, tries, largest, kind)
		require.Equal(t, retry.Decision{Again: true, Reason: bench.Escalation, AttemptsLeft: 3}, d, outcome)
	}
	tries := []retry.Try{{Outcome: bench.RunFailure, Class: 1}, {Outcome: bench.RunTimeout, Class: 2}}
	for failures := range 3 {
		tries = append(tries, retry.Try{Outcome: []bench.RunOutcome{bench.RunFailure, bench.RunOutOfMemory, bench.RunTimeout}[failures], Class: 4})
		d := retry.Decide(policy, tries, largest, bench.FailJob)
		require.Equal(t, failures < 2, d.Again)
		require.Zero(t, d.EscalateTo)
	}
}

// After an infrastructure failure a job stays on its class; final failures stay
// final.
func TestOnlyARunsFailureEscalates(t *testing.T) {
	t.Parallel()
	small := retry.Standing{Class: 1, Next: 4}
	d := retry.Decide(policy, []retry.Try{{Outcome: bench.RunLost, Class: 1}}, small, bench.FailInfrastructure)
	require.Equal(t, retry.Decision{Again: true, Reason: bench.Retry, AttemptsLeft: 1}, d)
	for _, kind := range []bench.FailureKind{bench.FailPermanent, bench.FailCancelled} {
		require.False(t, retry.Decide(policy, []retry.Try{{Outcome: bench.RunPermanent, Class: 1}}, small, kind).Again)
	}
	d = retry.Decide(policy, []retry.Try{{Outcome: bench.RunFailure, Class: 1}, {Outcome: bench.RunLost, Class: 4}}, largest, bench.FailInfrastructure)
	require.Equal(t, retry.Decision{Again: true, Reason: bench.Retry, AttemptsLeft: 3}, d)
}

// Dispatches that start no run pause like losses, but never for long.
func TestPausesWithoutARunGrow(t *testing.T) {
	t.Parallel()
	want := []time.Duration{0, 0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second}
	for n, pause := range want {
		require.Equal(t, pause, retry.Unbegun(n))
	}
	require.Equal(t, 30*time.Second, retry.Unbegun(1<<40))
}

// What a person asks for uses up no automatic attempt and gives none back.
func TestAskedRunsAreNoAutomaticAttempts(t *testing.T) {
	t.Parallel()
	asked := retry.Standing{Class: 4, Asked: true}
	for failures := range 5 {
		tries := outcomes(failures, 0)
		left := max(0, 3-failures)
		d := retry.Decide(policy, tries, asked, bench.FailNotTaken)
		require.True(t, d.Again, "what was asked for is tried, after %d failures", failures)
		if failures > 0 {
			require.Equal(t, left+1, d.AttemptsLeft)
		}
		tries = append(tries, retry.Try{Outcome: bench.RunFailure, Class: 4, Asked: true})
		d = retry.Decide(policy, tries, largest, bench.FailJob)
		require.Equal(t, left > 0, d.Again)
		require.Equal(t, left, max(0, d.AttemptsLeft))
	}
	require.True(t, retry.Decide(policy, outcomes(0, retry.MaxLosses), asked, bench.FailInfrastructure).Again)
	for _, kind := range []bench.FailureKind{bench.FailPermanent, bench.FailCancelled} {
		require.False(t, retry.Decide(policy, nil, asked, kind).Again)
	}
	require.Equal(t, 1, policy.Attempts(outcomes(7, 0), largest))
	require.Equal(t, 4, policy.Attempts(outcomes(0, 9), largest))
	require.Equal(t, 3, policy.Attempts(nil, largest))
	require.Equal(t, 1, policy.Attempts(outcomes(1, 0), retry.Standing{Class: 1, Next: 4}), "a failure escalates")
}
