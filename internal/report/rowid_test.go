package report_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/stats"
)

func TestARowIsFoundByItsID(t *testing.T) {
	t.Parallel()
	full := stats.TestCase{Benchmark: "gin", Profile: "build", Scenario: "full", Backend: "gc", Target: "x86_64-unknown-linux-gnu"}
	for want, key := range map[string]stats.Key{
		"gin/build/full/gc/x86_64-unknown-linux-gnu/wall-time":             {TestCase: full, Metric: "wall-time"},
		"gin/build/full/gc/x86_64-unknown-linux-gnu/Parse%2Fsmall/ns%2Fop": {TestCase: full, Line: "Parse/small", Metric: "ns/op"},
		"a%20b%25////x/%3Cimg%3E":                                          {TestCase: stats.TestCase{Benchmark: "a b%", Target: "x"}, Metric: "<img>"},
	} {
		require.Equal(t, want, report.RowID(key))
		read, err := report.ParseRowID(want)
		require.NoError(t, err)
		require.Equal(t, key, read)
	}
	for _, bad := range []string{"", "markdown", "gin/wall-time", "/////wall-time", "gin/////", "gin/a/b/c/d/e/f/g", "gin/%zz///x/wall-time", "gin/%00///x/wall-time", "gin/%ff///x/wall-time"} {
		_, err := report.ParseRowID(bad)
		require.ErrorContains(t, err, "is not the ID of a row", bad)
	}
}

func TestDetailsSayHowLargeAChangeIs(t *testing.T) {
	t.Parallel()
	row := report.Row{
		Deciding: true, Delta: 0.01, A: stats.Side{N: 5, Median: 10, Spread: 2}, B: stats.Side{N: 5, Median: 13, Spread: 2}, Change: stats.Change{Value: -0.25},
	}
	require.Equal(t, []string{"+1.5", "25.0 ×", "-"}, []string{row.Detail(report.EffectDetail), row.Detail(report.MagnitudeDetail), row.Detail(report.CorrectedDetail)})
	row.Turns = &report.Turns{P: 0.0001, Level: 0.001, Change: 0.02}
	require.Equal(t, []string{"-", "2.0 ×", "0.001"}, []string{row.Detail(report.EffectDetail), row.Detail(report.MagnitudeDetail), row.Detail(report.CorrectedDetail)})
	row.Delta = 0
	require.Equal(t, "-", row.Detail(report.MagnitudeDetail))
}

// Nobody need guess why a row has its least relevant change.
func TestTheSourceOfAThresholdIsNamed(t *testing.T) {
	t.Parallel()
	for want, row := range map[string]report.Row{
		"exact metric":                  {Key: stats.Key{Metric: "size:binary"}, Deciding: true, Exact: true},
		"no noise, as declared or seen": {Key: stats.Key{Metric: "allocs/op"}, Deciding: true, Exact: true},
		"metric":                        {Key: stats.Key{Metric: "instructions:u"}, Deciding: true, Delta: 0.002},
		"default":                       {Key: stats.Key{Metric: "wall-time"}, Deciding: true, Delta: 0.01},
		"as it was judged":              {Key: stats.Key{Metric: "wall-time"}, Deciding: true, Delta: 0.05},
		"-":                             {Key: stats.Key{Metric: "cache-misses"}, Delta: 0.01},
	} {
		require.Equal(t, want, row.Detail(report.SourceDetail), row.Metric)
	}
}

func FuzzParseRowID(f *testing.F) {
	f.Add("gin/build/full/gc/x86_64-unknown-linux-gnu/Parse%2Fsmall/ns%2Fop")
	f.Fuzz(func(t *testing.T, id string) {
		key, err := report.ParseRowID(id)
		if err != nil {
			return
		}
		again, err := report.ParseRowID(report.RowID(key))
		require.NoError(t, err)
		require.Equal(t, key, again)
	})
}
