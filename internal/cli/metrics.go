package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/stats"
)

// Relevant reports whether a metric is compared by default: instructions, CPU time,
// wall time, memory, sizes and the units of benchmark outputs.
func Relevant(m bench.Metric) bool { return !m.Explains() }

// ChooseMetrics returns the measured metrics to compare: if all is set, every one;
// else those asked for; without any, the relevant ones. "size:*" stands for all
// sizes. Asking for a metric that was not measured is an error that lists the
// measured ones.
func ChooseMetrics(measured []bench.Metric, asked []string, all bool) ([]bench.Metric, error) {
	if all {
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
	// Regression reports whether package stats found a significant change for the
	// worse.
	Regression bool
}

// Verdicts returns the verdicts of a local comparison.
func Verdicts(c stats.Comparison) []Verdict {
	list := make([]Verdict, len(c.Results))
	for i, r := range c.Results {
		list[i] = Verdict{Metric: bench.Metric(r.Metric), Regression: r.Significant && r.Verdict == stats.Regression}
	}
	return list
}

// ReadVerdicts reads verdicts from the API's JSON comparison, in which they are
// words.
func ReadVerdicts(text string) ([]Verdict, error) {
	var c struct {
		Result struct {
			Results []struct {
				Metric      bench.Metric `json:"metric"`
				Significant bool         `json:"significant"`
				Verdict     string       `json:"verdict"`
			} `json:"results"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return nil, fmt.Errorf("reading the comparison: %w; is this the Benchloom API, of a similar version?", err)
	}
	list := make([]Verdict, len(c.Result.Results))
	for i, r := range c.Result.Results {
		list[i] = Verdict{Metric: r.Metric, Regression: r.Significant && r.Verdict == stats.Regression.String()}
	}
	return list, nil
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

// Regressions returns the number of significant regressions.
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
