package chart_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/chart"
)

func TestStretchesCoverColumns(t *testing.T) {
	t.Parallel()
	plot := chart.Plot{Left: 10, Right: 110, From: 0, To: 100}
	for name, tt := range map[string]struct {
		stretches []chart.Stretch
		want      []chart.Columns
	}{
		"none":                   {nil, nil},
		"one":                    {[]chart.Stretch{{10, 20}}, []chart.Columns{{20, 30}}},
		"shorter than a column":  {[]chart.Stretch{{10, 10.01}}, []chart.Columns{{20, 21}}},
		"those that touch":       {[]chart.Stretch{{20, 30}, {10, 20}, {12, 14}}, []chart.Columns{{20, 40}}},
		"with a gap":             {[]chart.Stretch{{10, 20}, {50, 60}}, []chart.Columns{{20, 30}, {60, 70}}},
		"over the edges":         {[]chart.Stretch{{-10, 5}, {95, 1000}}, []chart.Columns{{10, 15}, {105, 110}}},
		"outside":                {[]chart.Stretch{{-10, -5}, {101, 200}}, nil},
		"turned round, and none": {[]chart.Stretch{{20, 10}, {math.NaN(), 3}, {3, math.NaN()}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, plot.Columns(tt.stretches))
		})
	}
}

// However many stretches there are, their drawing is bounded by its columns.
func TestShadesAreBehindLinesAndBounded(t *testing.T) {
	t.Parallel()
	c := of(series(1, 2, 3))
	var many []chart.Stretch
	for i := range 100_000 {
		many = append(many, chart.Stretch{From: float64(i) / 50_000, To: float64(i)/50_000 + 1e-6})
	}
	c.Shades = []chart.Shade{{Class: "a", Label: `"setting" <up>`, Stretches: many}, {Class: "b", Stretches: []chart.Stretch{{From: 1, To: 2}}, Foot: true}, {Class: "none"}}
	svg := c.SVG()
	elements(t, svg)
	require.Less(t, len(svg), 10_000)
	require.Less(t, strings.Index(svg, `class="shade a"`), strings.Index(svg, `class="line"`))
	require.Contains(t, svg, "&#34;setting&#34; &lt;up&gt;")
	require.NotContains(t, svg, "shade none")
}
