package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchunit"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/inturns"
	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/results"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/verdict"
)

// LocalReport holds the results of a local run, with a comparison if it measured two
// artifacts.
type LocalReport struct {
	Suite string `json:"suite"`
	// Artifacts lists the artifacts, the baseline first.
	Artifacts []LocalArtifact `json:"artifacts"`
	// Results has one entry per look, test case and artifact.
	Results []jobrun.LocalResult `json:"results"`
	// Comparison compares the second artifact with the first. A single artifact has its
	// statistics there; nil if nothing was measured.
	Comparison *report.Report  `json:"comparison,omitempty"`
	Summary    *report.Summary `json:"summary,omitempty"`
	// Missing lists the test cases that failed or were left out, with the reason.
	Missing []apiclient.MissingTestCase `json:"missing,omitempty"`
}

// LocalArtifact is a measured artifact.
type LocalArtifact struct {
	Tag      string `json:"tag"`
	Identity string `json:"identity"`
}

// NewLocalReport sums up a local run. judged holds the final verdicts of the looks of a comparison; without it, all
// results are judged together. asked and all choose the shown metrics as for [ChooseMetrics]; the verdicts do not
// depend on them, and the results keep all metrics.
func NewLocalReport(r *jobrun.LocalResults, judged *inturns.Judgement, asked []string, all bool) (LocalReport, error) {
	local := LocalReport{Suite: r.Suite.Name(), Results: r.Results}
	for _, s := range r.Subjects {
		local.Artifacts = append(local.Artifacts, LocalArtifact{Tag: s.Name, Identity: s.Identity})
	}
	local.Missing = localMissing(r.Results)
	if len(r.Subjects) == 0 {
		return local, nil
	}
	metrics := measuredLocally(r.Results)
	chosen, err := ChooseMetrics(metrics, shownLocally(r.Results, metrics), asked, all)
	if err != nil {
		return local, err
	}
	var series []report.Series
	if len(r.Subjects) == 1 {
		// Only the statistics of one side are needed.
		a := samples(r.Of(r.Subjects[0].Name), metrics)
		described, _ := results.Pairs(r.Suite, a, a)
		for _, s := range described {
			s.B = nil
			series = append(series, report.Series{Series: s})
		}
	} else {
		series = results.WithTurns(r.Suite, nil, sessions(r, metrics))
	}
	var standing report.Standing
	if judged != nil {
		standing.Family = judged.Family.Size
		adopt(series, judged.Rows)
	}
	compared, err := report.New(series, standing)
	if err != nil {
		return local, fmt.Errorf("comparing what was measured: %w", err)
	}
	compared = compared.Select(func(row report.Row) bool { return slices.Contains(chosen, results.Metric(row.Key)) })
	local.Comparison = &compared
	if len(r.Subjects) > 1 {
		summary := report.Summarize(compared, report.TestCases{})
		local.Summary = &summary
	}
	return local, nil
}

// adopt gives the series the verdicts of a judgement.
func adopt(series []report.Series, rows []inturns.Row) {
	type key struct {
		testCase bench.TestCase
		metric   bench.Metric
	}
	verdicts := make(map[key]verdict.Verdict, len(rows))
	for _, row := range rows {
		verdicts[key{row.TestCase, row.Metric}] = row.Verdict
	}
	for i, s := range series {
		if v, judged := verdicts[key{testCase(s.TestCase), results.Metric(s.Key)}]; judged {
			series[i].Stored = &report.Stored{Verdict: v}
		}
	}
}

// sessions returns the results of two artifacts in turns, the baseline first: one session for each series and look.
func sessions(r *jobrun.LocalResults, metrics []bench.Metric) []results.Session {
	type place struct {
		testCase        bench.TestCase
		look, iteration int
	}
	b := make(map[place]jobrun.Collection)
	for _, result := range r.Of(r.Subjects[1].Name) {
		for _, c := range result.Collections {
			b[place{result.TestCase, result.Look, c.Iteration}] = c
		}
	}
	var out []results.Session
	for _, result := range r.Of(r.Subjects[0].Name) {
		for _, m := range metrics {
			s := results.Session{TestCase: result.TestCase, Metric: m}
			for _, c := range result.Collections {
				other := b[place{result.TestCase, result.Look, c.Iteration}]
				x, measured := c.Metrics[m]
				y, both := other.Metrics[m]
				if measured && both {
					s.A, s.B = append(s.A, x), append(s.B, y)
					s.Disturbed = append(s.Disturbed, len(c.Disturbed)+len(other.Disturbed) > 0)
				}
			}
			if len(s.A) > 0 {
				out = append(out, s)
			}
		}
	}
	return out
}

func measuredLocally(list []jobrun.LocalResult) []bench.Metric {
	metrics := map[bench.Metric]bool{}
	for _, r := range list {
		for _, c := range r.Collections {
			for m := range c.Metrics {
				metrics[m] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(metrics))
}

// shownLocally returns the metrics of lines by the names of their series in tables.
func shownLocally(list []jobrun.LocalResult, metrics []bench.Metric) map[string]bench.Metric {
	shown := make(map[string]bench.Metric)
	for _, r := range list {
		for _, m := range linesOnly(metrics) {
			line, unit := m.Split()
			shown[shownName(stats.Key{TestCase: stats.TestCase{Benchmark: r.TestCase.Benchmark}, Line: line, Metric: string(unit)})] = m
		}
	}
	return shown
}

// samples groups the collections of all looks into series. All have the same surroundings: this machine.
func samples(list []jobrun.LocalResult, metrics []bench.Metric) []bench.Samples {
	type key struct {
		testCase bench.TestCase
		metric   bench.Metric
	}
	var out []bench.Samples
	at := map[key]int{}
	for _, r := range list {
		for _, m := range metrics {
			for _, c := range r.Collections {
				v, ok := c.Metrics[m]
				if !ok {
					continue
				}
				i, known := at[key{r.TestCase, m}]
				if !known {
					i = len(out)
					at[key{r.TestCase, m}] = i
					out = append(out, bench.Samples{TestCase: r.TestCase, Metric: m})
				}
				out[i].Values = append(out[i].Values, v)
			}
		}
	}
	return out
}

func localMissing(list []jobrun.LocalResult) []apiclient.MissingTestCase {
	var missing []apiclient.MissingTestCase
	for _, r := range list {
		switch {
		case r.Failure != nil:
			missing = append(missing, apiclient.MissingTestCase{Tag: r.Subject, TestCase: r.TestCase, Reason: "failed: " + r.Failure.Message})
		case r.Skipped != "":
			missing = append(missing, apiclient.MissingTestCase{Tag: r.Subject, TestCase: r.TestCase, Reason: "left out: " + r.Skipped})
		}
	}
	return missing
}

// Failed returns the number of results that failed, without those left out.
func (r LocalReport) Failed() int {
	n := 0
	for _, result := range r.Results {
		if result.Failure != nil {
			n++
		}
	}
	return n
}

// WriteText writes the report for a terminal: the comparison of two artifacts, or
// the medians, minima and spreads of one.
func (r LocalReport) WriteText(w io.Writer, options report.TableOptions) error {
	if err := r.heading(w); err != nil {
		return err
	}
	switch {
	case r.Comparison == nil:
	case r.Summary != nil:
		if err := report.WriteText(w, *r.Comparison, *r.Summary, options); err != nil {
			return err
		}
	default:
		if err := writeStatistics(w, r.Comparison.Rows, options.Width); err != nil {
			return err
		}
	}
	var b strings.Builder
	if heading, causes := disturbed(r.Results); heading != "" {
		fmt.Fprintf(&b, "\n%s\n  %s\n", heading, strings.Join(causes, "\n  "))
	}
	if len(r.Missing) > 0 {
		fmt.Fprintf(&b, "\nWithout a result (%d)\n", len(r.Missing))
	}
	missing(r.Missing, func(indent int, text string) { b.WriteString("  " + strings.Repeat("  ", indent) + text + "\n") })
	if err := write(w, b.String()); err != nil {
		return err
	}
	return r.outputs(w)
}

// outputs writes the last output of failed commands.
func (r LocalReport) outputs(w io.Writer) error {
	for _, result := range r.Results {
		if result.Failure == nil || result.Failure.Output == "" {
			continue
		}
		text := fmt.Sprintf("\nEnd of the output of %s, %s\n%s", Printable(result.TestCase.String()), Printable(result.Subject), printableLines(result.Failure.Output, "  | "))
		if err := write(w, text); err != nil {
			return err
		}
	}
	return nil
}

// WriteMarkdown writes the report as Markdown.
func (r LocalReport) WriteMarkdown(w io.Writer, options report.TableOptions) error {
	if r.Summary == nil {
		if err := write(w, "```\n"); err != nil {
			return err
		}
		if err := r.WriteText(w, options); err != nil {
			return err
		}
		return write(w, "```\n")
	}
	if err := report.WriteMarkdown(w, *r.Comparison, *r.Summary, options); err != nil {
		return err
	}
	var b strings.Builder
	if heading, causes := disturbed(r.Results); heading != "" {
		fmt.Fprintf(&b, "\n### %s\n\n- %s\n", heading, strings.Join(causes, "\n- "))
	}
	if len(r.Missing) > 0 {
		fmt.Fprintf(&b, "\n### Without a result (%d)\n\n", len(r.Missing))
	}
	missing(r.Missing, func(indent int, text string) { b.WriteString(strings.Repeat("  ", indent) + "- " + text + "\n") })
	return write(w, b.String())
}

func (r LocalReport) heading(w io.Writer) error {
	text := "suite " + r.Suite + "\n"
	for i, a := range r.Artifacts {
		name := "artifact"
		if len(r.Artifacts) > 1 {
			name = string(rune('A' + i))
		}
		text += fmt.Sprintf("%s: %s (%s)\n", name, Printable(a.Tag), Printable(a.Identity))
	}
	return write(w, text+"\n")
}

func writeStatistics(w io.Writer, list []report.Row, width int) error {
	t := NewTable(Column{Heading: "benchmark"}, Column{Heading: "profile"}, Column{Heading: "scenario"}, Column{Heading: "backend"},
		Column{Heading: "metric"}, Column{Heading: "median", Right: true}, Column{Heading: "min", Right: true}, Column{Heading: "spread", Right: true}, Column{Heading: "n", Right: true})
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(x, y report.Row) int {
		return cmp.Or(bench.CompareTestCases(testCase(x.TestCase), testCase(y.TestCase)), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Metric, y.Metric))
	})
	for _, r := range list {
		t.Row(r.Name(), r.Profile, r.Scenario, r.Backend, r.Metric, quantity(r, r.A.Median), quantity(r, r.A.Min), spread(r.A), strconv.Itoa(r.A.N))
	}
	if err := t.Write(w, width); err != nil {
		return err
	}
	return write(w, "spread: standard deviation in percent of the median\n")
}

func testCase(tc stats.TestCase) bench.TestCase {
	return bench.TestCase{Benchmark: tc.Benchmark, Profile: tc.Profile, Scenario: tc.Scenario, Backend: tc.Backend, Target: bench.Target(tc.Target)}
}

// quantity formats a value with its unit: "1.23 ms", "45.6 MiB", "1200".
func quantity(r report.Row, value float64) string {
	tidied, unit := benchunit.Tidy(value, r.Unit)
	if r.Exact && tidied == math.Trunc(tidied) {
		return strings.TrimSpace(fmt.Sprintf("%.0f %s", tidied, unit))
	}
	scaler := benchunit.CommonScale([]float64{tidied}, benchunit.ClassOf(unit))
	number := scaler.Format(tidied)
	number = number[:len(number)-len(scaler.Prefix)]
	switch unit {
	case "sec":
		return number + " " + scaler.Prefix + "s"
	case "B", "B/s":
		return number + " " + scaler.Prefix + unit
	}
	return number + scaler.Prefix
}

func spread(s stats.Side) string {
	switch {
	case s.N < 2:
		return "-"
	case s.Median <= 0:
		return strconv.FormatFloat(s.Spread, 'g', 3, 64)
	}
	return fmt.Sprintf("%.1f %%", 100*s.Spread/s.Median)
}
