package machinegate_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/machinegate"
)

const (
	headStart = 40 * time.Millisecond
	minute    = time.Minute
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func lane(slot, queue string) machinegate.Lane { return machinegate.Lane{Slot: slot, Queue: queue} }

func config(budget int64) machinegate.Config {
	return machinegate.Config{Budget: budget, HeadStart: headStart, StarvedAfter: minute, HoldFor: 10 * time.Second, ReportFor: 15 * time.Second}
}

// machine is one collector that serves some queues.
func machine(t *testing.T, queues ...string) *machinegate.Gate {
	t.Helper()
	g, err := machinegate.New(config(1))
	require.NoError(t, err)
	require.NoError(t, g.Add("c", 1, start))
	g.Serve("c", queues)
	return g
}

// host is a shared host of 20 GB with a slot for each of its sizes in GB.
func host(t *testing.T, sizes map[string]int64) *machinegate.Gate {
	t.Helper()
	g, err := machinegate.New(config(20))
	require.NoError(t, err)
	for name, cost := range sizes {
		require.NoError(t, g.Add(name, cost, start))
		g.Serve(name, []string{"q" + name[:1]})
	}
	return g
}

func may(g *machinegate.Gate, at machinegate.Lane, now time.Time) bool {
	ok, _ := g.MayPoll(at, now)
	return ok
}

func TestACostHasToBeWithinTheBudget(t *testing.T) {
	t.Parallel()
	for _, budget := range []int64{0, -1} {
		_, err := machinegate.New(config(budget))
		require.ErrorIs(t, err, machinegate.ErrBudget)
	}
	g, err := machinegate.New(config(4))
	require.NoError(t, err)
	for _, cost := range []int64{0, -1, 5} {
		require.ErrorIs(t, g.Add("s", cost, start), machinegate.ErrBudget)
	}
	require.NoError(t, g.Add("s", 4, start))
	require.Error(t, g.Add("s", 4, start), "the name is taken")
}

// A machine with one queue polls it again the moment its job has ended.
func TestASingleQueueNeverWaits(t *testing.T) {
	t.Parallel()
	g := machine(t, "pool")
	for range 3 {
		require.True(t, may(g, lane("c", "pool"), start))
		require.True(t, g.Begin(lane("c", "pool"), start))
		require.False(t, may(g, lane("c", "pool"), start))
		g.End("c", start)
	}
}

// While a job runs no queue is polled, and a task that slips through is not
// taken.
func TestAMachineRunsOneJob(t *testing.T) {
	t.Parallel()
	g := machine(t, "pool", "set")
	require.True(t, may(g, lane("c", "pool"), start))
	require.True(t, may(g, lane("c", "set"), start))
	require.True(t, g.Begin(lane("c", "pool"), start))
	require.False(t, may(g, lane("c", "set"), start.Add(minute)))
	require.False(t, g.Begin(lane("c", "set"), start))
	require.False(t, g.Begin(lane("c", "gone"), start))
	require.False(t, g.Begin(lane("other", "pool"), start))
	g.End("c", start)
	g.End("c", start) // nothing more happens
	require.Zero(t, g.Used())
}

// The queue that was not served last has a head start, but only that.
func TestTheOtherQueueHasAHeadStart(t *testing.T) {
	t.Parallel()
	g := machine(t, "pool", "set", "other")
	now := start
	for _, q := range []string{"pool", "set"} {
		require.True(t, g.Begin(lane("c", q), now))
		g.End("c", now)
		now = now.Add(time.Second)
	}
	ended := now.Add(-time.Second)
	for queue, wait := range map[string]time.Duration{"other": 0, "pool": headStart, "set": 2 * headStart} {
		ok, again := g.MayPoll(lane("c", queue), ended)
		require.Equal(t, wait == 0, ok, queue)
		require.Equal(t, wait, again, queue)
		require.True(t, may(g, lane("c", queue), ended.Add(wait)), queue)
	}
}

// Queues that all have work are served in turn, even if another allowed poll is
// quicker.
func TestQueuesWithWorkTakeTurns(t *testing.T) {
	t.Parallel()
	queues := []string{"a", "b", "c", "d"}
	g := machine(t, queues...)
	random := rand.New(rand.NewPCG(1, 2))
	now := start
	var served []string
	for range 200 {
		var open []string
		for len(open) == 0 {
			for _, q := range queues {
				if may(g, lane("c", q), now) {
					open = append(open, q)
				}
			}
			now = now.Add(time.Millisecond)
		}
		q := open[random.IntN(len(open))]
		require.True(t, g.Begin(lane("c", q), now))
		now = now.Add(time.Duration(random.IntN(1000)) * time.Millisecond)
		g.End("c", now)
		served = append(served, q)
	}
	for i := range len(served) - len(queues) {
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(served[i:i+len(queues)]))), len(queues), "turn %d", i)
	}
}

// The state of a queue is kept when others come and go; a removed one is not
// polled.
func TestQueuesComeAndGo(t *testing.T) {
	t.Parallel()
	g := machine(t, "pool", "set")
	require.True(t, g.Begin(lane("c", "pool"), start))
	g.Serve("c", []string{"pool", "new"})
	g.End("c", start)
	require.False(t, may(g, lane("c", "set"), start))
	require.True(t, may(g, lane("c", "new"), start))
	require.False(t, may(g, lane("c", "pool"), start))
	// The queue of the running job is removed: the job continues, then the
	// machine is free.
	require.True(t, g.Begin(lane("c", "new"), start))
	g.Serve("c", []string{"pool"})
	require.Equal(t, []machinegate.Lane{lane("c", "new")}, g.Running())
	g.End("c", start)
	require.Empty(t, g.Running())
	require.True(t, may(g, lane("c", "pool"), start))
}

// Of three 8 GB jobs on 20 GB two run; a 4 GB job behind them starts at once.
func TestASharedHostFillsItsBudget(t *testing.T) {
	t.Parallel()
	g := host(t, map[string]int64{"2a": 8, "2b": 8, "2c": 8, "1a": 4, "4a": 16})
	require.True(t, g.Begin(lane("2a", "q2"), start))
	require.False(t, may(g, lane("4a", "q4"), start))
	require.True(t, g.Begin(lane("2b", "q2"), start))
	require.False(t, may(g, lane("2c", "q2"), start))
	require.False(t, g.Begin(lane("2c", "q2"), start))
	require.True(t, may(g, lane("1a", "q1"), start))
	require.True(t, g.Begin(lane("1a", "q1"), start))
	require.EqualValues(t, 20, g.Used())
	g.End("2a", start)
	require.True(t, may(g, lane("2c", "q2"), start))
	require.False(t, may(g, lane("4a", "q4"), start))
}

// In any order of events: never above the budget, never two jobs in a slot, and
// the cost counted is that of the running jobs.
func TestNeverAboveTheBudget(t *testing.T) {
	t.Parallel()
	sizes := map[string]int64{"1a": 4, "1b": 4, "1c": 4, "2a": 8, "2b": 8, "4a": 16}
	for seed := range uint64(50) {
		g := host(t, sizes)
		random := rand.New(rand.NewPCG(seed, 3))
		names := []string{"1a", "1b", "1c", "2a", "2b", "4a"}
		running := map[string]bool{}
		now := start
		for range 400 {
			now = now.Add(time.Duration(random.IntN(30)) * time.Second)
			name := names[random.IntN(len(names))]
			at := lane(name, "q"+name[:1])
			switch random.IntN(3) {
			case 0:
				open := may(g, at, now)
				began := g.Begin(at, now)
				require.True(t, began || !open, "what may be polled may run")
				require.False(t, began && running[name])
				running[name] = running[name] || began
			case 1:
				g.End(name, now)
				running[name] = false
			case 2:
				g.Report(name, map[string]time.Duration{at.Queue: time.Duration(random.IntN(200)) * time.Second}, now)
			}
			var used int64
			count := 0
			for n, is := range running {
				if is {
					used += sizes[n]
					count++
				}
			}
			require.Equal(t, used, g.Used())
			require.LessOrEqual(t, used, int64(20))
			require.Len(t, g.Running(), count)
		}
	}
}

// For a large job that has waited for too long, smaller ones that would delay
// it are held back until it runs.
func TestALargeJobIsNotStarved(t *testing.T) {
	t.Parallel()
	g := host(t, map[string]int64{"1a": 4, "1b": 4, "2a": 8, "4a": 16})
	require.True(t, g.Begin(lane("1a", "q1"), start))
	require.True(t, g.Begin(lane("1b", "q1"), start))
	now := start.Add(minute)
	g.Report("4a", map[string]time.Duration{"q4": minute - time.Second}, now)
	require.True(t, may(g, lane("2a", "q2"), now), "not yet")
	now = now.Add(time.Second)
	g.Report("4a", map[string]time.Duration{"q4": minute}, now)
	ok, again := g.MayPoll(lane("2a", "q2"), now)
	require.False(t, ok)
	require.Positive(t, again)
	g.End("1a", now)
	require.False(t, may(g, lane("1a", "q1"), now), "with another one still running it would be in the way")
	g.End("1b", now)
	require.True(t, may(g, lane("4a", "q4"), now))
	require.True(t, may(g, lane("1a", "q1"), now), "fits beside it")
	require.False(t, may(g, lane("2a", "q2"), now))
	require.True(t, g.Begin(lane("4a", "q4"), now))
	now = now.Add(time.Hour)
	g.Report("4a", map[string]time.Duration{"q4": time.Hour}, now)
	g.End("4a", now)
	require.True(t, may(g, lane("2a", "q2"), now), "it had its turn: the others have theirs")
	g.Report("4a", map[string]time.Duration{"q4": time.Hour}, now.Add(minute))
	require.False(t, may(g, lane("2a", "q2"), now.Add(minute)))
}

// Holding back ends when no job comes or no report arrives, and does not begin
// where it would not help.
func TestHoldingBackEnds(t *testing.T) {
	t.Parallel()
	waits := map[string]time.Duration{"q4": time.Hour}
	sizes := map[string]int64{"2a": 8, "4a": 16, "4b": 16}
	small, large := lane("2a", "q2"), lane("4a", "q4")

	g := host(t, sizes)
	g.Report("4a", waits, start)
	require.False(t, may(g, small, start))
	require.True(t, may(g, small, start.Add(15*time.Second)), "an old report says nothing")

	g = host(t, sizes)
	for at := time.Duration(0); at < 10*time.Second; at += 3 * time.Second {
		g.Report("4a", waits, start.Add(at))
		require.False(t, may(g, small, start.Add(at)), at)
	}
	g.Report("4a", waits, start.Add(12*time.Second))
	require.True(t, may(g, small, start.Add(12*time.Second)), "nothing came")

	g = host(t, sizes)
	g.Report("4a", map[string]time.Duration{}, start)
	require.True(t, may(g, small, start), "nothing waits")

	g = host(t, map[string]int64{"1a": 4, "2a": 8, "4a": 16})
	require.True(t, g.Begin(large, start))
	g.Report("2a", map[string]time.Duration{"q2": time.Hour}, start)
	require.True(t, may(g, lane("1a", "q1"), start), "it waits for the large one, not for small ones")
}

// Among endless small jobs, a large one starts within the limit plus the
// duration of the running jobs.
func TestALargeJobRunsAmongSmallOnesWithoutEnd(t *testing.T) {
	t.Parallel()
	names := []string{"1a", "1b", "1c", "1d", "1e"}
	sizes := map[string]int64{"4a": 16}
	for _, n := range names {
		sizes[n] = 4
	}
	const longest = 10 * time.Second
	for seed := range uint64(20) {
		g := host(t, sizes)
		random := rand.New(rand.NewPCG(seed, 4))
		ends := map[string]time.Time{}
		var began time.Time
		for now := start; began.IsZero(); now = now.Add(100 * time.Millisecond) {
			require.Less(t, now.Sub(start), minute+longest+5*time.Second)
			if now.Sub(start)%(3*time.Second) == 0 {
				g.Report("4a", map[string]time.Duration{"q4": now.Sub(start)}, now)
			}
			for _, n := range names {
				if end, ok := ends[n]; ok && !now.Before(end) {
					g.End(n, now)
					delete(ends, n)
				}
			}
			for _, n := range names {
				if may(g, lane(n, "q1"), now) {
					require.True(t, g.Begin(lane(n, "q1"), now))
					ends[n] = now.Add(time.Duration(random.Int64N(int64(longest))))
				}
			}
			if may(g, lane("4a", "q4"), now) && g.Begin(lane("4a", "q4"), now) {
				began = now
			}
		}
	}
}
