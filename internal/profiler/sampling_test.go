package profiler_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/profiler"
)

// offsets returns the times of samples since the first one.
func offsets(times []time.Time) []time.Duration {
	var all []time.Duration
	for _, at := range times {
		all = append(all, at.Sub(times[0]))
	}
	return all
}

func TestP10MissedSamplesAreSkippedAndNeverSentAsABurst(t *testing.T) {
	const ms = time.Millisecond
	bubble(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			stall  time.Duration // of the third sample
			within time.Duration // by how much its time is uncertain
			want   []time.Duration
		}{
			"none":                      {0, 0, []time.Duration{0, 100 * ms, 200 * ms, 300 * ms, 400 * ms}},
			"within the interval":       {30 * ms, 30 * ms, []time.Duration{0, 100 * ms, 200 * ms, 300 * ms, 400 * ms}},
			"nearly an interval":        {90 * ms, 0, []time.Duration{0, 100 * ms, 400 * ms, 500 * ms, 600 * ms}},
			"several intervals":         {240 * ms, 0, []time.Duration{0, 100 * ms, 500 * ms, 600 * ms, 700 * ms}},
			"until just before another": {290 * ms, 0, []time.Duration{0, 100 * ms, 600 * ms, 700 * ms, 800 * ms}},
			"a minute":                  {time.Minute, 0, []time.Duration{0, 100 * ms, 60300 * ms, 60400 * ms, 60500 * ms}},
		} {
			got := &receiver{}
			calls := 0
			stalling := &source{collect: func() (profiler.Collected, error) {
				if calls++; calls == 3 {
					time.Sleep(c.stall)
				}
				return profiler.Collected{Values: []profiler.Value{
					{Metric: profiler.MemoryUsed, Value: 1},
					// A counter that grows by 7 per second. It is read after the stall.
					{Metric: profiler.CPUUsed, Value: 7 * float64(time.Now().UnixNano()) / 1e9, Counter: true},
				}}, nil
			}}
			a := newAgent(t, config(got, stalling))
			a.Start(t.Context())
			time.Sleep(c.stall + 2*time.Second)
			a.End()
			times := offsets(got.times(profiler.ScopeJob, memoryUsed))
			require.Equal(t, c.want, times[:5], name)
			for n := range times[1:] {
				require.GreaterOrEqual(t, times[n+1]-times[n], profiler.Interval/2, name)
			}
			// A reading during a stall is of no known moment, and is left out.
			for _, rate := range got.values(profiler.ScopeJob, cpuUsed) {
				require.InDelta(t, 7, rate, 7*float64(c.within)/float64(profiler.Interval)+0.001, name)
			}
		}
	})
}

func TestP10NothingIsDividedByNoTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		// A clock without a monotonic part is set back by an hour, and stands still for a while.
		var back atomic.Int64
		var still atomic.Pointer[time.Time]
		got := &receiver{}
		c := config(got, processor(), memory())
		c.Now = func() time.Time {
			if at := still.Load(); at != nil {
				return *at
			}
			return time.Now().Round(0).Add(-time.Duration(back.Load()))
		}
		a := newAgent(t, c)
		a.Start(t.Context())
		time.Sleep(950 * time.Millisecond)
		back.Store(int64(time.Hour))
		time.Sleep(time.Second)
		still.Store(pointer(c.Now()))
		time.Sleep(time.Second)
		still.Store(nil)
		time.Sleep(time.Second)
		a.End()
		values := got.values(profiler.ScopeJob, cpuUsed)
		require.NotEmpty(t, values)
		for _, v := range values {
			require.False(t, math.IsNaN(v) || math.IsInf(v, 0))
			require.GreaterOrEqual(t, v, 0.0)
			require.LessOrEqual(t, v, 1.01, "half a CPU; the clock lost half of an interval")
		}
		require.Greater(t, len(got.values(profiler.ScopeJob, memoryUsed)), 30, "sampling goes on")
	})
}

func TestP10TimesAdvanceWithTheMonotonicClock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		got := &receiver{}
		a := newAgent(t, config(got, memory()))
		begin := time.Now()
		a.Start(t.Context())
		time.Sleep(30*time.Second + 50*time.Millisecond)
		a.End()
		times := got.times(profiler.ScopeJob, memoryUsed)
		for n := range 301 {
			require.Equal(t, time.Duration(n)*profiler.Interval, times[n].Sub(begin))
		}
	})
}

func TestP11RatesBeginWithTheSecondReadingAndUseTheRealTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		got := &receiver{}
		var total float64
		counter := &source{collect: func() (profiler.Collected, error) {
			total += 5 // per sample, whatever the time
			if total == 20 {
				time.Sleep(120 * time.Millisecond) // it is left out, and the next one is 200 ms later
			}
			return profiler.Collected{Values: []profiler.Value{
				{Metric: profiler.DiskIOPS, Value: 1e6 + total, Counter: true},
				{Metric: profiler.PageFaults, Value: 100 - total, Counter: true}, // runs backwards
			}}, nil
		}}
		a := newAgent(t, config(got, counter))
		a.Start(t.Context())
		time.Sleep(650 * time.Millisecond)
		a.End()
		// At 100, 200, 500 and 600 ms, and the last one after half an interval.
		rates := got.values(profiler.ScopeJob, string(profiler.DiskIOPS))
		require.InDeltaSlice(t, []float64{50, 50, 100. / 3, 50, 100}, rates, 1e-6)
		require.Empty(t, got.batches(profiler.ScopeJob, string(profiler.PageFaults)))
	})
}

// The next job waits for the end of this one, and a machine counts in ticks: a run that is shorter than one has only the rates
// of its group, at once.
func TestP11ARunShorterThanATickEndsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for took, machine := range map[time.Duration]int{3 * time.Millisecond: 0, 12 * time.Millisecond: 1} {
			got := &receiver{}
			c := config(got, processor(), memory())
			c.Machine, c.Lock = []profiler.Collector{processor()}, flock.New(filepath.Join(t.TempDir(), "profiler.lock"))
			a := newAgent(t, c)
			a.Start(t.Context())
			time.Sleep(took)
			ending := time.Now()
			a.End()
			require.Zero(t, time.Since(ending), took)
			require.Equal(t, []time.Duration{0, took}, offsets(got.times(profiler.ScopeJob, memoryUsed)))
			require.InDeltaSlice(t, []float64{0.5}, got.values(profiler.ScopeJob, cpuUsed), 1e-6, took)
			require.Len(t, got.values(profiler.ScopeMachine, cpuUsed), machine, took)
		}
	})
}

func TestP12EachValueHasItsTimeAndBatchIndex(t *testing.T) {
	bubble(t, func(t *testing.T) {
		got := &receiver{}
		a := newAgent(t, config(got, memory()))
		local := time.FixedZone("elsewhere", 3*60*60)
		begin := time.Now()
		a.Start(t.Context())
		time.Sleep(250 * time.Millisecond)
		require.NoError(t, a.UpdateBatch(1))
		time.Sleep(200 * time.Millisecond)
		a.RecordTiming("measure", begin.Add(250*time.Millisecond).In(local), time.Now().In(local))
		require.NoError(t, a.UpdateBatch(9))
		time.Sleep(200 * time.Millisecond)
		a.End()
		require.Equal(t, []int{0, 0, 0, 1, 1, 9, 9, 9}, got.indexes(profiler.ScopeJob, memoryUsed))
		for n, at := range got.times(profiler.ScopeJob, memoryUsed)[:7] {
			require.Equal(t, time.UTC, at.Location())
			require.Equal(t, time.Duration(n)*profiler.Interval, at.Sub(begin))
		}
		measured := got.batches(profiler.ScopeTiming, "measure")
		require.Len(t, measured, 1)
		require.Equal(t, []float64{0.2}, measured[0].Values, "seconds")
		require.Equal(t, []int{1}, measured[0].Batches)
		require.Equal(t, 450*time.Millisecond, measured[0].Times[0].Sub(begin), "the time of its end")
		require.Equal(t, time.UTC, measured[0].Times[0].Location())
	})
}

// misled is a collector of which every call panics.
type misled struct{}

func (misled) Name() string                                        { panic("no name") }
func (misled) Collect(context.Context) (profiler.Collected, error) { panic("no value") }
func (misled) Close() error                                        { panic("no end") }

// brokenLock is a lock of which every call panics.
type brokenLock struct{}

func (brokenLock) TryLock() (bool, error) { panic("no lock") }
func (brokenLock) Unlock() error          { panic("no lock") }

func TestP13WhateverPanicsEndsNoProcess(t *testing.T) {
	bubble(t, func(t *testing.T) {
		got := &receiver{}
		c := config(got, misled{}, nil, memory())
		c.Machine, c.Lock = []profiler.Collector{memory()}, brokenLock{}
		a := newAgent(t, c)
		a.Start(t.Context())
		time.Sleep(time.Second + 50*time.Millisecond)
		a.End()
		require.Len(t, got.values(profiler.ScopeJob, memoryUsed), 12)
		require.Empty(t, got.batches(profiler.ScopeMachine, memoryUsed))
	})
}

func TestP13AFailingCollectorCostsOnlyItsOwnSamples(t *testing.T) {
	bubble(t, func(t *testing.T) {
		got, written := &receiver{}, &notes{}
		calls := 0
		c := config(got,
			&source{collect: func() (profiler.Collected, error) { return profiler.Collected{}, errors.New("no such file") }},
			&source{collect: func() (profiler.Collected, error) { panic("index out of range") }},
			&source{collect: func() (profiler.Collected, error) {
				return profiler.Collected{Values: []profiler.Value{{Metric: "cpu_utilisation", Value: 1}}}, nil
			}},
			&source{collect: func() (profiler.Collected, error) { // fails every second time
				if calls++; calls%2 == 0 {
					return profiler.Collected{}, errors.New("interrupted")
				}
				return profiler.Collected{Values: []profiler.Value{{Metric: profiler.CPUUsed, Value: float64(calls), Counter: true}}}, nil
			}},
			memory())
		c.Log = written.log()
		a := newAgent(t, c)
		a.Start(t.Context())
		time.Sleep(2*time.Minute + 30*time.Second + 50*time.Millisecond)
		totals := a.End()
		require.Len(t, got.values(profiler.ScopeJob, memoryUsed), 1502)
		for _, v := range got.values(profiler.ScopeJob, cpuUsed) {
			require.InDelta(t, 10, v, 0.01, "the rate over two intervals")
		}
		require.EqualValues(t, 3*1502+751, totals.Failed)
		for _, text := range []string{"no such file", "index out of range", "cpu_utilisation is no metric", "interrupted"} {
			require.Equal(t, 3, written.count(text), "%s: once a minute", text)
		}
	})
}

func TestP14OneAgentOfAHostRecordsTheMachine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "profiler.lock")
		got := &receiver{}
		agent := func(attempt string) *profiler.Agent {
			c := config(got, memory())
			c.Attempt = attempt
			c.Machine = []profiler.Collector{&source{collect: func() (profiler.Collected, error) {
				return profiler.Collected{Values: []profiler.Value{{Metric: profiler.MemoryFree, Value: 7}}}, nil
			}}}
			c.Lock = flock.New(path)
			return newAgent(t, c)
		}
		first, second := agent("run-1"), agent("run-2")
		first.Start(t.Context())
		synctest.Wait()
		second.Start(t.Context())
		time.Sleep(time.Minute + 50*time.Millisecond)
		first.End()
		time.Sleep(time.Minute)
		second.End()

		machine := map[string][]time.Time{}
		for _, b := range got.batches(profiler.ScopeMachine, string(profiler.MemoryFree)) {
			machine[b.Attempt] = append(machine[b.Attempt], b.Times...)
		}
		require.Len(t, machine, 2)
		require.Len(t, machine["run-1"], 602)
		require.Len(t, machine["run-2"], 601)
		require.True(t, machine["run-2"][0].After(machine["run-1"][601]), "the lock passes on, and no moment is recorded twice")
		require.Equal(t, 50*time.Millisecond, machine["run-2"][0].Sub(machine["run-1"][601]))

		own := map[string]int{}
		for _, b := range got.batches(profiler.ScopeJob, memoryUsed) {
			own[b.Attempt] += len(b.Values)
		}
		require.Equal(t, map[string]int{"run-1": 602, "run-2": 1202}, own, "each job has the series of its own group")
	})
}

// stuck is a lock that cannot be asked.
type stuck struct{}

func (stuck) TryLock() (bool, error) { return false, errors.New("input/output error") }

func (stuck) Unlock() error { return nil }

func TestP14WithoutAWorkingLockTheMachineIsNotRecorded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		got, written := &receiver{}, &notes{}
		c := config(got, memory())
		c.Machine, c.Lock, c.Log = []profiler.Collector{processor()}, stuck{}, written.log()
		a := newAgent(t, c)
		a.Start(t.Context())
		time.Sleep(10*time.Second + 50*time.Millisecond)
		a.End()
		require.Len(t, got.values(profiler.ScopeJob, memoryUsed), 102)
		require.Empty(t, got.batches(profiler.ScopeMachine, cpuUsed))
		require.Equal(t, 1, written.count("input/output error"))

		c.Lock = nil
		_, err := profiler.New(c)
		require.ErrorContains(t, err, "one agent of a host records the machine")
	})
}
