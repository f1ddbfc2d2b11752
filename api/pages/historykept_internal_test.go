package pages

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

func keptView(scale string) *historyView {
	return &historyView{
		History: apiclient.History{Project: "p", Metric: bench.WallTime, Artifacts: []apiclient.HistoryArtifact{{Tag: "a"}, {Tag: "b"}}},
		Choices: []historyChoice{{Name: scaleParameter, Value: scale}, {Name: bandParameter, Value: "none"}, {Name: yParameter, Value: "value"}},
	}
}

func keptOf(name, digest string) apiclient.HistoryChart {
	return apiclient.HistoryChart{Name: name, Digest: digest, Lines: []apiclient.HistoryLine{{Name: "l", Unit: "sec", At: []int{0, 1}, Values: []float64{1, 2}, N: []int{1, 1}, Points: 2}}}
}

// A drawing is kept for those who ask for the same look of the same results, and stays for
// who has asked for it.
func TestDrawingsAreKept(t *testing.T) {
	t.Parallel()
	kept := newKeptCharts(1 << 20)
	first := kept.of(keptView("linear"))
	require.False(t, first.Has("1"))
	drawn := first.draw(keptOf("c", "1"))
	require.Contains(t, drawn.SVG, `class="line"`)
	require.Equal(t, 2, drawn.Lines[0].Count)

	second := kept.of(keptView("linear"))
	require.True(t, second.Has("1"))
	require.False(t, second.Has("2"))
	require.False(t, kept.of(keptView("log")).Has("1"), "another look")
	kept.cache.DeleteAll() // as others may do meanwhile
	require.Equal(t, drawn, second.draw(apiclient.HistoryChart{Name: "c", Digest: "1", Drawn: true}))

	// What changed while it was read is not kept.
	second.draw(keptOf("c", ""))
	require.Zero(t, kept.cache.Len())
}

// However many charts are drawn, also at once, what is kept is bounded.
func TestKeptDrawingsAreBounded(t *testing.T) {
	t.Parallel()
	const bytes = 40_000
	kept := newKeptCharts(bytes)
	var drawing sync.WaitGroup
	for worker := range 4 {
		drawing.Go(func() {
			for n := range 50 {
				of := kept.of(keptView("linear"))
				digest := fmt.Sprint(n, " ", worker%2)
				if of.Has(digest) {
					of.draw(apiclient.HistoryChart{Name: "c", Digest: digest, Drawn: true})
				} else {
					of.draw(keptOf("c", digest))
				}
			}
		})
	}
	drawing.Wait()
	kept.of(keptView("linear")).draw(keptOf("c", "newest"))
	total := 0
	for _, item := range kept.cache.Items() {
		total += item.Value().size()
	}
	require.Positive(t, total)
	require.LessOrEqual(t, total, bytes)
	require.True(t, kept.of(keptView("linear")).Has("newest"))
}

func TestIDsOfChartsFollowFromTheirNames(t *testing.T) {
	t.Parallel()
	const kept = "chart-221039308c0b2192" // addresses may have it
	require.Equal(t, kept, chartID("serde"))
	require.NotEqual(t, chartID("serde"), chartID(""))
	require.Regexp(t, `^chart-[0-9a-f]{16}$`, chartID(`"<>`))
}
