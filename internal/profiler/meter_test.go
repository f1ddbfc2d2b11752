package profiler_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/profiler"
)

func newMeter(t *testing.T, job ...profiler.Collector) *profiler.Meter {
	t.Helper()
	return profiler.NewMeter(t.Context(), job, nil, time.Now)
}

// measured lets a command of some length run.
func measured(m *profiler.Meter, index int, took time.Duration) {
	m.Begin(profiler.Command{Batch: index, Artifact: "1.26.0", Case: "gin full", Iteration: index})
	time.Sleep(took)
	m.End()
}

func TestAMeterSumsUpEachMeasuredCommand(t *testing.T) {
	bubble(t, func(t *testing.T) {
		// Half a CPU is in use, two in the third second of each minute.
		begin := time.Now()
		cpu := &source{collect: func() (profiler.Collected, error) {
			passed := time.Since(begin)
			used := passed.Seconds() / 2
			used += 1.5 * min(max((passed%time.Minute).Seconds()-2, 0), 1)
			return profiler.Collected{Values: []profiler.Value{{Metric: profiler.CPUUsed, Value: used, Counter: true}, {Metric: profiler.MemoryUsed, Value: used}}}, nil
		}}
		m := newMeter(t, cpu)
		measured(m, 1, 5*time.Second)
		measured(m, 2, 100*time.Millisecond)
		time.Sleep(10 * time.Minute) // far beyond what an agent records
		measured(m, 4, 2*time.Second)
		sum, dropped := m.Close()

		require.Zero(t, dropped)
		require.Len(t, sum.Commands, 3)
		require.Equal(t, profiler.Command{Batch: 4, Artifact: "1.26.0", Case: "gin full", Iteration: 4}, sum.Commands[2])
		require.Len(t, sum.Series, 2)
		used := sum.Series[0]
		require.Equal(t, cpuUsed, used.Name)
		require.Equal(t, profiler.CPUs, used.Unit)
		require.Equal(t, []int{1, 2, 4}, used.Batches)
		require.InDeltaSlice(t, []float64{0.8, 0.5, 0.5}, used.Mean, 1e-6)
		require.InDeltaSlice(t, []float64{2, 0.5, 0.5}, used.Max, 1e-6)
		require.Empty(t, profiler.Upload{Attempt: "run-1", Summary: &sum}.Check())
	})
}

func TestAMeterSumsUpPhases(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMeter(t)
		m.Phase("preparing", time.Second)
		m.Phase("preparing", 3*time.Second)
		m.Phase("fetching", time.Minute)
		m.Phase("fetching", -time.Second)
		m.Phase("\x1b[31m", time.Second)
		sum, dropped := m.Close()
		require.Equal(t, []profiler.PhaseSummary{
			{Name: "fetching", Count: 1, TotalSeconds: 60, LongestSeconds: 60}, {Name: "preparing", Count: 2, TotalSeconds: 4, LongestSeconds: 3},
		}, sum.Phases)
		require.Equal(t, int64(2), dropped)
	})
}

// A meter is never waited for longer than for a reading, whatever hangs; what it has of commands and phases is kept.
func TestAMeterThatHangsDelaysNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		m := newMeter(t, &source{collect: func() (profiler.Collected, error) {
			<-release
			return profiler.Collected{}, nil
		}})
		begin := time.Now()
		for n := range 100 {
			measured(m, n+1, 0)
		}
		m.Phase("preparing", time.Second)
		sum, _ := m.Close()
		require.LessOrEqual(t, time.Since(begin), 50*time.Millisecond)
		require.Len(t, sum.Commands, 100)
		require.Len(t, sum.Phases, 1)
		require.Empty(t, sum.Series)
		close(release)
	})
}

func TestAMeterSurvivesCollectorsThatFail(t *testing.T) {
	bubble(t, func(t *testing.T) {
		calls := 0
		flaky := &source{collect: func() (profiler.Collected, error) {
			if calls++; calls%2 == 0 {
				panic("broken")
			}
			return profiler.Collected{}, fmt.Errorf("call %d", calls)
		}}
		m := newMeter(t, flaky, memory())
		measured(m, 1, 3*time.Second)
		sum, _ := m.Close()
		require.Len(t, sum.Series, 1)
		require.Equal(t, []float64{42}, sum.Series[0].Mean)
		synctest.Wait()
		require.Equal(t, 1, flaky.closed)
	})
}

func TestASummaryIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		values := make([]profiler.Value, 20)
		for n := range values {
			values[n] = profiler.Value{Metric: profiler.GPUUtil, Device: fmt.Sprintf("GPU-%d", n), Value: 0.5}
		}
		m := newMeter(t, &source{collect: func() (profiler.Collected, error) { return profiler.Collected{Values: values}, nil }})
		for n := range profiler.MaxCommands + 10 {
			measured(m, n+1, 0)
		}
		for n := range 2 * profiler.MaxTimingSeries {
			m.Phase(fmt.Sprintf("phase %d", n), time.Second)
		}
		sum, dropped := m.Close()
		require.Empty(t, profiler.Upload{Attempt: "run-1", Summary: &sum}.Check())
		require.Len(t, sum.Commands, profiler.MaxCommands)
		require.Len(t, sum.Phases, profiler.MaxTimingSeries)
		require.Equal(t, int64(10+profiler.MaxTimingSeries+20*profiler.MaxCommands-profiler.MaxSummarized), dropped)
	})
}

func TestAMeterEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		read := memory()
		ctx, cancel := context.WithCancel(t.Context())
		m := profiler.NewMeter(ctx, []profiler.Collector{read}, nil, time.Now)
		m.Begin(profiler.Command{Batch: 1})
		cancel()
		synctest.Wait()
		require.Equal(t, 1, read.closed)
		m.End()
		sum, _ := m.Close()
		require.Len(t, sum.Commands, 1)
	})
}
