package probe_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a machine on which the program takes 250 ms, with noise.
type fake struct {
	now    time.Time
	random *rand.Rand
	// spread within a session, and offset between sessions of 15 s, as shares.
	spread, offset float64
	// foreign is the share of one of two CPUs that others use from an iteration on.
	foreign     float64
	foreignFrom int
	// uncounted leaves the counter out in every n-th iteration.
	uncounted int

	runs int
	busy time.Duration
}

func newFake(spread float64) *fake {
	return &fake{now: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC), random: rand.New(rand.NewPCG(1, 2)), spread: spread, foreignFrom: math.MaxInt}
}

func (f *fake) run(context.Context) (measure.Sample, error) {
	f.runs++
	session := rand.New(rand.NewPCG(3, uint64(f.now.Unix()/15)))
	wall := time.Duration(250e6 * math.Exp(f.spread*f.random.NormFloat64()+f.offset*session.NormFloat64()))
	f.now = f.now.Add(wall)
	f.busy += wall
	if f.runs >= f.foreignFrom {
		f.busy += time.Duration(f.foreign * float64(wall))
	}
	s := measure.Sample{Status: measure.StatusExited, Wall: wall, UserCPU: wall, Counters: map[measure.Counter]uint64{measure.CounterInstructions: 1e9}}
	if f.uncounted > 0 && f.runs%f.uncounted == 0 {
		s.Counters, s.Invalid = nil, []measure.InvalidCounter{{Counter: measure.CounterInstructions}}
	}
	return s, nil
}

func (f *fake) read() machine.Reading {
	tick := 10 * time.Millisecond
	return machine.Reading{
		Wall: f.now, Uptime: time.Duration(f.now.UnixNano()), CPUs: map[int]machine.CPUTimes{0: {Busy: (f.busy / 2).Truncate(tick)}, 1: {Busy: (f.busy / 2).Truncate(tick)}},
		Absent: map[machine.Quantity]string{machine.Frequency: "not shown", machine.Throttling: "not counted", machine.CPUPressure: "no PSI"},
	}
}

func (f *fake) options(d time.Duration) probe.Options {
	return probe.Options{Duration: d, Run: f.run, Read: f.read, Now: func() time.Time { return f.now }, Progress: func(probe.Progress) {}}
}

func metric(t *testing.T, n probe.Noise, name bench.Metric) probe.Metric {
	t.Helper()
	for _, m := range n.Metrics {
		if m.Name == name {
			return m
		}
	}
	require.Fail(t, "not measured: "+string(name))
	return probe.Metric{}
}

func TestAQuietMachineSeesSmallChanges(t *testing.T) {
	t.Parallel()
	noise, err := probe.Measure(t.Context(), newFake(0.005).options(2*time.Minute))
	require.NoError(t, err)
	require.Equal(t, 5, noise.Comparisons) // of 23 s each
	require.Equal(t, 5*46, noise.Pairs)
	require.Equal(t, 5*92, noise.Iterations)
	require.Zero(t, noise.Disturbed)
	require.Empty(t, noise.Causes)
	require.Equal(t, "no PSI", noise.NotRead[machine.CPUPressure])

	wall := metric(t, noise, bench.WallTime)
	require.InDelta(t, 0.005, wall.Spread, 0.0005)
	require.Less(t, *wall.SessionOffset, 0.4)
	require.Less(t, *wall.SideOffset, 0.35)
	require.InDelta(t, 0.01, wall.Sees, 0.002)
	require.Equal(t, 5, wall.NoDifference)
	require.Zero(t, wall.Changed+wall.Undecided)

	instructions := metric(t, noise, bench.Instructions)
	require.Zero(t, instructions.Spread)
	require.Equal(t, 5, instructions.NoDifference)
}

func TestANoisyMachineSeesLargeChangesOnly(t *testing.T) {
	t.Parallel()
	noise, err := probe.Measure(t.Context(), newFake(0.1).options(2*time.Minute))
	require.NoError(t, err)
	wall := metric(t, noise, bench.WallTime)
	require.InDelta(t, 0.1, wall.Spread, 0.01)
	require.Greater(t, wall.Sees, 0.05)
	require.Equal(t, noise.Comparisons, wall.Undecided)
}

func TestSessionsThatAreApartAreNoticed(t *testing.T) {
	t.Parallel()
	f := newFake(0.005)
	f.offset = 0.01
	noise, err := probe.Measure(t.Context(), f.options(10*time.Minute))
	require.NoError(t, err)
	wall := metric(t, noise, bench.WallTime)
	require.Greater(t, *wall.SessionOffset, 0.8)
	require.Zero(t, wall.Changed) // both sides are offset alike
}

func TestTooFewSessionsTellNothingOfOffsets(t *testing.T) {
	t.Parallel()
	noise, err := probe.Measure(t.Context(), newFake(0.005).options(time.Second))
	require.NoError(t, err)
	wall := metric(t, noise, bench.WallTime)
	require.Nil(t, wall.SessionOffset)
	require.Nil(t, wall.SideOffset)
}

func TestDisturbedIterationsAreCountedByCause(t *testing.T) {
	t.Parallel()
	f := newFake(0.005)
	f.foreign, f.foreignFrom = 0.8, 1+46+1 // the second half of the first comparison
	noise, err := probe.Measure(t.Context(), f.options(24*time.Second))
	require.NoError(t, err)
	require.Equal(t, 92, f.runs-1)
	require.Equal(t, 46, noise.Disturbed)
	require.Equal(t, []probe.Cause{{Cause: machine.ForeignCPU, Iterations: 46}}, noise.Causes)
}

func TestIterationsWithoutTheCounterHaveNoInstructions(t *testing.T) {
	t.Parallel()
	f := newFake(0.005)
	f.uncounted = 10
	noise, err := probe.Measure(t.Context(), f.options(time.Second))
	require.NoError(t, err)
	require.Zero(t, metric(t, noise, bench.Instructions).Changed)
	f.uncounted = 1
	noise, err = probe.Measure(t.Context(), f.options(time.Second))
	require.NoError(t, err)
	require.Len(t, noise.Metrics, 2)
}

// One comparison is made at least, of fewer pairs if the machine is slow.
func TestTimeIsKept(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		duration           time.Duration
		comparisons, pairs int
	}{
		{2 * time.Minute, 5, 230},
		{time.Minute, 2, 92},
		{24 * time.Second, 1, 46},
		{15 * time.Second, 1, 34},
		{time.Second, 1, 14},
	} {
		f := newFake(0.005)
		var last probe.Progress
		o := f.options(c.duration)
		o.Progress = func(p probe.Progress) { last = p }
		noise, err := probe.Measure(t.Context(), o)
		require.NoError(t, err)
		require.Equal(t, c.comparisons, noise.Comparisons, c.duration)
		require.Equal(t, c.pairs, noise.Pairs, c.duration)
		require.Equal(t, c.comparisons, last.Comparison)
		require.Equal(t, 46, last.Of)
		require.Equal(t, noise.Elapsed, last.Elapsed)
		require.Positive(t, metric(t, noise, bench.WallTime).Sees, c.duration)
	}
}

func TestAProgramThatFailsIsNamed(t *testing.T) {
	t.Parallel()
	for want, sample := range map[string]measure.Sample{
		"exit code 3":          {Status: measure.StatusExited, ExitCode: 3},
		"SIGKILL":              {Status: measure.StatusExited, ExitCode: -1, Signal: "SIGKILL"},
		"status out_of_memory": {Status: measure.StatusOutOfMemory, ExitCode: -1},
	} {
		o := newFake(0).options(time.Minute)
		o.Run = func(context.Context) (measure.Sample, error) { return sample, nil }
		_, err := probe.Measure(t.Context(), o)
		require.EqualError(t, err, "the program that is measured ended with "+want)
	}
	o := newFake(0).options(time.Minute)
	o.Run = func(context.Context) (measure.Sample, error) { return measure.Sample{}, errors.New("no fork") }
	_, err := probe.Measure(t.Context(), o)
	require.EqualError(t, err, "running the program that is measured: no fork")
}

func TestCancellingEndsTheMeasurement(t *testing.T) {
	t.Parallel()
	f := newFake(0.005)
	ctx, cancel := context.WithCancel(t.Context())
	o := f.options(time.Hour)
	o.Progress = func(p probe.Progress) {
		if p.Pairs == 3 {
			cancel()
		}
	}
	_, err := probe.Measure(ctx, o)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1+2*3, f.runs)
}

func TestWorkIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	first := probe.Work()
	require.Equal(t, first, probe.Work())
}
