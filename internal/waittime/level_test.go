package waittime_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/waittime"
)

func quarter(string) time.Duration { return waittime.DefaultObjective }

func TestAServiceLevelCountsWhatIsDecided(t *testing.T) {
	t.Parallel()
	place := waittime.Place{Pool: "p", Queue: "q"}
	started := func(minute int, waited time.Duration, jobs int) waittime.Sample {
		return waittime.Sample{Place: place, Runnable: at(minute), Waited: waited, Started: true, Jobs: jobs}
	}
	waiting := func(minute int, waited time.Duration, still waittime.Reason) waittime.Sample {
		return waittime.Sample{Place: place, Runnable: at(minute), Waited: waited, Still: still, Jobs: 1}
	}
	samples := []waittime.Sample{
		started(61, time.Minute, 6), started(74, 15*time.Minute, 1), started(75, 16*time.Minute, 2),
		waiting(100, 10*time.Minute, ""),                // nobody knows yet
		waiting(20, 50*time.Minute, ""),                 // late already, since before the period
		waiting(110, 0, waittime.Pause),                 // could never run
		waiting(80, 20*time.Minute, waittime.Collector), // late before it could not run any more
	}
	samples[1].Blocked = map[waittime.Reason]time.Duration{waittime.Limit: time.Hour, waittime.Turn: 0}
	all, places := waittime.Sum(samples, waittime.Query{From: at(60), Block: waittime.ShortBlock, Objective: quarter})
	require.Len(t, places, 1)
	want := waittime.Level{
		Place: place, Objective: 15 * time.Minute,
		Figures: waittime.Figures{
			Started: 9, Waiting: 2, Overdue: 2, Within: 7,
			Median: time.Minute, Ninth: 20 * time.Minute, Longest: 50 * time.Minute,
		},
		Steps:   [waittime.Steps]int{6, 4, 0, 1},
		Blocked: map[waittime.Reason]time.Duration{waittime.Limit: time.Hour}, BlockedNow: map[waittime.Reason]int{waittime.Pause: 1, waittime.Collector: 1},
		Blocks: []waittime.Block{
			{at(60), waittime.Figures{Started: 7, Waiting: 1, Overdue: 1, Within: 7, Median: time.Minute, Ninth: 50 * time.Minute, Longest: 50 * time.Minute}},
			{at(75), waittime.Figures{Started: 2, Overdue: 1, Median: 16 * time.Minute, Ninth: 20 * time.Minute, Longest: 20 * time.Minute}},
			{at(90), waittime.Figures{Waiting: 1}},
		},
	}
	require.Equal(t, want, places[0])
	share, counts := all.Share()
	require.True(t, counts)
	require.InDelta(t, 7.0/11, share, 1e-9)
	want.Place = waittime.Place{}
	require.Equal(t, want, all)

	_, counts = all.Blocks[2].Share()
	require.False(t, counts)
}

// Blocks of two hours begin at even hours, and hold what their eight blocks do; queues are
// judged by their own objectives.
func TestBlocksAddUp(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(16, 5))
	var samples []waittime.Sample
	var waits []time.Duration
	for range 500 {
		one := waittime.Sample{
			Place:    waittime.Place{Pool: []string{"a", "b"}[random.IntN(2)], Queue: []string{"strict", "usual"}[random.IntN(2)]},
			Runnable: at(random.IntN(24 * 60)), Waited: waittime.Rounded(time.Duration(random.Int64N(int64(2 * time.Hour)))),
			Started: true, Jobs: 1 + random.IntN(3),
		}
		for range one.Jobs {
			waits = append(waits, one.Waited)
		}
		samples = append(samples, one)
	}
	objective := func(queue string) time.Duration {
		if queue == "strict" {
			return time.Minute
		}
		return waittime.DefaultObjective
	}
	sum := func(length time.Duration) (waittime.Level, []waittime.Level) {
		return waittime.Sum(samples, waittime.Query{From: at(0), Block: length, Objective: objective})
	}
	short, _ := sum(waittime.ShortBlock)
	long, places := sum(waittime.LongBlock)
	require.Equal(t, short.Figures, long.Figures)
	require.Len(t, long.Blocks, 12)
	require.Zero(t, long.Objective)
	slices.Sort(waits)
	n := len(waits)
	require.Equal(t, waittime.Figures{
		Started: n, Within: long.Within, Median: waits[(n+1)/2-1], Ninth: waits[(n*9+9)/10-1], Longest: waits[n-1],
	}, long.Figures)
	for _, block := range long.Blocks {
		started, within := 0, 0
		for _, part := range short.Blocks {
			if !part.From.Before(block.From) && part.From.Before(block.From.Add(waittime.LongBlock)) {
				started, within = started+part.Started, within+part.Within
			}
		}
		require.Equal(t, []int{started, within}, []int{block.Started, block.Within}, "block of %s", block.From)
		require.Zero(t, block.From.Hour()%2)
	}
	require.Len(t, places, 4)
	started, within, steps := 0, 0, 0
	for _, place := range places {
		require.Equal(t, objective(place.Queue), place.Objective)
		started, within = started+place.Started, within+place.Within
		want := 0
		for _, s := range samples {
			if s.Place == place.Place && s.Waited <= place.Objective {
				want += s.Jobs
			}
		}
		require.Equal(t, want, place.Within)
		for _, jobs := range place.Steps {
			steps += jobs
		}
	}
	require.Equal(t, []int{n, long.Within, n}, []int{started, within, steps})
}

func TestWaitingTimesAreRoundedUp(t *testing.T) {
	t.Parallel()
	require.Equal(t, time.Duration(0), waittime.Rounded(0))
	require.Equal(t, 100*time.Millisecond, waittime.Rounded(1))
	require.Equal(t, 15*time.Minute, waittime.Rounded(15*time.Minute))
	require.Equal(t, 15*time.Minute+100*time.Millisecond, waittime.Rounded(15*time.Minute+time.Millisecond))
}
