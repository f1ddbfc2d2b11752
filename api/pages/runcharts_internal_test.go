package pages

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/chart"
	"github.com/benchloom/benchloom/internal/profiler"
)

func TestSecondsAreLabelledRound(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		from, to float64
		want     []string
	}{
		"twenty seconds":    {0, 20, []string{"0 s", "5 s", "10 s", "15 s", "20 s"}},
		"five minutes":      {0, 300, []string{"0 s", "100 s", "200 s", "300 s"}},
		"a part":            {4, 8, []string{"4 s", "5 s", "6 s", "7 s", "8 s"}},
		"a tenth":           {1.23, 1.33, []string{"1.24 s", "1.26 s", "1.28 s", "1.30 s", "1.32 s"}},
		"longer than a day": {1e5, 1e9, []string{"200000000 s", "400000000 s", "600000000 s", "800000000 s", "1000000000 s"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var labels []string
			for _, tick := range secondTicks(tt.from, tt.to) {
				require.GreaterOrEqual(t, tick.X, tt.from)
				require.LessOrEqual(t, tick.X, tt.to)
				labels = append(labels, tick.Label)
			}
			require.Equal(t, tt.want, labels)
		})
	}
}

// However much was recorded, a page shows a bounded part of it, and says what it leaves out.
func TestWhatIsShownOfARunIsBounded(t *testing.T) {
	t.Parallel()
	p := profileView{profileQuery: profileQuery{Metric: profiler.CPUUtil, All: true}}
	for core := range 200 {
		p.Shown.Series = append(p.Shown.Series, apiclient.ProfileSeries{Series: profiler.Series{Scope: profiler.ScopeMachine, Name: string(profiler.CPUUtil), Device: fmt.Sprintf("cpu%d", core)}})
	}
	shown, left := p.plots()
	require.Len(t, shown, plotsShown)
	require.Equal(t, 200/plotLines-plotsShown, left)
	p.Metric = ""
	shown, left = p.plots()
	require.Len(t, shown, 1)
	require.Equal(t, 200-plotLines, shown[0].left)
	require.Equal(t, "cpu4", shown[0].series[4].Device, "not cpu10 after cpu1")
	require.Zero(t, left)

	s := samples{series: make(map[profiler.Series]*sampledSeries), measured: make(map[int]chart.Stretch), summary: &profiler.Summary{}}
	for i := range 30 {
		series := profiler.Series{Scope: profiler.ScopeTiming, Name: fmt.Sprintf("measuring/part %d", i)}
		s.series[series] = &sampledSeries{Series: series, at: []float64{10}, values: []float64{1}, batches: []int{1}}
	}
	for batch := range 10_000 {
		s.measured[batch+1] = chart.Stretch{From: float64(batch) / 500, To: float64(batch+1) / 500}
		s.summary.Commands = append(s.summary.Commands, profiler.Command{Batch: batch + 1})
	}
	drawn := phaseLanesOf(s, 0, 20)
	require.Len(t, drawn.Rows, maxLanes)
	require.Equal(t, 30-maxLanes, drawn.More)
	require.Less(t, len(drawn.Numbers), 30)
	table := p.commandsOf(s)
	require.Len(t, table.Rows, mostCommands)
	require.Equal(t, 10_000-mostCommands, table.Left)
}
