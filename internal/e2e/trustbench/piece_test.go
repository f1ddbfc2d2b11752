package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// attempts is a runner whose trials fail as told.
func attempts(t *testing.T, fails func(n int) error) (r runner, tried, told *[]string) {
	t.Helper()
	s, err := openState(filepath.Join(t.TempDir(), "trials.jsonl"), whole)
	require.NoError(t, err)
	t.Cleanup(func() { s.file.Close() })
	tried, told = new([]string), new([]string)
	return runner{
		plan: whole, state: s, deadline: time.Now().Add(time.Hour),
		try: func(_ context.Context, one trial) (outcome, error) {
			*tried = append(*tried, one.ID)
			return outcome{Trial: one.ID}, fails(len(*tried))
		},
		cleanUp: func(context.Context) error {
			*told = append(*told, "cleared")
			return nil
		},
		progress: func(format string, args ...any) { *told = append(*told, fmt.Sprintf(format, args...)) },
	}, tried, told
}

func TestAFailedTrialIsLeftToTheNextStart(t *testing.T) {
	t.Parallel()
	r, tried, told := attempts(t, func(n int) error {
		if n == 2 || n == 3 {
			return errors.New("no disk")
		}
		return nil
	})
	missing := whole.trials()
	require.NoError(t, r.run(t.Context(), missing))
	require.Len(t, *tried, 80)
	require.Equal(t, missing[1:3], whole.missing(r.state.outcomes))
	require.Contains(t, *told, "trial "+missing[1].ID+": no disk; the next start repeats it")
	require.Contains(t, *told, "cleared")
}

func TestThreeFailuresInARowEndThePiece(t *testing.T) {
	t.Parallel()
	r, tried, _ := attempts(t, func(int) error { return errors.New("no disk") })
	require.ErrorContains(t, r.run(t.Context(), whole.trials()), "no disk")
	require.Len(t, *tried, 3)
}

func TestNoTrialBeginsThatWouldEndTooLate(t *testing.T) {
	t.Parallel()
	r, tried, _ := attempts(t, func(int) error { return nil })
	r.deadline = time.Now().Add(80 * time.Second)
	require.NoError(t, r.run(t.Context(), whole.trials()))
	require.Empty(t, *tried, "the first is expected to take 90 s")
}

func TestAnInterruptedTrialIsTheLast(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	r, tried, told := attempts(t, func(int) error {
		interrupt()
		return context.Canceled
	})
	require.ErrorIs(t, r.run(ctx, whole.trials()), context.Canceled)
	require.Len(t, *tried, 1)
	require.NotContains(t, *told, "cleared", "the next start cancels its request")
}

func TestTheExpectedTimeIsThatOfTheKind(t *testing.T) {
	t.Parallel()
	require.Equal(t, 90*time.Second, expected(whole, nil, kind{}))
	outcomes := []outcome{{Trial: trialID(0, false, 0), Seconds: 10}, {Trial: trialID(0, false, 1), Seconds: 20}, {Trial: trialID(10, true, 0), Seconds: 60}}
	require.Equal(t, 15*time.Second, expected(whole, outcomes, kind{}))
	require.Equal(t, 30*time.Second, expected(whole, outcomes, kind{2, false}))
}
