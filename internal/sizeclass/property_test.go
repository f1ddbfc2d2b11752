package sizeclass_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/sizeclass"
)

// histories is the number of random histories each property is checked with.
const histories = 3000

var classes = []bench.SizeClass{1, 2, 4, 8}

// eachHistory calls f with random statistics, each with the same seed in each run.
func eachHistory(t *testing.T, f func(t *testing.T, r *rand.Rand, s sizeclass.Statistics)) {
	t.Helper()
	for i := range histories {
		r := rand.New(rand.NewPCG(uint64(i), 7))
		s := randomStatistics(r)
		f(t, r, s)
		if t.Failed() {
			t.Fatalf("history %d: %+v", i, s)
		}
	}
}

func randomStatistics(r *rand.Rand) sizeclass.Statistics {
	s := sizeclass.Statistics{Runs: r.IntN(400)}
	s.Since = r.IntN(s.Runs + 1)
	base, scaling := math.Exp(r.Float64()*8), r.Float64() // seconds, from no speed-up to a perfect one
	for _, c := range classes {
		if r.IntN(5) == 0 {
			continue
		}
		h := sizeclass.History{Class: c, Tried: r.IntN(s.Runs + 1)}
		oom := r.IntN(4) == 0
		for range r.IntN(33) {
			d := time.Duration(base * math.Pow(8/float64(c), scaling) * math.Exp(0.3*r.NormFloat64()) * float64(time.Second))
			sample := sizeclass.Sample{Outcome: sizeclass.Succeeded, Duration: d, At: now.Add(-time.Duration(r.IntN(1000)) * time.Hour)}
			switch k := r.IntN(10); {
			case c == 8:
			case k == 0:
				sample.Outcome = sizeclass.TimedOut
			case k == 1:
				sample.Outcome, sample.Pending = sizeclass.Failed, r.IntN(2) == 0
			case oom:
				sample.Outcome = sizeclass.OutOfMemory
			}
			h.Samples = append(h.Samples, sample)
		}
		s.Classes = append(s.Classes, h)
	}
	s.Spent = sizeclass.Spent{Total: base * float64(8*s.Runs), Probes: base * float64(s.Runs) * r.Float64()}
	if r.IntN(10) == 0 {
		s.FailedOnLargest = now.Add(-time.Duration(r.IntN(48)) * time.Hour)
	}
	if r.IntN(10) == 0 {
		s.Marks = []sizeclass.Mark{{ID: "other", Class: 2, Expires: now.Add(time.Hour - time.Duration(r.IntN(2))*2*time.Hour)}}
	}
	return s
}

func explain(t *testing.T, a *sizeclass.Analyzer, s sizeclass.Statistics, q sizeclass.Question) []sizeclass.Choice {
	t.Helper()
	selection, err := a.Explain(s, q)
	require.NoError(t, err)
	return selection.Choices
}

func probability(choices []sizeclass.Choice, c bench.SizeClass) float64 {
	for _, choice := range choices {
		if choice.Class == c {
			return choice.Probability
		}
	}
	return 0
}

func TestProbabilitiesAreADistribution(t *testing.T) {
	t.Parallel()
	a := analyzer(t)
	eachHistory(t, func(t *testing.T, r *rand.Rand, s sizeclass.Statistics) {
		sum := 0.0
		for _, c := range explain(t, a, s, question()) {
			require.GreaterOrEqual(t, c.Probability, 0.0)
			require.LessOrEqual(t, c.Probability, 1.0)
			sum += c.Probability
		}
		require.InDelta(t, 1, sum, 1e-12)

		// Selections follow it.
		q := question()
		q.Random = r.Float64()
		selection, _, err := a.Select(s, q)
		require.NoError(t, err)
		require.Positive(t, probability(selection.Choices, selection.Class))
		require.Positive(t, selection.Timeout)
		require.LessOrEqual(t, selection.Timeout, q.Original)
		require.LessOrEqual(t, selection.Expected, selection.Timeout)
		if selection.Class == 8 {
			require.Equal(t, q.Original, selection.Timeout)
		}
	})
}

// Each sample of a class takes longer: the class is no likelier.
func TestSlowdownNeverMakesAClassLikelier(t *testing.T) {
	t.Parallel()
	a := analyzer(t)
	eachHistory(t, func(t *testing.T, r *rand.Rand, s sizeclass.Statistics) {
		slow := classes[r.IntN(3)]
		factor := 1 + 3*r.Float64()
		slower := change(s, func(c bench.SizeClass, x *sizeclass.Sample) {
			if c == slow {
				x.Duration = time.Duration(float64(x.Duration) * factor)
			}
		})
		before, after := explain(t, a, s, question()), explain(t, a, slower, question())
		require.LessOrEqual(t, probability(after, slow), probability(before, slow)+1e-12, "class %d, %.2f times as slow:\n%s\n%s", slow, factor, show(before), show(after))
	})
}

func show(c []sizeclass.Choice) string {
	s := ""
	for _, x := range c {
		s += fmt.Sprintf("%+v\n", x)
	}
	return s
}

// change returns a copy with changed samples.
func change(s sizeclass.Statistics, f func(bench.SizeClass, *sizeclass.Sample)) sizeclass.Statistics {
	s.Classes = slices.Clone(s.Classes)
	for i := range s.Classes {
		s.Classes[i].Samples = slices.Clone(s.Classes[i].Samples)
		for j := range s.Classes[i].Samples {
			f(s.Classes[i].Class, &s.Classes[i].Samples[j])
		}
	}
	return s
}

// The worse a job scales, the smaller the classes it runs on.
func TestWorseScalingNeverMakesLargerClassesLikelier(t *testing.T) {
	t.Parallel()
	a := analyzer(t)
	for _, n := range []int{1, 3, 32} {
		var last []sizeclass.Choice
		for scaling := 0.0; scaling <= 1; scaling += 0.01 {
			s := sizeclass.Statistics{Runs: 100}
			for _, c := range classes {
				d := time.Duration(60 * math.Pow(8/float64(c), scaling) * float64(time.Second))
				h := sizeclass.History{Class: c, Tried: 99}
				for range n {
					h.Samples = append(h.Samples, sizeclass.Sample{Outcome: sizeclass.Succeeded, Duration: d, At: now})
				}
				s.Classes = append(s.Classes, h)
			}
			choices := explain(t, a, s, question())
			below, belowLast := 0.0, 0.0
			for i := range last {
				below, belowLast = below+choices[i].Probability, belowLast+last[i].Probability
				require.LessOrEqual(t, below, belowLast+1e-12, "scaling %.2f, classes up to %d", scaling, choices[i].Class)
			}
			last = choices
		}
		require.Equal(t, 1.0, last[3].Probability, "a perfectly parallel job runs on the largest class")
	}
}

func TestUnitsDoNotMatter(t *testing.T) {
	t.Parallel()
	a := analyzer(t)
	eachHistory(t, func(t *testing.T, _ *rand.Rand, s sizeclass.Statistics) {
		const scale = 8
		p := sizeclass.Defaults()
		p.Minimum *= scale
		p.MaximumTimeout *= scale
		scaled, err := sizeclass.New(p)
		require.NoError(t, err)
		q := question()
		q.Original *= scale
		longer := change(s, func(_ bench.SizeClass, x *sizeclass.Sample) { x.Duration *= scale })
		longer.Spent.Total *= scale
		longer.Spent.Probes *= scale
		before, after := explain(t, a, s, question()), explain(t, scaled, longer, q)
		for i := range before {
			require.InDelta(t, before[i].Probability, after[i].Probability, 1e-9)
			require.InEpsilon(t, before[i].Timeout*scale, after[i].Timeout, 1e-6)
		}
	})
}

func TestOrderOfSamplesDoesNotMatter(t *testing.T) {
	t.Parallel()
	a := analyzer(t)
	eachHistory(t, func(t *testing.T, r *rand.Rand, s sizeclass.Statistics) {
		shuffled := change(s, func(bench.SizeClass, *sizeclass.Sample) {})
		for _, h := range shuffled.Classes {
			r.Shuffle(len(h.Samples), func(i, j int) { h.Samples[i], h.Samples[j] = h.Samples[j], h.Samples[i] })
		}
		before, after := explain(t, a, s, question()), explain(t, a, shuffled, question())
		for i := range before {
			require.InDelta(t, before[i].Probability, after[i].Probability, 1e-9)
			require.Equal(t, before[i].Timeout, after[i].Timeout)
		}
	})
}

// It makes no difference whether classes are called 1, 2, 4, 8 or 3, 6, 12, 24.
func TestScaledLabelsDoNotMatter(t *testing.T) {
	t.Parallel()
	a := analyzer(t)
	eachHistory(t, func(t *testing.T, _ *rand.Rand, s sizeclass.Statistics) {
		const scale = 3
		q := question()
		q.Classes = nil
		for _, c := range classes {
			q.Classes = append(q.Classes, scale*c)
		}
		relabelled := s
		relabelled.Spent.Total *= scale
		relabelled.Spent.Probes *= scale
		relabelled.Classes = slices.Clone(s.Classes)
		for i := range relabelled.Classes {
			relabelled.Classes[i].Class *= scale
		}
		before, after := explain(t, a, s, question()), explain(t, a, relabelled, q)
		for i := range before {
			require.Equal(t, before[i].Class*scale, after[i].Class)
			require.InDelta(t, before[i].Probability, after[i].Probability, 1e-9)
			require.InEpsilon(t, before[i].Timeout, after[i].Timeout, 1e-6)
		}
	})
}

func TestAClassThatVanishedIsNotChosen(t *testing.T) {
	t.Parallel()
	a := analyzer(t)
	eachHistory(t, func(t *testing.T, r *rand.Rand, s sizeclass.Statistics) {
		q := question()
		gone := r.IntN(len(classes))
		q.Classes = slices.Delete(slices.Clone(classes), gone, gone+1)
		q.Random = r.Float64()
		selection, _, err := a.Select(s, q)
		require.NoError(t, err)
		require.Contains(t, q.Classes, selection.Class)
		require.Len(t, selection.Choices, len(q.Classes))
		next, ok := a.Escalate(s, q, classes[gone])
		require.Equal(t, gone < 3, ok)
		if ok {
			require.Equal(t, q.Classes[len(q.Classes)-1], next.Class)
		}
	})
}
