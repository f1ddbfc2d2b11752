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

// Relevant tells whether a metric is compared when nobody names metrics:
// instructions, CPU time, wall time, memory, sizes and the units of benchmark
// outputs.
func Relevant(m bench.Metric) bool { return !m.Explains() }

// ChooseMetrics picks those of the measured metrics that are to be compared:
// the asked ones, else the relevant ones, else (all) every one. "size:*" stands
// for all sizes. An asked one that was not measured is an error that lists those
// that were.
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
			return nil, fmt.Errorf("%w: metric %q was not measured; measured are %s", bench.ErrInvalid, name, joined(measured))
		}
	}
	return chosen, nil
}

func match(name string, m bench.Metric) bool {
	if prefix, ok := strings.CutSuffix(name, "*"); ok {
		return strings.HasPrefix(string(m), prefix)
	}
	return strings.EqualFold(name, string(m))
}

func joined(metrics []bench.Metric) string {
	if len(metrics) == 0 {
		return "none"
	}
	names := make([]string, len(metrics))
	for i, m := range metrics {
		names[i] = string(m)
	}
	return strings.Join(names, ", ")
}

// Verdict is the conclusion about one series, as far as a command decides on it.
type Verdict struct {
	Metric bench.Metric
	// Regression is set when the series became significantly worse, as package
	// stats decides it.
	Regression bool
}

// Verdicts are those of a comparison that was made here.
func Verdicts(c stats.Comparison) []Verdict {
	list := make([]Verdict, len(c.Results))
	for i, r := range c.Results {
		list[i] = Verdict{Metric: bench.Metric(r.Metric), Regression: r.Significant && r.Verdict == stats.Regression}
	}
	return list
}

// ReadVerdicts reads them from a comparison as the API writes it in JSON, where
// verdicts are words.
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
		return nil, fmt.Errorf("reading the comparison: %w; is it the Benchloom API, of about this version?", err)
	}
	list := make([]Verdict, len(c.Result.Results))
	for i, r := range c.Result.Results {
		list[i] = Verdict{Metric: r.Metric, Regression: r.Significant && r.Verdict == stats.Regression.String()}
	}
	return list, nil
}

// Measured lists the metrics of verdicts, by name.
func Measured(list []Verdict) []bench.Metric {
	metrics := make([]bench.Metric, len(list))
	for i, v := range list {
		metrics[i] = v.Metric
	}
	slices.Sort(metrics)
	return slices.Compact(metrics)
}

// Regressions counts the series that became significantly worse.
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
