package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchunit"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/results"
	"github.com/benchloom/benchloom/internal/stats"
)

// LocalReport holds the results of a local run, with a comparison if it measured two
// artifacts.
type LocalReport struct {
	Suite string `json:"suite"`
	// Artifacts lists the artifacts, the baseline first.
	Artifacts []LocalArtifact `json:"artifacts"`
	// Results has one entry per look, test case and artifact.
	Results []jobrun.LocalResult `json:"results"`
	// Comparison compares the second artifact with the first. For one artifact, it
	// has the statistics of that; nil if nothing was measured.
	Comparison *stats.Comparison `json:"comparison,omitempty"`
	Summary    *stats.Summary    `json:"summary,omitempty"`
	// Verdicts has one entry for each series of two artifacts that decides.
	Verdicts []LocalVerdict `json:"verdicts,omitempty"`
	// Missing lists the test cases that failed or were left out, with the reason.
	Missing []apiclient.MissingTestCase `json:"missing,omitempty"`
}

// LocalArtifact is a measured artifact.
type LocalArtifact struct {
	Tag      string `json:"tag"`
	Identity string `json:"identity"`
}

// NewLocalReport sums up a local run. asked and all choose the compared metrics as
// for [ChooseMetrics]; the results keep all metrics.
func NewLocalReport(r *jobrun.LocalResults, asked []string, all bool) (LocalReport, error) {
	report := LocalReport{Suite: r.Suite.Name(), Results: r.Results}
	for _, s := range r.Subjects {
		report.Artifacts = append(report.Artifacts, LocalArtifact{Tag: s.Name, Identity: s.Identity})
	}
	report.Missing = localMissing(r.Results)
	if len(r.Subjects) == 0 {
		return report, nil
	}
	chosen, err := ChooseMetrics(measuredLocally(r.Results), asked, all)
	if err != nil {
		return report, err
	}
	a := samples(r.Of(r.Subjects[0].Name), chosen)
	if len(r.Subjects) == 1 {
		// Only the statistics of one side are needed.
		series, _ := results.Pairs(r.Suite, a, a)
		for i := range series {
			series[i].B = nil
		}
		comparison, err := stats.Compare(series, stats.DefaultOptions())
		report.Comparison = &comparison
		return report, err
	}
	series, _ := results.Pairs(r.Suite, a, samples(r.Of(r.Subjects[1].Name), chosen))
	options := stats.DefaultOptions()
	// The artifacts were measured in turns: drift affects both alike.
	options.SessionVariance = 0
	comparison, err := stats.Compare(series, options)
	if err != nil {
		return report, fmt.Errorf("comparing %s with %s: %w", r.Subjects[1].Name, r.Subjects[0].Name, err)
	}
	summary := stats.Summarize(comparison, stats.TestCases{})
	report.Comparison, report.Summary = &comparison, &summary
	return report, nil
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
func (r LocalReport) WriteText(w io.Writer, options stats.TableOptions) error {
	if err := r.heading(w); err != nil {
		return err
	}
	switch {
	case r.Comparison == nil:
	case r.Summary != nil:
		if err := stats.WriteText(w, *r.Comparison, *r.Summary, options); err != nil {
			return err
		}
		if err := r.writeVerdicts(w); err != nil {
			return err
		}
	default:
		if err := writeStatistics(w, r.Comparison.Results, options.Width); err != nil {
			return err
		}
	}
	var b strings.Builder
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
func (r LocalReport) WriteMarkdown(w io.Writer, options stats.TableOptions) error {
	if r.Summary == nil {
		if err := write(w, "```\n"); err != nil {
			return err
		}
		if err := r.WriteText(w, options); err != nil {
			return err
		}
		return write(w, "```\n")
	}
	if err := stats.WriteMarkdown(w, *r.Comparison, *r.Summary, options); err != nil {
		return err
	}
	var b strings.Builder
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

func writeStatistics(w io.Writer, list []stats.Result, width int) error {
	t := NewTable(Column{Heading: "benchmark"}, Column{Heading: "profile"}, Column{Heading: "scenario"}, Column{Heading: "backend"},
		Column{Heading: "metric"}, Column{Heading: "median", Right: true}, Column{Heading: "min", Right: true}, Column{Heading: "spread", Right: true}, Column{Heading: "n", Right: true})
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(x, y stats.Result) int {
		return cmp.Or(bench.CompareTestCases(testCase(x.TestCase), testCase(y.TestCase)), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Metric, y.Metric))
	})
	for _, r := range list {
		t.Row(strings.TrimSpace(r.Benchmark+" "+r.Line), r.Profile, r.Scenario, r.Backend, r.Metric, quantity(r, r.A.Median), quantity(r, r.A.Min), spread(r.A), strconv.Itoa(r.A.N))
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
func quantity(r stats.Result, value float64) string {
	tidied, unit := benchunit.Tidy(value, r.Unit)
	if r.Exact {
		return fmt.Sprintf("%.0f %s", tidied, unit)
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
