package report_test

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/verdict"
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

func times(factor float64, values []float64) []float64 {
	scaled := make([]float64, len(values))
	for i, v := range values {
		scaled[i] = factor * v
	}
	return scaled
}

// steady holds values with a spread of some 0.1 %.
var steady = []float64{1.001, 0.9995, 1.0004, 0.9990, 1.0012, 0.9998}

func key(metric, benchmark string) stats.Key {
	return stats.Key{Metric: metric, TestCase: stats.TestCase{
		Benchmark: benchmark, Profile: "opt", Scenario: "full", Backend: "llvm", Target: "x86_64-unknown-linux-gnu"}}
}

// cpu returns a series of CPU times in nanoseconds.
func cpu(benchmark string, a, b []float64) report.Series {
	return report.Series{
		Series:   stats.Series{Key: key("cpu-time", benchmark), Unit: "ns", Category: stats.Primary, A: a, B: b},
		Deciding: true, Evidence: verdict.Evidence{Delta: 0.01},
	}
}

func size(benchmark string, a, b float64) report.Series {
	return report.Series{
		Series:   stats.Series{Key: key("binary-size", benchmark), Unit: "B", Exact: true, Category: stats.Primary, A: []float64{a}, B: []float64{b}},
		Deciding: true, Evidence: verdict.Evidence{Exact: true},
	}
}

// inTurns adds sessions of pairs in which B is slower by a factor and the noise has this relative size.
func inTurns(s report.Series, factor, noise float64, pairs ...int) report.Series {
	// A fixed sequence without a trend.
	next := func(i int) float64 { return float64((i*7919)%17-8) / 8 }
	n := 0
	for _, count := range pairs {
		var session []verdict.Pair
		for range count {
			a := 1e9 * (1 + noise*next(n))
			b := 1e9 * factor * (1 + noise*next(3*n+5))
			session = append(session, verdict.Pair{A: a, B: b})
			n++
		}
		s.Evidence.Sessions = append(s.Evidence.Sessions, session)
	}
	return s
}

// toolchains returns one row of each kind.
func toolchains() []report.Series {
	a := times(1e9, steady)
	explaining := report.Series{Series: stats.Series{Key: key("minor-faults", "json-decode"), A: []float64{100, 101, 102, 103}, B: []float64{200, 201, 202, 203}}}
	provisional := cpu("lexer", a, times(1.3, a))
	provisional.Stored = &report.Stored{Suspicion: "T=8.1 over 2 commits", Provisional: true}
	decided := inTurns(cpu("parser", a, times(1.02, a)), 1.02, 0.002, 6, 8)
	decided.Noise = "skewed"
	decided.Stored = &report.Stored{Suspicion: "T=4.2", Verdict: verdict.Verdict{
		Kind: verdict.Changed, Change: 0.0201, Interval: &stats.Interval{Low: 0.018, High: 0.022, Confidence: 0.98}, Pairs: 14, Sessions: 2,
		P: 1e-4, Level: 1e-3, Sees: 0.011, Reason: "p=1e-04 is below 0.001, all 2 sessions agree"}}
	quiet := cpu("printer", a, times(1.001, a))
	quiet.Stored = &report.Stored{Verdict: verdict.Verdict{Kind: verdict.NoSuspicion, Sees: 0.014, Reason: "its history gave no cause"}}
	higher := inTurns(cpu("json-decode", nil, nil), 0.9, 0.002, 6, 8, 8)
	higher.Metric, higher.Unit, higher.Better = "throughput", "B/s", stats.HigherIsBetter
	return []report.Series{
		inTurns(cpu("json-decode", a, times(1.2, a)), 1.2, 0.002, 6, 8, 8),
		inTurns(cpu("regexp-match", a, times(0.75, a)), 0.75, 0.002, 6, 8),
		inTurns(cpu("sort-ints", a, a), 1, 0.002, 6, 8, 8, 12, 12),
		inTurns(cpu("template", a, times(1.1, a)), 1, 0.2, 6),
		cpu("suspect", a, times(1.1, a)),
		cpu("same", a, a),
		cpu("once", a[:1], a[:1]),
		decided, provisional, quiet, explaining, higher,
		size("json-decode", 1_482_113, 1_482_200),
		size("regexp-match", 2_097_152, 2_097_152),
	}
}

func compared(t *testing.T, series []report.Series, standing report.Standing) report.Report {
	t.Helper()
	r, err := report.New(series, standing)
	require.NoError(t, err)
	return r
}

func cases(benchmarks ...string) []stats.TestCase {
	var list []stats.TestCase
	for _, benchmark := range benchmarks {
		list = append(list, key("", benchmark).TestCase)
	}
	return list
}

func TestTablesLookAsTheyShould(t *testing.T) {
	t.Parallel()
	r := compared(t, toolchains(), report.Standing{Provisional: true, Looks: 2, SpentSeconds: 130, OwnSeconds: 40, Hint: "To decide it, measure both in turns."})
	s := report.Summarize(r, report.TestCases{A: cases("json-decode", "only-in-a"), B: cases("json-decode")})
	text := func(name string, r report.Report, options report.TableOptions) {
		t.Helper()
		var b strings.Builder
		require.NoError(t, report.WriteText(&b, r, s, options))
		golden(t, name, b.String())
	}
	text("compare.txt", r, report.TableOptions{})
	text("compare-sorted-by-size.txt", r, report.TableOptions{Sorting: report.BySize})
	text("compare-reasons.txt", r, report.TableOptions{Sorting: report.ByCertainty, Reasons: true})
	text("compare-color.txt", r, report.TableOptions{Color: true, OnlyRemarkable: true})
	text("compare-narrow.txt", r, report.TableOptions{Width: 110})
	var b strings.Builder
	require.NoError(t, report.WriteMarkdown(&b, r, s, report.TableOptions{OnlyRemarkable: true}))
	golden(t, "compare.md", b.String())
	b.Reset()
	encoder := json.NewEncoder(&b)
	encoder.SetIndent("", "  ")
	require.NoError(t, encoder.Encode(r))
	golden(t, "compare.json", b.String())
}

func TestAnEmptyComparisonSaysSo(t *testing.T) {
	t.Parallel()
	r := compared(t, nil, report.Standing{})
	s := report.Summarize(r, report.TestCases{})
	for _, write := range []func(io.Writer, report.Report, report.Summary, report.TableOptions) error{report.WriteText, report.WriteMarkdown} {
		var b strings.Builder
		require.NoError(t, write(&b, r, s, report.TableOptions{}))
		require.Contains(t, b.String(), "Nothing to compare: there are no series.")
	}
}

func TestNamesCannotForgeOutput(t *testing.T) {
	t.Parallel()
	forged := cpu("\x1b[2Jevil|\n**@team** `x` <img>", steady, times(1.2, steady))
	forged.EnvironmentsDiffer = true
	r := compared(t, []report.Series{forged}, report.Standing{})
	s := report.Summarize(r, report.TestCases{})
	var text, markdown strings.Builder
	require.NoError(t, report.WriteText(&text, r, s, report.TableOptions{}))
	require.NotContains(t, text.String(), "\x1b")
	require.NoError(t, report.WriteMarkdown(&markdown, r, s, report.TableOptions{}))
	for _, forbidden := range []string{"evil|", "**@", "@team", "<img>", " `x`"} {
		require.NotContains(t, markdown.String(), forbidden)
	}
}

func TestValuesAreScaledToTheirUnit(t *testing.T) {
	t.Parallel()
	f := func(unit string, exact bool, value float64, want string) {
		t.Helper()
		s := cpu("x", []float64{value}, []float64{value})
		s.Unit, s.Exact = unit, exact
		r := compared(t, []report.Series{s}, report.Standing{})
		var b strings.Builder
		require.NoError(t, report.WriteText(&b, r, report.Summarize(r, report.TestCases{}), report.TableOptions{}))
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

	require.Equal(t, "1.500 ms", report.Value(1.5e6, "ns"))
	require.Equal(t, "2.000 MiB", report.Value(2, "MiB"))
	require.Equal(t, "12.00 k", report.Value(12000, ""))
	require.Equal(t, "0.000", report.Value(0, "instructions"))
}

type brokenWriter struct{}

var errBroken = errors.New("broken pipe")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestAWritersErrorIsReported(t *testing.T) {
	t.Parallel()
	r := compared(t, toolchains(), report.Standing{})
	s := report.Summarize(r, report.TestCases{})
	require.ErrorIs(t, report.WriteText(brokenWriter{}, r, s, report.TableOptions{}), errBroken)
	require.ErrorIs(t, report.WriteMarkdown(brokenWriter{}, r, s, report.TableOptions{}), errBroken)
}
