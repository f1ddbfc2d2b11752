package report_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/verdict"
)

// Values of all kinds get a verdict that they can bear.
func TestOddValuesAreNotOverrated(t *testing.T) {
	t.Parallel()
	equal := []float64{5, 5, 5}
	pairs := func(a, b float64, counts ...int) report.Series {
		s := cpu("x", nil, nil)
		for _, n := range counts {
			var session []verdict.Pair
			for range n {
				session = append(session, verdict.Pair{A: a, B: b})
			}
			s.Evidence.Sessions = append(s.Evidence.Sessions, session)
		}
		return s
	}
	varying := size("x", 100, 100)
	varying.A, varying.B = []float64{100, 101, 100}, []float64{100, 100, 101}
	for name, c := range map[string]struct {
		series report.Series
		want   verdict.Kind
		reason string
	}{
		"three values a side":                    {cpu("x", []float64{1, 1.1, 0.9}, []float64{1.2, 1.3, 1.1}), verdict.NoSuspicion, "no sign"},
		"three values a side, far apart":         {cpu("x", []float64{1, 1.01, 0.99}, []float64{2, 2.02, 1.98}), verdict.Undecided, "not measured in turns"},
		"all values equal":                       {cpu("x", equal, equal), verdict.NoSuspicion, "no sign"},
		"all values of a side equal":             {cpu("x", equal, []float64{6, 6, 6}), verdict.Undecided, "not measured in turns"},
		"one value a side":                       {cpu("x", equal[:1], equal[:1]), verdict.Undecided, "too few values"},
		"a value that is no number":              {cpu("x", equal, []float64{5, math.NaN(), 5}), verdict.Undecided, "too few values"},
		"an infinite value":                      {cpu("x", []float64{math.Inf(1)}, equal), verdict.Undecided, "too few values"},
		"an exact metric that is no number":      {size("x", 1, math.NaN()), verdict.Undecided, "too few values"},
		"an exact metric that varies":            {varying, verdict.NoSuspicion, "no sign"},
		"zeros":                                  {cpu("x", []float64{0, 0, 0}, []float64{0, 0, 0}), verdict.NoSuspicion, "no sign"},
		"three equal pairs":                      {pairs(5, 5, 3), verdict.Undecided, "too few values"},
		"a few equal pairs":                      {pairs(5, 5, 6), verdict.NoDifference, "all values are equal"},
		"three pairs far apart":                  {pairs(5, 10, 3), verdict.Undecided, "too few values"},
		"many pairs far apart":                   {pairs(5, 10, 6, 8), verdict.Changed, "below"},
		"pairs of a clock that jumped backwards": {pairs(5, -1, 6, 8, 8), verdict.Undecided, "too few values"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row := compared(t, []report.Series{c.series}, report.Standing{}).Rows[0]
			require.True(t, row.Is(c.want), "%s: %s", row.Verdict, row.Reason)
			require.Contains(t, row.Reason, c.reason)
			if c.want == verdict.Undecided {
				require.NotEmpty(t, row.Needs)
			}
		})
	}
}
