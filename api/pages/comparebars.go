package pages

import (
	"cmp"
	"math"

	"github.com/benchloom/benchloom/internal/report"
)

// changeBar draws a change with its interval around zero, in a box as wide as [barWidth].
type changeBar struct {
	// Band covers changes too small to matter or to be seen, Interval those that the values
	// allow; Value is the estimate. A width of 0 is not drawn.
	Band, Interval span
	Value          float64
	// Drawn is set if there is an estimate.
	Drawn bool
	Class string
}

type span struct{ X, Width float64 }

const (
	barWidth = 200.0
	barZero  = barWidth / 2
	// estimateWidth is the width of an estimate's mark.
	estimateWidth = 3.0
)

// drawBars draws all rows in one scale, in which the largest estimate fits. Intervals that
// are wider end at the edge.
func drawBars(rows []comparedRow) {
	largest := 0.0
	for _, r := range rows {
		if change := r.Estimate(); change.Defined() {
			largest = max(largest, math.Abs(change.Value))
		}
		largest = max(largest, r.Delta)
	}
	if largest == 0 {
		largest = 0.01
	}
	scale := barZero * 0.9 / largest
	at := func(change float64) float64 { return round(min(barWidth, max(0, barZero+scale*change))) }
	between := func(low, high float64) span { return span{at(low), round(at(high) - at(low))} }
	for i, r := range rows {
		band := max(r.Delta, r.Sees)
		b := changeBar{Band: between(-band, band), Class: map[report.Direction]string{report.Regression: "bad", report.Improvement: "good"}[r.Direction]}
		if interval := r.interval(); interval != nil {
			b.Interval = between(interval.Low, interval.High)
		}
		if change := r.Estimate(); change.Defined() && r.Text.Change != "-" {
			b.Drawn, b.Value = true, round(at(change.Value)-estimateWidth/2)
		}
		b.Class = cmp.Or(b.Class, "quiet")
		rows[i].Bar = b
	}
}

// round keeps the coordinates of drawings short.
func round(x float64) float64 { return math.Round(10*x) / 10 }
