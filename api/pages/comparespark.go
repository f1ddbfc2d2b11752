package pages

import (
	"fmt"
	"math"
	"strings"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/report"
)

// sparkline draws the values of a row on the artifacts before B, and on B.
type sparkline struct {
	// Path is the line, with gaps where an artifact has no value; empty: there is nothing to draw.
	Path string
	// X and Y are the place of the last value.
	X, Y int
	// Words say what is drawn.
	Words string
}

// Size of a sparkline, in its own units, and the margin for its dot.
const (
	sparkWidth  = 120
	sparkHeight = 20
	sparkMargin = 3
)

// leastSpark is the least range of a sparkline, in least relevant changes: what does not matter
// looks flat.
const leastSpark = 3

// addEarlier reads the earlier values of the rows that are shown. A comparison is shown without them if they cannot be
// read, and says so.
func (t *comparedTable) addEarlier(v *visit, project, b string) {
	var ids []string
	for _, r := range t.Rows[:min(len(t.Rows), apiclient.MaxEarlierRows)] {
		ids = append(ids, r.ID())
	}
	if len(ids) == 0 {
		return
	}
	answered, err := v.api.EarlierValues(v.Context(), project, b, ids)
	if err != nil {
		v.log.WarnContext(v.Context(), "reading the earlier values of a comparison failed", "path", v.URL.Path, "error", err)
		t.NoEarlier = true
		return
	}
	lines := make(map[string][]*float64, len(answered.Rows))
	for _, r := range answered.Rows {
		lines[r.Row] = r.Values
	}
	for _, g := range t.Groups {
		for i, r := range g.Rows {
			g.Rows[i].Earlier = drawSpark(r.Row, lines[r.ID()])
		}
	}
}

// drawSpark draws values; one alone makes no line.
func drawSpark(r report.Row, values []*float64) sparkline {
	low, high, n := math.Inf(1), math.Inf(-1), 0
	for _, value := range values {
		if value != nil {
			low, high, n = min(low, *value), max(high, *value), n+1
		}
	}
	if n < 2 {
		return sparkline{}
	}
	words := fmt.Sprintf("%d values, from %s to %s", n, r.ValueText(low), r.ValueText(high))
	center, span := low/2+high/2, max(high/2-low/2, leastSpark/2.0*r.Delta*math.Abs(low/2+high/2))
	var path strings.Builder
	out := sparkline{Words: words}
	drawn := false // whether the value before has a place
	for i, value := range values {
		if value == nil {
			drawn = false
			continue
		}
		x := sparkMargin + (sparkWidth-2*sparkMargin)*i/max(1, len(values)-1)
		share := 0.0
		if span > 0 {
			share = (*value - center) / span
		}
		y := int(math.Round(sparkHeight/2 - share*(sparkHeight/2-sparkMargin)))
		if drawn {
			fmt.Fprintf(&path, "l%d %d", x-out.X, y-out.Y)
		} else {
			fmt.Fprintf(&path, "M%d %dh0", x, y)
		}
		out.X, out.Y, drawn = x, y, true
	}
	out.Path = path.String()
	return out
}
