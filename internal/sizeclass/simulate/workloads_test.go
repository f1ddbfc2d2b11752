package simulate_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/sizeclass"
	"github.com/benchloom/benchloom/internal/sizeclass/simulate"
)

const (
	seeds   = 60
	runs    = 500
	driftAt = 151
)

var classes = []bench.SizeClass{1, 2, 4, 8}

// amdahl returns the durations of a job with a parallel part that takes 60 s on
// class 8.
func amdahl(parallel float64) map[string]sizeclass.Duration {
	durations := make(map[string]sizeclass.Duration)
	for _, c := range classes {
		seconds := 60 * (1 - parallel + parallel/float64(c)) / (1 - parallel + parallel/8)
		durations[strconv.Itoa(int(c))] = sizeclass.Duration(seconds * float64(time.Second))
	}
	return durations
}

func outOfMemory(below bench.SizeClass, after time.Duration) simulate.Shape {
	return simulate.Shape{Durations: amdahl(0), Noise: 0.1, FailsBelow: below, FailsAfter: sizeclass.Duration(after)}
}

// workload is a workload on which the analyzer is measured.
type workload struct {
	name  string
	shape simulate.Shape
	// baseline is the known cost of the baseline algorithm in core-seconds, in the
	// runs 1-10, 11-50 and 51-500.
	baseline [3]float64
}

var workloads = []workload{
	{"serial", simulate.Shape{Durations: amdahl(0), Noise: 0.1}, [3]float64{233, 105, 78}},
	{"half parallel", simulate.Shape{Durations: amdahl(0.5), Noise: 0.1}, [3]float64{272, 162, 142}},
	{"four fifths parallel", simulate.Shape{Durations: amdahl(0.8), Noise: 0.1}, [3]float64{504, 422, 417}},
	{"parallel", simulate.Shape{Durations: amdahl(1), Noise: 0.1}, [3]float64{706, 590, 520}},
	{"out of memory below 4", outOfMemory(4, 5*time.Second), [3]float64{426, 308, 269}},
	{"out of memory below 8", outOfMemory(8, 30*time.Second), [3]float64{526, 503, 490}},
}

func input(s simulate.Shape) simulate.Input {
	return simulate.Input{Classes: classes, Policy: sizeclass.Defaults(), OriginalTimeout: sizeclass.Duration(30 * time.Minute), Runs: runs, Shape: s}
}

// ideal returns cost and latency of always using the class with the least
// time × class^exponent among those that can run the job.
func ideal(durations map[string]sizeclass.Duration, s simulate.Shape) (coreSeconds, latency float64) {
	least := math.Inf(1)
	for _, c := range classes {
		d := time.Duration(durations[strconv.Itoa(int(c))]).Seconds()
		if o := sizeclass.Objective(d, c, sizeclass.Defaults().Exponent); c >= s.FailsBelow && o < least*(1-1e-9) {
			least, coreSeconds, latency = o, d*float64(c), d
		}
	}
	return coreSeconds, latency
}

// phase is the mean of the runs first to last, counted from 1.
type phase struct{ coreSeconds, latency float64 }

func (p *phase) add(r simulate.Run, share float64) {
	p.coreSeconds += r.CoreSeconds * share
	p.latency += r.LatencySeconds * share
}

// trial summarises 60 simulations.
type trial struct {
	first, second, late, drifted, after phase
	results                             []simulate.Result
}

func try(t *testing.T, in simulate.Input, simulated func(simulate.Input, simulate.Random) simulate.Result) trial {
	t.Helper()
	var result trial
	for seed := range uint64(seeds) {
		one := simulated(in, rand.New(rand.NewPCG(seed, 1)))
		require.Len(t, one.Runs, runs)
		result.results = append(result.results, one)
		for i, r := range one.Runs {
			switch {
			case i < 10:
				result.first.add(r, 1.0/10/seeds)
			case i < 50:
				result.second.add(r, 1.0/40/seeds)
			default:
				result.late.add(r, 1.0/450/seeds)
			}
			switch since := i + 1 - driftAt - 20; {
			case since >= 20:
				result.after.add(r, 1.0/(runs-driftAt-39)/seeds)
			case since >= 0:
				result.drifted.add(r, 1.0/20/seeds)
			}
		}
	}
	return result
}

func ours(t *testing.T) func(simulate.Input, simulate.Random) simulate.Result {
	t.Helper()
	return func(in simulate.Input, r simulate.Random) simulate.Result {
		result, err := simulate.Simulate(in, r)
		require.NoError(t, err)
		return result
	}
}

func theirs(in simulate.Input, r simulate.Random) simulate.Result {
	return simulate.With(in, r, newBaseline(in))
}

func TestWorkloads(t *testing.T) {
	t.Parallel()
	for _, w := range workloads {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			in := input(w.shape)
			coreSeconds, latency := ideal(w.shape.Durations, w.shape)
			a, b := try(t, in, ours(t)), try(t, in, theirs)
			t.Logf("core-seconds, as multiples of %.0f: runs 1-10 %.2f, 11-50 %.2f, 51-500 %.3f (baseline %.3f); latency %.3f of %.0f s", coreSeconds,
				a.first.coreSeconds/coreSeconds, a.second.coreSeconds/coreSeconds, a.late.coreSeconds/coreSeconds, b.late.coreSeconds/coreSeconds,
				a.late.latency/latency, latency)

			require.LessOrEqual(t, a.first.coreSeconds, 2*coreSeconds)
			require.LessOrEqual(t, a.late.coreSeconds, 1.10*coreSeconds)
			require.LessOrEqual(t, a.late.latency, 1.15*latency)

			require.LessOrEqual(t, a.first.coreSeconds, b.first.coreSeconds)
			require.LessOrEqual(t, a.second.coreSeconds, b.second.coreSeconds)
			require.LessOrEqual(t, a.late.coreSeconds, b.late.coreSeconds)

			// The baseline is implemented correctly: it has its known cost.
			for i, known := range w.baseline {
				require.InEpsilon(t, known, []phase{b.first, b.second, b.late}[i].coreSeconds, 0.03)
			}
			requireNoneFailed(t, a, w.shape)
			requireRareRechecks(t, a)
		})
	}
}

// No run fails that would have succeeded on the largest class: runs fail only
// there, and only if they fail anywhere.
func requireNoneFailed(t *testing.T, a trial, s simulate.Shape) {
	t.Helper()
	for _, result := range a.results {
		for i, r := range result.Runs {
			if r.Outcome != simulate.Success {
				require.Positive(t, s.FailureRate, "run %d", i+1)
				require.EqualValues(t, 8, r.Class, "run %d", i+1)
			}
			largest := 0
			for _, attempt := range result.Attempts()[i] {
				if attempt.Class == 8 {
					largest++
				}
			}
			require.LessOrEqual(t, largest, 1, "run %d was tried twice on the largest class", i+1)
		}
	}
}

// A class that has run out of memory three times is tried once in 200 runs.
func requireRareRechecks(t *testing.T, a trial) {
	t.Helper()
	for _, result := range a.results {
		failed, last := make(map[bench.SizeClass]int), make(map[bench.SizeClass]int)
		for i, attempts := range result.Attempts() {
			for _, attempt := range attempts {
				if attempt.Outcome != simulate.OutOfMemory {
					continue
				}
				if failed[attempt.Class]++; failed[attempt.Class] > 3 {
					require.GreaterOrEqual(t, i-last[attempt.Class], 200, "class %d", attempt.Class)
				}
				last[attempt.Class] = i
			}
		}
	}
}

// A serial job becomes a parallel one: twenty runs later its cost is near the
// ideal.
func TestDrift(t *testing.T) {
	t.Parallel()
	s := simulate.Shape{Durations: amdahl(0), Noise: 0.1, DriftAt: driftAt, DurationsAfter: amdahl(1)}
	in := input(s)
	a, b := try(t, in, ours(t)), try(t, in, theirs)
	coreSeconds, latency := ideal(s.DurationsAfter, s)
	t.Logf("20 runs after the drift %.3f of %.0f core-seconds (baseline %.3f), later %.3f (baseline %.3f)", a.drifted.coreSeconds/coreSeconds,
		coreSeconds, b.drifted.coreSeconds/coreSeconds, a.after.coreSeconds/coreSeconds, b.after.coreSeconds/coreSeconds)
	for _, p := range []phase{a.drifted, a.after} {
		require.LessOrEqual(t, p.coreSeconds, 1.15*coreSeconds)
		require.LessOrEqual(t, p.latency, 1.15*latency)
	}
	require.LessOrEqual(t, a.late.coreSeconds, b.late.coreSeconds)
	requireNoneFailed(t, a, s)
}

// Times that are not normally distributed, and failures unrelated to size.
func TestLongUnfriendlyWorkloads(t *testing.T) {
	t.Parallel()
	changes := map[string]func(*simulate.Shape){
		"one in twenty takes ten times as long": func(s *simulate.Shape) { s.Tail = simulate.Exception{Probability: 0.05, Factor: 10} },
		"half take three times as long":         func(s *simulate.Shape) { s.Bimodal = simulate.Exception{Probability: 0.5, Factor: 3} },
		"one in twenty fails":                   func(s *simulate.Shape) { s.FailureRate = 0.05 },
	}
	for _, w := range workloads {
		for name, change := range changes {
			t.Run(w.name+", "+name, func(t *testing.T) {
				t.Parallel()
				s := w.shape
				change(&s)
				a, b := try(t, input(s), ours(t)), try(t, input(s), theirs)
				t.Logf("core-seconds %.1f %.1f %.1f, baseline %.1f %.1f %.1f", a.first.coreSeconds, a.second.coreSeconds, a.late.coreSeconds,
					b.first.coreSeconds, b.second.coreSeconds, b.late.coreSeconds)
				require.LessOrEqual(t, a.first.coreSeconds, b.first.coreSeconds)
				require.LessOrEqual(t, a.second.coreSeconds, b.second.coreSeconds)
				require.LessOrEqual(t, a.late.coreSeconds, b.late.coreSeconds)
				requireNoneFailed(t, a, s)
			})
		}
	}
}
