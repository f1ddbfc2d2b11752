package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/results"
)

// Relevant reports whether a metric is compared by default: instructions, CPU time,
// wall time, memory, sizes and the units of benchmark outputs.
func Relevant(m bench.Metric) bool { return !m.Explains() }

// ChooseMetrics returns the measured metrics to show: those asked for; without any, every
// one if all is set, else the relevant ones. "size:*" stands for all
// sizes. Asking for a metric that was not measured is an error that lists the
// measured ones.
func ChooseMetrics(measured []bench.Metric, asked []string, all bool) ([]bench.Metric, error) {
	if len(asked) == 0 && all {
		return measured, nil
	}
	if len(asked) == 0 {
		return slices.DeleteFunc(slices.Clone(measured), func(m bench.Metric) bool { return !Relevant(m) }), nil
	}
	var chosen []bench.Metric
	for _, name := range asked {
		before := len(chosen)
		for _, m := range measured {
			if match(name, m) && !slices.Contains(chosen, m) {
				chosen = append(chosen, m)
			}
		}
		if len(chosen) == before && !slices.ContainsFunc(chosen, func(m bench.Metric) bool { return match(name, m) }) {
			return nil, fmt.Errorf("%w: metric %q was not measured; the measured metrics are %s", bench.ErrInvalid, name, joined(measured))
		}
	}
	return chosen, nil
}

func match(name string, m bench.Metric) bool {
	if prefix, ok := strings.CutSuffix(name, "*"); ok {
		return strings.HasPrefix(string(m), prefix)
	}
	return m.Matches(name)
}

func joined(metrics []bench.Metric) string {
	if len(metrics) == 0 {
		return "none"
	}
	var names []string
	for _, m := range metrics {
		_, unit := m.Split() // not each of many lines
		if !slices.Contains(names, string(unit)) {
			names = append(names, string(unit))
		}
	}
	return strings.Join(names, ", ")
}

// Verdict is the conclusion about one series that decides on an exit code.
type Verdict struct {
	Metric bench.Metric
	// Regression reports whether the series changed for the worse.
	Regression bool
}

// Verdicts returns the verdicts of a local comparison.
func Verdicts(r report.Report) []Verdict {
	list := make([]Verdict, len(r.Rows))
	for i, row := range r.Rows {
		list[i] = Verdict{Metric: results.Metric(row.Key), Regression: row.Direction == report.Regression}
	}
	return list
}

// ReadVerdicts reads verdicts from the API's JSON comparison.
func ReadVerdicts(text string) ([]Verdict, error) {
	var c struct {
		Result report.Report `json:"result"`
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return nil, fmt.Errorf("reading the comparison: %w; is this the Benchloom API, of a similar version?", err)
	}
	return Verdicts(c.Result), nil
}

// Measured returns the metrics of verdicts, sorted by name.
func Measured(list []Verdict) []bench.Metric {
	metrics := make([]bench.Metric, len(list))
	for i, v := range list {
		metrics[i] = v.Metric
	}
	slices.Sort(metrics)
	return slices.Compact(metrics)
}

// Regressions returns the number of series that changed for the worse.
func Regressions(list []Verdict) int {
	n := 0
	for _, v := range list {
		if v.Regression {
			n++
		}
	}
	return n
}

// missing groups the test cases without a result by artifact and reason.
func missing(list []apiclient.MissingTestCase, line func(indent int, text string)) {
	type cause struct{ tag, reason string }
	var causes []cause
	cases := map[cause][]bench.TestCase{}
	for _, m := range list {
		c := cause{m.Tag, m.Reason}
		if _, known := cases[c]; !known {
			causes = append(causes, c)
		}
		cases[c] = append(cases[c], m.TestCase)
	}
	for _, c := range causes {
		line(0, Printable(c.tag+": "+c.reason))
		for _, tc := range cases[c] {
			line(1, Printable(tc.String()))
		}
	}
}
