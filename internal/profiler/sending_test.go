package profiler_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/profiler"
)

func TestP15EveryTenSecondsAFullBatchOfEachSeriesIsSent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		got := &receiver{}
		network := &source{collect: func() (profiler.Collected, error) {
			return profiler.Collected{
				Values: []profiler.Value{
					{Metric: profiler.NetThroughputSent, Device: "eth0", Value: float64(time.Now().UnixMilli()), Counter: true},
					{Metric: profiler.NetThroughputSent, Value: float64(time.Now().UnixMilli()), Counter: true},
				},
				Absent: map[profiler.Metric]string{profiler.CPUFrequency: "not shown"},
			}, nil
		}}
		a := newAgent(t, config(got, memory(), network))
		begin := time.Now()
		a.Start(t.Context())
		for n := range 45 {
			time.Sleep(time.Second - time.Millisecond)
			phase(a, "measure")
			time.Sleep(time.Millisecond)
			require.NoError(t, a.UpdateBatch(n))
		}
		a.End()
		uploads := got.uploads()
		require.Len(t, uploads, 5)
		for n, u := range uploads[:4] {
			require.Len(t, u.Batches, 4)
			for _, b := range u.Batches {
				require.Len(t, b.Batches, len(b.Values))
				require.Len(t, b.Times, len(b.Values))
				want := 100
				if b.Scope == profiler.ScopeTiming {
					want = 10
				}
				require.InDelta(t, want, len(b.Values), 1, b.Series)
				require.Equal(t, "run-1", b.Attempt)
				require.Equal(t, "m1", b.Host)
				require.Equal(t, n, b.Sequence)
				require.Equal(t, b.Series.Unit(), b.Unit)
				from := time.Duration(n) * profiler.FlushInterval
				require.WithinRange(t, b.Times[0], begin.Add(from), begin.Add(from+time.Second))
			}
			require.Equal(t, []profiler.Absence{{Scope: profiler.ScopeJob, Metric: profiler.CPUFrequency, Reason: "not shown"}}, u.Absent)
		}
		require.Equal(t, profiler.Series{Scope: profiler.ScopeJob, Name: "net_throughput_sent", Device: "eth0"}, uploads[0].Batches[2].Series)
		for try, at := range got.tried()[:4] {
			require.Equal(t, time.Duration(try+1)*profiler.FlushInterval, at.Sub(begin))
		}
	})
}

func TestP16RecordingNeverWaitsAndCountsWhatItDrops(t *testing.T) {
	bubble(t, func(t *testing.T) {
		got := &receiver{answer: func(ctx context.Context, _ profiler.Upload) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		a := newAgent(t, config(got))
		a.Start(t.Context())
		begin := time.Now()
		// More phases of more names than are kept.
		const names, phases = 50, 4000
		for n := range names {
			name := fmt.Sprintf("phase %d", n)
			for range phases {
				phase(a, name)
			}
		}
		for _, name := range []string{"", strings.Repeat("x", 1_000_000), "two\nlines", "\xff"} {
			phase(a, name)
		}
		a.RecordTiming("backwards", begin.Add(time.Second), begin)
		require.Zero(t, time.Since(begin), "nothing waited")
		require.EqualValues(t, names*phases+5, a.End().Dropped, "the kept ones could not be sent")
	})
}

func TestP16AFullQueueDropsUploadsAndCountsThem(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		got := &receiver{answer: func(context.Context, profiler.Upload) error { // ignores its context
			<-release
			return nil
		}}
		a := newAgent(t, config(got, memory()))
		a.Start(t.Context())
		time.Sleep(4*time.Minute + 59*time.Second)
		close(release)
		time.Sleep(2 * time.Second)
		totals := a.End()
		// One is being sent and sixteen wait: 17 of the 29 full batches. The thirtieth has room again.
		require.InDelta(t, 12*100, totals.Dropped, 1)
		require.EqualValues(t, 3000, totals.Sent+totals.Dropped)
		require.Equal(t, totals.Dropped, got.uploads()[17].DroppedTotal, "the receiver is told")
		sequences := flat(got.batches(profiler.ScopeJob, memoryUsed), func(b profiler.Batch) []int { return []int{b.Sequence} })
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 29}, sequences)
	})
}

func TestP17AFailedUploadIsSentOnceMoreThenTheNextOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			failure error
			fails   int // how often the second upload fails
			tries   []time.Duration
			arrived []int
			logged  int
		}{
			"once":     {errors.New("500"), 1, []time.Duration{10, 20, 21, 30}, []int{0, 1, 2}, 0},
			"twice":    {errors.New("502"), 2, []time.Duration{10, 20, 21, 30}, []int{0, 2}, 1},
			"for good": {fmt.Errorf("409: %w", profiler.ErrRefused), 1, []time.Duration{10, 20, 30}, []int{0, 2}, 1},
		} {
			fails := 0
			got, written := &receiver{}, &notes{}
			got.answer = func(_ context.Context, u profiler.Upload) error {
				if u.Batches[0].Sequence == 1 && fails < c.fails {
					fails++
					return c.failure
				}
				return nil
			}
			conf := config(got, memory())
			conf.Log = written.log()
			a := newAgent(t, conf)
			begin := time.Now()
			a.Start(t.Context())
			time.Sleep(30*time.Second + 50*time.Millisecond)
			tries := got.tried()
			a.End()
			var at []time.Duration
			for _, try := range tries {
				at = append(at, try.Sub(begin)/time.Second)
			}
			require.Equal(t, c.tries, at, name)
			sequences := flat(got.batches(profiler.ScopeJob, memoryUsed), func(b profiler.Batch) []int { return []int{b.Sequence} })
			require.Equal(t, append(c.arrived, 3), sequences, name)
			require.Equal(t, c.logged, written.count("dropping samples"), name)
		}
	})
}

// An older receiver knows nothing of samples: it is asked once, and that is not worth a warning.
func TestP17NothingMoreIsSentOnceNobodyTakesIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		got, written := &receiver{answer: func(context.Context, profiler.Upload) error { return fmt.Errorf("404: %w", profiler.ErrNoReceiver) }}, &notes{}
		c := config(got, memory())
		c.Log = written.log()
		a := newAgent(t, c)
		a.Start(t.Context())
		time.Sleep(2*time.Minute + 50*time.Millisecond)
		totals := a.End()
		require.Len(t, got.tried(), 1)
		require.Equal(t, profiler.Totals{Dropped: 1202}, totals)
		require.Zero(t, written.count("404"))
	})
}

func TestP17APanickingSenderIsAFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		got, written := &receiver{answer: func(context.Context, profiler.Upload) error { panic("nil map") }}, &notes{}
		c := config(got, memory())
		c.Log = written.log()
		a := newAgent(t, c)
		a.Start(t.Context())
		time.Sleep(25 * time.Second)
		require.Zero(t, a.End().Sent)
		require.Len(t, got.tried(), 2+2+1)
		require.Equal(t, 1, written.count("nil map"), "once a minute")
	})
}

func TestP18AServerThatHangsDelaysNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		hung := true
		got := &receiver{}
		got.answer = func(context.Context, profiler.Upload) error { // ignores its context
			if hung {
				hung = false
				time.Sleep(time.Minute)
			}
			return nil
		}
		a := newAgent(t, config(got, memory()))
		begin := time.Now()
		a.Start(t.Context())
		for n := range 120 {
			step := time.Now()
			require.NoError(t, a.UpdateBatch(n))
			phase(a, "measure")
			require.Equal(t, step, time.Now(), "steps")
			time.Sleep(time.Second)
		}
		time.Sleep(50 * time.Millisecond)
		a.End()
		times := got.times(profiler.ScopeJob, memoryUsed)
		for n := range 1201 {
			require.Equal(t, time.Duration(n)*profiler.Interval, times[n].Sub(begin), "samples")
		}
		for n, b := range got.batches(profiler.ScopeJob, memoryUsed)[:12] {
			require.Equal(t, n, b.Sequence)
			require.InDelta(t, 100, len(b.Values), 1, "boundaries of batches")
		}
		require.Zero(t, a.End().Dropped)
	})
}

func TestP19PartialBatchesAreSentAtANormalEndOnly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			end     func(a *profiler.Agent, cancel context.CancelFunc)
			partial bool
		}{
			"the end of the run":     {func(a *profiler.Agent, _ context.CancelFunc) { a.End() }, true},
			"the end of the window":  {func(a *profiler.Agent, _ context.CancelFunc) { _ = a.UpdateBatch(4) }, true},
			"cancelling":             {func(_ *profiler.Agent, cancel context.CancelFunc) { cancel() }, false},
			"cancelling and the end": {func(a *profiler.Agent, cancel context.CancelFunc) { cancel(); synctest.Wait(); a.End() }, false},
		} {
			got := &receiver{}
			conf := config(got, memory())
			conf.EndAfterBatch = pointer(3)
			a := newAgent(t, conf)
			ctx, cancel := context.WithCancel(t.Context())
			a.Start(ctx)
			time.Sleep(14*time.Second + 50*time.Millisecond)
			c.end(a, cancel)
			synctest.Wait()
			batches := got.batches(profiler.ScopeJob, memoryUsed)
			if c.partial {
				require.Len(t, batches, 2, name)
				require.Less(t, len(batches[1].Values), 50, name)
			} else {
				require.Len(t, batches, 1, name)
			}
			require.InDelta(t, 100, len(batches[0].Values), 1, name)
			totals := a.End()
			require.Equal(t, c.partial, totals.Dropped == 0, name)
			cancel()
		}
	})
}

func TestP19TheLimitFindsAFullBatch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		got := &receiver{}
		a := newAgent(t, config(got, memory()))
		a.Start(t.Context())
		time.Sleep(profiler.MaxActive + time.Second)
		batches := got.batches(profiler.ScopeJob, memoryUsed)
		require.Len(t, batches, 30)
		for _, b := range batches {
			require.InDelta(t, 100, len(b.Values), 1)
		}
		require.Equal(t, profiler.Totals{Sent: 3000}, a.End())
	})
}

func TestP20EndIsBoundedWhateverHangs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			answer  func(ctx context.Context, release <-chan struct{}) error
			collect func(release <-chan struct{}) (profiler.Collected, error)
			after   time.Duration
			within  time.Duration
		}{
			"a dead server":               {answer: func(context.Context, <-chan struct{}) error { return errors.New("connection refused") }},
			"a hung server":               {answer: func(ctx context.Context, _ <-chan struct{}) error { <-ctx.Done(); return ctx.Err() }},
			"one that nothing ends":       {answer: func(_ context.Context, release <-chan struct{}) error { <-release; return nil }},
			"a full queue":                {answer: func(ctx context.Context, release <-chan struct{}) error { <-release; return nil }, after: 4 * time.Minute},
			"a panicking sender":          {answer: func(context.Context, <-chan struct{}) error { panic("nil map") }},
			"a panicking collector":       {collect: func(<-chan struct{}) (profiler.Collected, error) { panic("nil map") }},
			"a hung collector":            {collect: func(release <-chan struct{}) (profiler.Collected, error) { <-release; return profiler.Collected{}, nil }},
			"a hung collector and server": {answer: func(_ context.Context, release <-chan struct{}) error { <-release; return nil }, collect: func(release <-chan struct{}) (profiler.Collected, error) { <-release; return profiler.Collected{}, nil }},
			"nothing":                     {within: profiler.Interval / 2},
		} {
			release := make(chan struct{})
			got := &receiver{answer: func(ctx context.Context, _ profiler.Upload) error {
				if c.answer == nil {
					return nil
				}
				return c.answer(ctx, release)
			}}
			odd := &source{collect: func() (profiler.Collected, error) {
				if c.collect == nil {
					return profiler.Collected{}, nil
				}
				return c.collect(release)
			}}
			a := newAgent(t, config(got, memory(), odd))
			a.Start(t.Context())
			time.Sleep(c.after + 25*time.Second)
			begin := time.Now()
			a.End()
			if c.within == 0 {
				c.within = profiler.EndWithin
			}
			require.LessOrEqual(t, time.Since(begin), c.within, name)
			close(release)
			synctest.Wait()
		}
	})
}

func TestP21ACancelledContextEndsEverything(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for name, activate := range map[string]bool{"active": true, "waiting for its first batch": false} {
			got, read := &receiver{}, memory()
			got.answer = func(ctx context.Context, _ profiler.Upload) error {
				<-ctx.Done()
				return ctx.Err()
			}
			c := config(got, read)
			if !activate {
				c.StartOnBatch = 1
			}
			a := newAgent(t, c)
			ctx, cancel := context.WithCancel(t.Context())
			a.Start(ctx)
			time.Sleep(12 * time.Second)
			cancel()
			synctest.Wait()
			require.Equal(t, 1, read.closed, "%s: collectors are closed", name)
			tries := len(got.tried())
			require.NoError(t, a.UpdateBatch(5), name)
			phase(a, "measure")
			time.Sleep(time.Hour)
			require.Len(t, got.tried(), tries, name)
			require.Zero(t, a.End().Sent, name)
		}
	})
}

// exitWhileProfiling is a program that ends in the middle of everything.
func exitWhileProfiling() {
	hung := &receiver{answer: func(context.Context, profiler.Upload) error { select {} }}
	forever := &source{collect: func() (profiler.Collected, error) { select {} }}
	a, err := profiler.New(config(hung, memory(), forever))
	if err != nil {
		panic(err)
	}
	a.Start(context.Background())
	a.RecordTiming("fetch", time.Now(), time.Now())
	fmt.Println("the end")
}

func TestP21AProcessEndsWithoutWaiting(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	program := exec.CommandContext(ctx, os.Args[0])
	program.Env = append(os.Environ(), "PROFILER_TEST_EXIT=1")
	output, err := program.CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.Contains(t, string(output), "the end")
}

func TestP22AnAttemptHasBoundedSeriesAndValues(t *testing.T) {
	bubble(t, func(t *testing.T) {
		got := &receiver{}
		calls := 0
		many := &source{collect: func() (profiler.Collected, error) {
			var c profiler.Collected
			if calls++; calls > 150 {
				return c, nil
			}
			for n := range profiler.MaxSystemSeries + 100 {
				c.Values = append(c.Values, profiler.Value{Metric: profiler.GPUUtil, Device: fmt.Sprintf("GPU-%d", n), Value: 0.5})
			}
			return c, nil
		}}
		a := newAgent(t, config(got, memory(), many))
		a.Start(t.Context())
		for range profiler.MaxValues + 100 {
			phase(a, "often")
		}
		for n := range 100 {
			for range 100 {
				phase(a, fmt.Sprintf("phase %d", n%50))
			}
			time.Sleep(5 * time.Second)
		}
		a.End()
		values := map[profiler.Series]int{}
		for _, u := range got.uploads() {
			for _, b := range u.Batches {
				values[b.Series] += len(b.Values)
			}
		}
		system, timings := 0, 0
		for series, n := range values {
			require.LessOrEqual(t, n, profiler.MaxValues)
			if series.Scope == profiler.ScopeTiming {
				timings++
			} else {
				system++
			}
		}
		require.Equal(t, profiler.MaxValues, values[profiler.Series{Scope: profiler.ScopeJob, Name: memoryUsed}])
		require.Equal(t, profiler.MaxValues, values[profiler.Series{Scope: profiler.ScopeTiming, Name: "often"}])
		require.Equal(t, profiler.MaxSystemSeries, system)
		require.Equal(t, profiler.MaxTimingSeries, timings)
		require.Equal(t, 3000, profiler.MaxValues, "10 Hz for 300 s")
		require.Positive(t, a.End().Dropped)
	})
}

func TestP22NoValueIsNotANumber(t *testing.T) {
	bubble(t, func(t *testing.T) {
		got := &receiver{}
		odd := &source{collect: func() (profiler.Collected, error) {
			return profiler.Collected{Values: []profiler.Value{
				{Metric: profiler.CPUTemperature, Value: math.NaN()},
				{Metric: profiler.CPUFrequency, Value: math.Inf(1)},
				{Metric: profiler.MemoryUsed, Device: strings.Repeat("x", 1_000_000), Value: 1},
				{Metric: profiler.CPUPressure, Value: 1.7},
			}}, nil
		}}
		a := newAgent(t, config(got, odd))
		a.Start(t.Context())
		time.Sleep(150 * time.Millisecond)
		require.Equal(t, profiler.Totals{Sent: 3, Dropped: 9}, a.End())
		require.Equal(t, []float64{1, 1, 1}, got.values(profiler.ScopeJob, string(profiler.CPUPressure)), "a ratio is at most 1")
	})
}

func TestP23AttemptsHaveSeriesOfTheirOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		got := &receiver{}
		lost := true
		got.answer = func(_ context.Context, u profiler.Upload) error {
			if lost && u.Batches[0].Sequence == 1 {
				lost = false
				got.mu.Lock()
				defer got.mu.Unlock()
				got.got = append(got.got, u) // stored, and the answer was lost
				return errors.New("connection reset")
			}
			return nil
		}
		for _, attempt := range []string{"run-1", "run-2"} {
			c := config(got, memory())
			c.Attempt = attempt
			a := newAgent(t, c)
			ctx, kill := context.WithCancel(t.Context())
			a.Start(ctx)
			time.Sleep(25 * time.Second)
			kill()
			synctest.Wait()
		}
		type key struct {
			attempt  string
			sequence int
		}
		times := map[key]int{}
		for _, b := range got.batches(profiler.ScopeJob, memoryUsed) {
			times[key{b.Attempt, b.Sequence}]++
		}
		require.Equal(t, map[key]int{{"run-1", 0}: 1, {"run-1", 1}: 2, {"run-2", 0}: 1, {"run-2", 1}: 1}, times,
			"what arrives twice has the same number")

		c := config(got)
		c.Attempt = ""
		_, err := profiler.New(c)
		require.ErrorContains(t, err, "series of two attempts must not mix")
	})
}

func TestP26TheUnitOfEachSeriesIsInItsMetadata(t *testing.T) {
	t.Parallel()
	require.Equal(t, profiler.Seconds, profiler.Series{Scope: profiler.ScopeTiming, Name: "cpu_util"}.Unit())
	require.Empty(t, profiler.Series{Scope: profiler.ScopeMachine, Name: "cpu_utilisation"}.Unit())

	// The table of docs/profiling.md has every metric, with its unit.
	text, err := os.ReadFile("../../docs/profiling.md")
	require.NoError(t, err)
	documented := map[profiler.Metric]profiler.Unit{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) == 6 && strings.HasPrefix(cells[1], " `") {
			for name := range strings.SplitSeq(strings.Trim(cells[1], " "), ", ") {
				documented[profiler.Metric(strings.Trim(name, "`"))] = profiler.Unit(strings.TrimSpace(cells[3]))
			}
		}
	}
	require.Equal(t, profiler.Units, documented)
}
