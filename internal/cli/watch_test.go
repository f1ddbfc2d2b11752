package cli_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
)

var errAway = errors.New("away")

// look is the result of one look at a request.
type look struct {
	status bench.RequestStatus
	err    error
}

// watch follows a request over the given looks; the clock moves only in pauses.
func watch(t *testing.T, looks ...look) (shown []error, ended []apiclient.RequestDetail, err error) {
	t.Helper()
	clock, i := now, 0
	w := cli.Watch{
		Fetch: func(context.Context) ([]apiclient.RequestDetail, error) {
			require.Less(t, i, len(looks), "it should have ended")
			l := looks[i]
			i++
			d := running()
			d.Status = l.status
			return []apiclient.RequestDetail{d}, l.err
		},
		Transient: func(err error) bool { return errors.Is(err, errAway) },
		Patience:  2 * time.Second, Every: time.Second,
		Show: func(_ []apiclient.RequestDetail, away error) error {
			shown = append(shown, away)
			return nil
		},
		Now:   func() time.Time { return clock },
		Pause: func(_ context.Context, d time.Duration) error { clock = clock.Add(d); return nil },
	}
	ended, err = w.Run(t.Context())
	require.Equal(t, len(looks), i, "it looked less often")
	return shown, ended, err
}

func TestWatch(t *testing.T) {
	t.Parallel()
	going, done, away := look{status: bench.InProgress}, look{status: bench.Completed}, look{err: errAway}
	t.Run("ends with the last request", func(t *testing.T) {
		t.Parallel()
		shown, ended, err := watch(t, going, going, done)
		require.NoError(t, err)
		require.Len(t, shown, 3)
		require.Equal(t, bench.Completed, ended[0].Status)
	})
	t.Run("waits for an API that is away", func(t *testing.T) {
		t.Parallel()
		shown, _, err := watch(t, going, away, away, done)
		require.NoError(t, err)
		require.Equal(t, []error{nil, errAway, errAway, nil}, shown)
	})
	t.Run("but not for ever", func(t *testing.T) {
		t.Parallel()
		_, last, err := watch(t, going, away, away, away, away)
		require.ErrorIs(t, err, errAway)
		require.Len(t, last, 1)
	})
	t.Run("patience begins anew", func(t *testing.T) {
		t.Parallel()
		_, _, err := watch(t, going, away, away, going, away, away, done)
		require.NoError(t, err)
	})
	t.Run("an API that was never there is an error at once", func(t *testing.T) {
		t.Parallel()
		_, _, err := watch(t, away)
		require.ErrorIs(t, err, errAway)
	})
	t.Run("so is one that will not pass", func(t *testing.T) {
		t.Parallel()
		lost := errors.New("no such request")
		_, _, err := watch(t, going, look{err: lost})
		require.ErrorIs(t, err, lost)
	})
}

// Watching takes a twentieth of the service's time at most, and shows something every ten
// seconds.
func TestWatchSparesABusyService(t *testing.T) {
	t.Parallel()
	clock, reads := now, []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, 4 * time.Second, time.Minute}
	var pauses []time.Duration
	w := cli.Watch{
		Fetch: func(context.Context) ([]apiclient.RequestDetail, error) {
			d := running()
			switch len(pauses) {
			case 4:
				d.Status = bench.Completed
			case 3:
				clock = clock.Add(reads[3])
				return nil, errAway
			default:
				clock = clock.Add(reads[len(pauses)])
			}
			return []apiclient.RequestDetail{d}, nil
		},
		Transient: func(err error) bool { return errors.Is(err, errAway) },
		Patience:  time.Hour, Every: time.Second,
		Show: func([]apiclient.RequestDetail, error) error { return nil },
		Now:  func() time.Time { return clock },
		Pause: func(_ context.Context, d time.Duration) error {
			pauses = append(pauses, d)
			return nil
		},
	}
	_, err := w.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 10 * time.Second, time.Second}, pauses)
}

// Ctrl-C during a read or a pause.
func TestWatchIsCancelled(t *testing.T) {
	t.Parallel()
	stop := errors.New("interrupted")
	for _, inPause := range []bool{true, false} {
		ctx, cancel := context.WithCancelCause(t.Context())
		w := cli.Watch{
			Fetch: func(context.Context) ([]apiclient.RequestDetail, error) {
				if !inPause {
					cancel(stop)
					return nil, errAway
				}
				return []apiclient.RequestDetail{running()}, nil
			},
			Show: func([]apiclient.RequestDetail, error) error { return nil },
			Now:  func() time.Time { return now },
			Pause: func(ctx context.Context, _ time.Duration) error {
				cancel(stop)
				return context.Cause(ctx)
			},
		}
		_, err := w.Run(ctx)
		require.ErrorIs(t, err, stop)
	}
}

// Without a terminal, each change is a line.
func TestChanges(t *testing.T) {
	t.Parallel()
	first := running()
	first.Progress.EstimateSeconds = nil
	list := func(d apiclient.RequestDetail) []apiclient.RequestDetail { return []apiclient.RequestDetail{d} }

	require.Equal(t, []string{
		"r7k2m4q9xt2 job bbbbbbbbbbbbbbbb (compiletime gc vet x86_64-unknown-linux-gnu): in progress on bench-1",
		"r7k2m4q9xt2 go 1.26.0: in progress, 2/4 jobs, 8/16 test cases, 1 failed",
	}, cli.Changes(nil, list(first)), "at first, what goes on")

	later := running()
	later.Progress.EstimateSeconds = pointer(10.0)
	later.Runs[2].Progress.Iteration = 4
	require.Empty(t, cli.Changes(list(first), list(later)), "estimates and iterations are no changes")

	later.Jobs[1].Status, later.Jobs[1].Message = bench.JobFailure, "lost\x1b"
	later.Jobs[3].Status = bench.JobHandedOut
	later.Runs[2].Outcome = bench.RunFailure
	later.Progress.JobsDone = 3
	require.Equal(t, []string{
		"r7k2m4q9xt2 job bbbbbbbbbbbbbbbb (compiletime gc vet x86_64-unknown-linux-gnu): failure: lost\uFFFD",
		"r7k2m4q9xt2 go 1.26.0: in progress, 3/4 jobs, 8/16 test cases, 1 failed",
	}, cli.Changes(list(first), list(later)))
}
