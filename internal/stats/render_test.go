package stats_test

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/stats"
)

var update = flag.Bool("update", false, "write the files in testdata anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// toolchains returns a comparison with one of each kind: a regression, an improvement, noise, too few values, an exact
// metric, a test case on one side only, a newly failing one, warnings.
func toolchains(t *testing.T) (stats.Comparison, stats.Summary) {
	t.Helper()
	key := func(metric, benchmark string) stats.Key {
		return stats.Key{Metric: metric, TestCase: stats.TestCase{
			Benchmark: benchmark, Profile: "opt", Scenario: "full", Backend: "llvm", Target: "x86_64-unknown-linux-gnu"}}
	}
	cpu := func(benchmark string, category stats.Category, a, b []float64) stats.Series {
		return stats.Series{Key: key("cpu-time", benchmark), Unit: "ns", Category: category, A: a, B: b}
	}
	size := func(benchmark string, a, b float64) stats.Series {
		return stats.Series{Key: key("binary-size", benchmark), Unit: "B", Exact: true, Category: stats.Primary, A: []float64{a}, B: []float64{b}}
	}
	json := []float64{1.234e9, 1.241e9, 1.238e9, 1.252e9, 1.236e9, 1.247e9}
	regexp := []float64{52.1e6, 52.9e6, 52.4e6, 52.6e6, 53.0e6, 52.2e6}
	tiny := []float64{811, 815, 812, 818, 813, 900}
	series := []stats.Series{
		cpu("json-decode", stats.Primary, json, times(1.2, json)),
		cpu("regexp-match", stats.Primary, regexp, times(0.75, regexp)),
		cpu("sort-ints", stats.Secondary, tiny, []float64{813, 812, 819, 814, 811, 816}),
		cpu("template", stats.Secondary, json[:2], times(1.1, json[:2])),
		cpu("only-in-a", stats.Secondary, json[:1], nil),
		size("json-decode", 1_482_113, 1_482_200),
		size("regexp-match", 2_097_152, 2_097_152),
		{Key: key("throughput", "json-decode"), Unit: "B/s", Better: stats.HigherIsBetter, Category: stats.Primary,
			A: []float64{118e6, 119e6, 118.5e6, 118.2e6}, B: []float64{98e6, 99e6, 98.5e6, 98.7e6}, EnvironmentsDiffer: true},
	}
	c, err := stats.Compare(series, stats.DefaultOptions())
	require.NoError(t, err)
	cases := func(benchmarks ...string) []stats.TestCase {
		var list []stats.TestCase
		for _, benchmark := range benchmarks {
			list = append(list, key("", benchmark).TestCase)
		}
		return list
	}
	return c, stats.Summarize(c, stats.TestCases{
		A:       cases("json-decode", "regexp-match", "sort-ints", "template", "only-in-a"),
		B:       cases("json-decode", "regexp-match", "sort-ints", "template"),
		FailedB: cases("only-in-a"),
	})
}

func TestTablesLookAsTheyShould(t *testing.T) {
	t.Parallel()
	c, s := toolchains(t)
	text := func(name string, options stats.TableOptions) {
		t.Helper()
		var b strings.Builder
		require.NoError(t, stats.WriteText(&b, c, s, options))
		golden(t, name, b.String())
	}
	text("compare.txt", stats.TableOptions{})
	text("compare-sorted-by-size.txt", stats.TableOptions{Sorting: stats.BySize})
	text("compare-reasons.txt", stats.TableOptions{Sorting: stats.ByCertainty, Reasons: true})
	text("compare-color.txt", stats.TableOptions{Color: true, OnlySignificant: true})
	text("compare-narrow.txt", stats.TableOptions{Width: 110})
	var b strings.Builder
	require.NoError(t, stats.WriteMarkdown(&b, c, s, stats.TableOptions{OnlySignificant: true}))
	golden(t, "compare.md", b.String())
}

func TestAnEmptyComparisonSaysSo(t *testing.T) {
	t.Parallel()
	c, err := stats.Compare(nil, stats.DefaultOptions())
	require.NoError(t, err)
	for _, write := range []func(io.Writer, stats.Comparison, stats.Summary, stats.TableOptions) error{stats.WriteText, stats.WriteMarkdown} {
		var b strings.Builder
		require.NoError(t, write(&b, c, stats.Summarize(c, stats.TestCases{}), stats.TableOptions{}))
		require.Contains(t, b.String(), "Nothing to compare: there are no series.")
	}
}

func TestNamesCannotForgeOutput(t *testing.T) {
	t.Parallel()
	c, err := stats.Compare([]stats.Series{{
		Key: stats.Key{Metric: "time", TestCase: stats.TestCase{Benchmark: "\x1b[2Jevil|\n**@team** `x` <img>"}},
		A:   base, B: times(1.2, base), EnvironmentsDiffer: true,
	}}, stats.DefaultOptions())
	require.NoError(t, err)
	s := stats.Summarize(c, stats.TestCases{})
	var text, markdown strings.Builder
	require.NoError(t, stats.WriteText(&text, c, s, stats.TableOptions{}))
	require.NotContains(t, text.String(), "\x1b")
	require.NoError(t, stats.WriteMarkdown(&markdown, c, s, stats.TableOptions{}))
	for _, forbidden := range []string{"evil|", "**@", "@team", "<img>", " `x`"} {
		require.NotContains(t, markdown.String(), forbidden)
	}
}

func TestValuesAreScaledToTheirUnit(t *testing.T) {
	t.Parallel()
	f := func(unit string, exact bool, value float64, want string) {
		t.Helper()
		c, err := stats.Compare([]stats.Series{{Key: stats.Key{Metric: "m"}, Unit: unit, Exact: exact,
			A: []float64{value}, B: []float64{value}}}, stats.DefaultOptions())
		require.NoError(t, err)
		var b strings.Builder
		require.NoError(t, stats.WriteText(&b, c, stats.Summarize(c, stats.TestCases{}), stats.TableOptions{}))
		require.Contains(t, b.String(), "  "+want+"  "+want+"  ", unit)
	}
	f("ns", false, 1.5e6, "1.500 ms")
	f("ms", false, 1.5, "1.500 ms")
	f("us", false, 1500, "1.500 ms")
	f("s", false, 1500, "1.500 ks")
	f("sec", false, 0.0015, "1.500 ms")
	f("MB", false, 2.097152, "2.000 MiB")
	f("KiB", false, 2048, "2.000 MiB")
	f("MiB", false, 2, "2.000 MiB")
	f("bytes", false, 2097152, "2.000 MiB")
	f("bytes", true, 2097153, "2097153 B")
	f("instructions", false, 1.5e9, "1.500 G")
	f("", false, 0, "0.000")
}

type brokenWriter struct{}

var errBroken = errors.New("broken pipe")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestAWritersErrorIsReported(t *testing.T) {
	t.Parallel()
	c, s := toolchains(t)
	require.ErrorIs(t, stats.WriteText(brokenWriter{}, c, s, stats.TableOptions{}), errBroken)
	require.ErrorIs(t, stats.WriteMarkdown(brokenWriter{}, c, s, stats.TableOptions{}), errBroken)
}
