package waittime_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/waittime"
)

// at is a moment some minutes after midnight.
func at(minutes int) time.Time {
	return time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC).Add(time.Duration(minutes) * time.Minute)
}

func between(from, to int) waittime.Span { return waittime.Span{From: at(from), To: at(to)} }

func TestTimeInWhichAJobCouldNotRunStandsApart(t *testing.T) {
	t.Parallel()
	type blocked = map[waittime.Reason]time.Duration
	for name, c := range map[string]struct {
		ready, end int
		obstacles  []waittime.Obstacle
		runnable   int
		waited     time.Duration
		blocked    blocked
		still      waittime.Reason
	}{
		"nothing": {ready: 10, end: 30, runnable: 10, waited: 20 * time.Minute, blocked: blocked{}},
		"at first": {
			ready: 10, end: 30, obstacles: []waittime.Obstacle{{waittime.Pause, between(0, 25)}},
			runnable: 25, waited: 5 * time.Minute, blocked: blocked{waittime.Pause: 15 * time.Minute},
		},
		"in between": {
			ready: 10, end: 30, obstacles: []waittime.Obstacle{{waittime.Collector, between(12, 20)}},
			runnable: 10, waited: 12 * time.Minute, blocked: blocked{waittime.Collector: 8 * time.Minute},
		},
		"two at once count once, for the first reason": {
			ready: 10, end: 30, obstacles: []waittime.Obstacle{{waittime.Collector, between(10, 20)}, {waittime.Pause, between(15, 25)}},
			runnable: 25, waited: 5 * time.Minute, blocked: blocked{waittime.Collector: 5 * time.Minute, waittime.Pause: 10 * time.Minute},
		},
		"until now, without an end": {
			ready: 10, end: 30, obstacles: []waittime.Obstacle{{waittime.Limit, waittime.Span{From: at(20)}}},
			runnable: 10, waited: 10 * time.Minute, blocked: blocked{waittime.Limit: 10 * time.Minute}, still: waittime.Limit,
		},
		"all of the time": {
			ready: 10, end: 30, obstacles: []waittime.Obstacle{{waittime.Turn, waittime.Span{}}},
			runnable: 30, blocked: blocked{waittime.Turn: 20 * time.Minute}, still: waittime.Turn,
		},
		"before and after": {
			ready: 10, end: 30, obstacles: []waittime.Obstacle{{waittime.Turn, between(0, 10)}, {waittime.Pause, between(30, 40)}, {waittime.Limit, between(15, 15)}},
			runnable: 10, waited: 20 * time.Minute, blocked: blocked{},
		},
		"a clock that was set": {ready: 30, end: 10, obstacles: []waittime.Obstacle{{waittime.Pause, between(0, 50)}}, runnable: 10, blocked: blocked{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, waittime.Wait{Runnable: at(c.runnable), Waited: c.waited, Blocked: c.blocked, Still: c.still},
				waittime.Measure(at(c.ready), at(c.end), c.obstacles))
		})
	}
}

// Minute by minute, each is counted once: as waiting if nothing keeps the job from running,
// else for the first reason that does.
func TestEachMinuteCountsOnce(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(16, 3))
	for range 2000 {
		ready := random.IntN(30)
		end := ready + random.IntN(60)
		var obstacles []waittime.Obstacle
		for range random.IntN(6) {
			from := random.IntN(100) - 10
			o := waittime.Obstacle{Reason: waittime.Reasons()[random.IntN(len(waittime.Reasons()))], Span: between(from, from+random.IntN(40))}
			if random.IntN(10) == 0 {
				o.To = time.Time{}
			}
			obstacles = append(obstacles, o)
		}
		want := waittime.Wait{Runnable: at(end), Blocked: make(map[waittime.Reason]time.Duration)}
		for minute := ready; minute < end; minute++ {
			want.Still = ""
			for _, reason := range waittime.Reasons() {
				for _, o := range obstacles {
					if o.Reason == reason && want.Still == "" && !at(minute).Before(o.From) && (o.To.IsZero() || at(minute).Before(o.To)) {
						want.Still = reason
					}
				}
			}
			if want.Still != "" {
				want.Blocked[want.Still] += time.Minute
				continue
			}
			if want.Waited == 0 {
				want.Runnable = at(minute)
			}
			want.Waited += time.Minute
		}
		got := waittime.Measure(at(ready), at(end), obstacles)
		require.Equal(t, want, got, "from %d to %d with %v", ready, end, obstacles)
		whole := got.Waited
		for _, took := range got.Blocked {
			whole += took
		}
		require.Equal(t, at(end).Sub(at(ready)), whole)
	}
}

// Gaps and what others cover are the whole, and nothing twice.
func TestGapsAreWhatNothingCovers(t *testing.T) {
	t.Parallel()
	require.Equal(t, []waittime.Span{between(0, 60)}, waittime.Gaps(between(0, 60), nil))
	require.Empty(t, waittime.Gaps(between(0, 60), []waittime.Span{{}}))
	require.Equal(t, []waittime.Span{between(0, 10), between(30, 40)},
		waittime.Gaps(between(0, 60), []waittime.Span{{From: at(40)}, between(20, 30), between(10, 25)}))
	random := rand.New(rand.NewPCG(16, 4))
	for range 2000 {
		var others []waittime.Span
		for range random.IntN(6) {
			from := random.IntN(80) - 10
			others = append(others, between(from, from+random.IntN(30)))
		}
		covered := func(spans []waittime.Span, minute int) (n int) {
			for _, s := range spans {
				if !at(minute).Before(s.From) && at(minute).Before(s.To) {
					n++
				}
			}
			return n
		}
		gaps := waittime.Gaps(between(0, 60), others)
		for minute := -10; minute < 70; minute++ {
			want := 0
			if minute >= 0 && minute < 60 && covered(others, minute) == 0 {
				want = 1
			}
			require.Equal(t, want, covered(gaps, minute), "minute %d of %v", minute, others)
		}
	}
}
