package pages

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/chart"
	"github.com/benchloom/benchloom/internal/history"
)

// A chart looks the same with all points, and with those alone that it shows.
func TestAChartOfACutLineLooksTheSame(t *testing.T) {
	t.Parallel()
	for seed, choices := range []map[string]string{
		{xParameter: "commit", yParameter: "value", bandParameter: "none"},
		{xParameter: "commit", yParameter: "value", bandParameter: "quartile"},
		{xParameter: "date", yParameter: "value", bandParameter: "minmax"},
		{xParameter: "date", yParameter: "change", bandParameter: "none"},
		{xParameter: "commit", yParameter: "value", bandParameter: "none", scaleParameter: "log"},
	} {
		t.Run(fmt.Sprint(choices), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(14, uint64(seed)))
			const artifacts = 5000
			view := historyView{History: apiclient.History{Project: "p", Metric: bench.WallTime}}
			for name, value := range choices {
				view.Choices = append(view.Choices, historyChoice{Name: name, Value: value})
			}
			at := time.Unix(1_700_000_000, 0)
			for i := range artifacts {
				at = at.Add(time.Duration(random.IntN(20_000)) * time.Second)
				view.Artifacts = append(view.Artifacts, apiclient.HistoryArtifact{Tag: fmt.Sprint("t", i), At: at, Dated: true})
			}
			changes := history.Changes{Places: []history.Place{{Surrounding: bench.Surrounding{SizeClass: 1}}, {Surrounding: bench.Surrounding{SizeClass: 2}}}}
			var points []history.Point
			for i := range artifacts {
				if i/900%2 == 1 && i%900 < 200 {
					continue // a gap that shows
				}
				v := 100 + 2.5*float64(random.IntN(40)) // each in a row of pixels of its own
				points = append(points, history.Point{At: i, Value: v, Low: v - 4, High: v + 4, Min: v - 8, Max: v + 16, N: 3, Place: i / 2000 % 2})
			}
			places, x := make([]float64, artifacts), view.along()
			for i := range places {
				places[i] = x(i)
			}
			plot := chart.Chart{}.Plot()
			cut := history.NewDrawing(places, plot.Right-plot.Left, history.Band(choices[bandParameter])).Cut(points, &changes)
			require.Less(t, len(cut.At), len(points))
			drawn := func(c history.Cut, count int) string {
				l := apiclient.HistoryLine{
					Name: "l", Metric: bench.WallTime, Unit: "sec", Points: count, Gaps: c.Gaps,
					At: c.At, Values: c.Values, N: c.N, Low: c.Low, High: c.High, Min: c.Min, Max: c.Max,
				}
				for _, b := range c.Breaks {
					l.Breaks = append(l.Breaks, apiclient.HistoryBreak{At: b.At, Reason: b.Reason})
				}
				out, words := view.draw(apiclient.HistoryChart{Name: "c", Lines: []apiclient.HistoryLine{l}})
				return out.SVG() + fmt.Sprint(words[0].First, words[0].Last, words[0].Moved, words[0].Compare, words[0].Notes, words[0].Count)
			}
			all := drawn(history.Cut{Fields: history.FieldsOf(points), Breaks: history.Breaks(points, &changes)}, 0)
			if drawn(cut, len(points)) != all { // too long to be printed
				t.Error("the cut makes another drawing")
			}
		})
	}
}

// However values lie, the n-th smallest is that of their order.
func TestTheNthSmallest(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(14, 8)) //nolint:gosec // not for secrets
	for range 2000 {
		values := make([]float64, 1+random.IntN(40))
		for i := range values {
			values[i] = float64(random.IntN(1 + random.IntN(50)))
		}
		sorted := slices.Sorted(slices.Values(values))
		n := random.IntN(len(values))
		require.InDelta(t, sorted[n], nth(slices.Clone(values), n), 0, "%v, %d", values, n)
	}
}
