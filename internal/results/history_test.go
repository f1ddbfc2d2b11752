package results_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/history"
	"github.com/benchloom/benchloom/internal/packed"
	"github.com/benchloom/benchloom/internal/results"
	"github.com/benchloom/benchloom/internal/store"
)

// historyRecord is a history in memory. Its releases, series, failures and changes have lacks more than it lists.
type historyRecord struct {
	record
	artifacts []store.HistoryArtifact
	series    []store.Series
	values    map[valuesOf][]float64
	lacks     int
}

// valuesOf tells the values of a series, an artifact and a surrounding from others.
type valuesOf struct {
	series, artifact int64
	bench.Surrounding
}

func (r historyRecord) HistoryArtifacts(_ context.Context, _ string, of bench.RequestType, _ int) ([]store.HistoryArtifact, error) {
	if of != bench.Master {
		return nil, nil
	}
	return r.artifacts, nil
}

func (r historyRecord) HistoryDetails(context.Context, string, bench.RequestType, []string) ([]store.HistoryDetail, error) {
	return nil, nil
}

func (r historyRecord) HistoryReleases(context.Context, string, time.Time, time.Time, []string, int) ([]store.HistoryRelease, int, error) {
	return nil, r.lacks, nil
}

func (r historyRecord) SeriesOf(context.Context, string, int) ([]store.Series, int, error) {
	return r.series, r.lacks, nil
}

func (r historyRecord) HistoryState(context.Context, string, []int64, []int64) (store.HistoryState, error) {
	return store.HistoryState{}, nil
}

func (r historyRecord) HistoryRuns(_ context.Context, artifacts, series []int64) ([]store.HistoryRun, error) {
	var runs []store.HistoryRun
	for at := range r.values {
		if slices.Contains(artifacts, at.artifact) && slices.Contains(series, at.series) {
			runs = append(runs, store.HistoryRun{SeriesID: at.series, ArtifactID: at.artifact, Surrounding: at.Surrounding, Run: runOf(at)})
		}
	}
	return runs, nil
}

func runOf(at valuesOf) bench.RunID { return bench.RunID(fmt.Sprint(at)) }

func (r historyRecord) HistoryFailures(context.Context, []int64, []int64, int) ([]store.HistoryFailure, int, error) {
	return nil, r.lacks, nil
}

func (r historyRecord) HistoryChanges(context.Context, []int64, []bench.Metric, int) ([]store.HistoryChange, int, error) {
	return nil, r.lacks, nil
}

func (r historyRecord) Histories(_ context.Context, artifacts, series []int64, _ packed.Fields, each func(of []store.History) error) error {
	for _, id := range series {
		of := make(map[bench.Surrounding]packed.Strip)
		for at, values := range r.values {
			if at.series == id && slices.Contains(artifacts, at.artifact) {
				n := len(values)
				s := packed.Series{ID: id, Origin: originOf(at), Values: values, Iterations: make([]int, n), Disturbed: make([]bool, n)}
				of[at.Surrounding] = append(of[at.Surrounding], packed.NewPoint(at.artifact, &s))
			}
		}
		var list []store.History
		for surrounding, points := range of {
			slices.SortFunc(points, func(a, b packed.Point) int { return int(a.Artifact - b.Artifact) })
			list = append(list, store.History{Series: id, Surrounding: surrounding, Points: points})
		}
		if len(list) == 0 {
			continue
		}
		if err := each(list); err != nil {
			return err
		}
	}
	return nil
}

// originOf changes the suite with every tenth artifact.
func originOf(at valuesOf) packed.Origin {
	return packed.Origin{Segment: "6.18|performance", Suite: fmt.Sprint("suite ", at.artifact/10)}
}

// newHistoryRecord has artifacts whose IDs are not in their order, and no values.
func newHistoryRecord(random *rand.Rand, artifacts, series int) historyRecord {
	r := historyRecord{values: make(map[valuesOf][]float64)}
	for i, id := range random.Perm(artifacts) {
		r.artifacts = append(r.artifacts, store.HistoryArtifact{ID: int64(id + 1), Tag: fmt.Sprint("t", i), At: time.Unix(int64(i), 0), Dated: true})
	}
	for i := range series {
		r.series = append(r.series, store.Series{
			ID: int64(i + 1), TestCaseID: int64(i + 1), TestCase: bench.TestCase{Benchmark: fmt.Sprint("b", i), Target: "x"}, Metric: bench.WallTime,
		})
	}
	return r
}

func readAll(t *testing.T, r historyRecord, change func(q *results.HistoryQuery)) results.History {
	t.Helper()
	q := results.HistoryQuery{Project: "go", Limit: 1000, Arrangement: history.Arrangement{Split: "target", Line: history.EachSeries, Charts: 10, Lines: 1000}}
	change(&q)
	h, err := results.ReadHistory(t.Context(), r, nil, q)
	require.NoError(t, err)
	return h
}

// Whatever was measured where: each artifact has the point of the surrounding that comparisons prefer.
func TestAHistoryIsThatOfItsValues(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(14, 30))
	surroundings := []bench.Surrounding{{SizeClass: 2, HardwareID: "a"}, {SizeClass: 2, HardwareID: "b"}, {SizeClass: 3, HardwareID: "b"}, {SizeClass: 4, HardwareID: "a", CoLocated: true}}
	for range 50 {
		r := newHistoryRecord(random, 1+random.IntN(60), 1+random.IntN(6))
		for _, a := range r.artifacts {
			for _, s := range r.series {
				for _, where := range surroundings {
					if random.IntN(3) > 0 {
						continue
					}
					values := make([]float64, 1+random.IntN(5))
					for i := range values {
						values[i] = math.Exp(5 * random.NormFloat64())
					}
					r.values[valuesOf{s.ID, a.ID, where}] = values
				}
			}
		}
		h := readAll(t, r, func(q *results.HistoryQuery) { q.Runs = true })
		points := 0
		for _, c := range h.Charts {
			for _, l := range c.Lines {
				s := r.series[slices.IndexFunc(r.series, func(s store.Series) bool { return s.TestCase == *l.TestCase })]
				require.Len(t, l.At, l.Count)
				require.True(t, slices.IsSorted(l.At))
				for i := range l.At {
					p := l.Point(i)
					points++
					where := h.Places[p.Place].Surrounding
					at := valuesOf{s.ID, r.artifacts[p.At].ID, where}
					want := packed.Summarize(r.values[at])
					require.Equal(t, history.Point{
						At: p.At, Value: want.Min, Low: want.LowerQuartile, High: want.UpperQuartile, Min: want.Min, Max: want.Max,
						N: len(r.values[at]), Place: p.Place,
					}, p)
					require.Equal(t, runOf(at), l.Runs[i])
					require.Equal(t, originOf(at).Suite, h.Places[p.Place].Suite)
					for other := range r.values {
						if other.series == at.series && other.artifact == at.artifact {
							require.False(t, other.Before(where), "%v is preferred to %v", other, where)
						}
					}
				}
			}
		}
		wanted := make(map[[2]int64]bool)
		for at := range r.values {
			wanted[[2]int64{at.series, at.artifact}] = true
		}
		require.Len(t, wanted, points)
	}
}

// No value makes a history fail, and what cannot be shown says why.
func TestAHistoryBearsAnyValue(t *testing.T) {
	t.Parallel()
	alone := bench.Surrounding{SizeClass: 2, HardwareID: "a"}
	for name, c := range map[string]struct {
		values []float64 // of all but the first twenty artifacts, which have 1
		odd    bool
	}{
		"huge":         {values: []float64{1e308, 1.7e308, math.MaxFloat64}},
		"both ends":    {values: []float64{-math.MaxFloat64, math.MaxFloat64}},
		"tiny":         {values: []float64{math.SmallestNonzeroFloat64}},
		"zero":         {values: []float64{0, 0}},
		"not a number": {values: []float64{1, math.NaN()}, odd: true},
		"infinite":     {values: []float64{1, math.Inf(1), 2}, odd: true},
		"below all":    {values: []float64{math.Inf(-1)}, odd: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(14, 31))
			r := newHistoryRecord(random, 30, 2)
			for i, a := range r.artifacts {
				values := []float64{1, 1}
				if i >= 20 {
					values = c.values
				}
				r.values[valuesOf{1, a.ID, alone}] = values
				r.values[valuesOf{2, a.ID, alone}] = []float64{1}
			}
			for _, line := range []string{history.EachSeries, history.AllSeries} {
				h := readAll(t, r, func(q *results.HistoryQuery) { q.Line = line })
				require.NotEmpty(t, h.Charts[0].Lines)
				for _, l := range h.Charts[0].Lines {
					require.False(t, math.IsNaN(l.Shift) || math.IsInf(l.Shift, 0))
					require.NotEmpty(t, l.At)
					for i := range l.At {
						p := l.Point(i)
						for _, v := range []float64{p.Value, p.Low, p.High, p.Min, p.Max} {
							require.False(t, math.IsNaN(v) || math.IsInf(v, 0))
						}
					}
					if l.TestCase == nil || l.TestCase.Benchmark != "b0" {
						continue
					}
					require.Equal(t, c.odd, len(l.Failures) == 10)
					require.Len(t, l.At, 30-len(l.Failures))
					for i, f := range l.Failures {
						require.Equal(t, results.HistoryFailure{At: 20 + i, Reason: "a value is not finite"}, f)
					}
				}
			}
		})
	}
}

// A drawing gets only what it shows, and says how much there is.
func TestAHistoryIsCutForItsDrawing(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(14, 32))
	r := newHistoryRecord(random, 900, 1)
	for _, a := range r.artifacts {
		r.values[valuesOf{1, a.ID, bench.Surrounding{SizeClass: 2, HardwareID: "a"}}] = []float64{random.Float64()}
	}
	for i := range r.artifacts {
		for at := range r.values {
			if at.artifact == r.artifacts[i].ID && i%300 < 100 {
				delete(r.values, at) // gaps that show
			}
		}
	}
	for _, byDate := range []bool{false, true} {
		h := readAll(t, r, func(q *results.HistoryQuery) { q.Columns, q.Band, q.ByDate = 20, history.NoBand, byDate })
		l := h.Charts[0].Lines[0]
		require.Equal(t, 600, l.Count)
		require.Less(t, len(l.At), 500)
		require.Len(t, l.Gaps, 2)
	}
}

// What is too much at once is left out, and named with its number.
func TestAHistorySaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	r := newHistoryRecord(rand.New(rand.NewPCG(14, 33)), 3, 1)
	for _, a := range r.artifacts {
		r.values[valuesOf{1, a.ID, bench.Surrounding{}}] = []float64{1}
	}
	require.Empty(t, readAll(t, r, func(*results.HistoryQuery) {}).Narrowed)
	r.lacks = 7
	said := strings.Join(readAll(t, r, func(*results.HistoryQuery) {}).Narrowed, "; ")
	for _, words := range []string{"only the oldest 1 of 8 series", "7 confirmed changes", "the oldest 7 of 7 releases", "7 failures"} {
		require.Contains(t, said, words)
	}
}

// A metric may be named with its line.
func TestAHistoryOfALine(t *testing.T) {
	t.Parallel()
	r := newHistoryRecord(rand.New(rand.NewPCG(14, 34)), 3, 2)
	r.series[0].Metric, r.series[1].Metric = "Parse-8 ns/op", "Print-8 ns/op"
	for _, a := range r.artifacts {
		r.values[valuesOf{1, a.ID, bench.Surrounding{}}], r.values[valuesOf{2, a.ID, bench.Surrounding{}}] = []float64{1}, []float64{2}
	}
	for metric, want := range map[string]int{"": 2, "ns/op": 2, "Parse-8 ns/op": 1, "parse-8 NS/op": 1} {
		h := readAll(t, r, func(q *results.HistoryQuery) { q.Metric = metric })
		require.Equal(t, want, h.Series, metric)
		require.Len(t, h.Charts[0].Lines, want, metric)
	}
	_, err := results.ReadHistory(t.Context(), r, nil, results.HistoryQuery{Metric: "Parse-9 ns/op"})
	require.ErrorIs(t, err, results.ErrNoSuchMetric)
}

// Whatever a history has: each choice leaves as many series as it says, and counting changes nothing else.
func TestFacetsOfAHistoryCountWhatAChoiceLeaves(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(14, 6))
	r := newHistoryRecord(random, 5, 24)
	alone := bench.Surrounding{SizeClass: 2, HardwareID: "a"}
	for i := range r.series {
		s := &r.series[i]
		s.TestCase = bench.TestCase{Benchmark: fmt.Sprint("b", i/4), Profile: []string{"Opt", "debug info"}[i%2], Scenario: []string{"", "full", "incr"}[i%3], Target: "x"}
		r.values[valuesOf{s.ID, r.artifacts[0].ID, alone}] = []float64{1}
	}
	for _, words := range []string{"", "b1", "-profile:opt", "scenario:full debug", "target:x"} {
		plain := readAll(t, r, func(q *results.HistoryQuery) { q.Words = words })
		require.Empty(t, plain.Facets, "only who asks gets them")
		h := readAll(t, r, func(q *results.HistoryQuery) { q.Words, q.Facets = words, true })
		facets := h.Facets
		h.Facets = nil
		require.Equal(t, plain, h)
		require.NotEmpty(t, facets)
		for _, f := range facets {
			require.Contains(t, results.HistoryKeys, f.Key)
			for _, v := range f.Values {
				left := readAll(t, r, func(q *results.HistoryQuery) { q.Words = v.Text })
				if v.Chosen {
					require.GreaterOrEqual(t, left.Series, v.Count)
					continue
				}
				require.Equal(t, v.Count, left.Series, "%s of %q", v.Text, words)
			}
		}
	}
}
