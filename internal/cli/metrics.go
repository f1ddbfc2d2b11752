package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/results"
	"github.com/benchloom/benchloom/internal/stats"
)

// Relevant reports whether a metric is compared by default: instructions, CPU time,
// wall time, memory, sizes and the units of benchmark outputs.
func Relevant(m bench.Metric) bool { return !m.Explains() }

// ChooseMetrics returns the measured metrics to show: those asked for; without any, every
// one if all is set, else the relevant ones. shown has the metrics of lines by their names in
// tables, see [Shown]. "ns/op" stands for all lines, "size:*" for all sizes, and commas
// separate several. Asking for a metric that was not measured is an error that lists the
// measured ones, or the nearest ones of lines.
func ChooseMetrics(measured []bench.Metric, shown map[string]bench.Metric, asked []string, all bool) ([]bench.Metric, error) {
	if len(asked) == 0 && all {
		return measured, nil
	}
	if len(asked) == 0 {
		return slices.DeleteFunc(slices.Clone(measured), func(m bench.Metric) bool { return !Relevant(m) }), nil
	}
	var chosen []bench.Metric
	for _, list := range asked {
		names := []string{list}
		if len(matching(measured, shown, list)) == 0 { // else the comma belongs to a line
			names = strings.Split(list, ",")
		}
		for _, name := range names {
			found := matching(measured, shown, name)
			if len(found) == 0 {
				return nil, notMeasured(name, measured, shown)
			}
			for _, m := range found {
				if !slices.Contains(chosen, m) {
					chosen = append(chosen, m)
				}
			}
		}
	}
	return chosen, nil
}

// matching returns the measured metrics that a name stands for.
func matching(measured []bench.Metric, shown map[string]bench.Metric, name string) []bench.Metric {
	name = strings.Join(strings.Fields(name), " ")
	for full, m := range shown {
		if strings.EqualFold(full, name) {
			return []bench.Metric{m}
		}
	}
	prefix, isPrefix := strings.CutSuffix(name, "*")
	return slices.DeleteFunc(slices.Clone(measured), func(m bench.Metric) bool {
		return !m.Matches(name) && !(isPrefix && strings.HasPrefix(string(m), prefix))
	})
}

// notMeasured reports a metric that was not measured.
func notMeasured(name string, measured []bench.Metric, shown map[string]bench.Metric) error {
	const most = 3
	if !strings.Contains(strings.TrimSpace(name), " ") || len(shown) == 0 {
		return fmt.Errorf("%w: metric %q was not measured; the measured metrics are %s", bench.ErrInvalid, name, joined(measured))
	}
	near := slices.Sorted(maps.Keys(shown))
	slices.SortStableFunc(near, func(x, y string) int { return bench.Distance(name, x) - bench.Distance(name, y) })
	for i, n := range near {
		near[i] = strconv.Quote(n)
	}
	return fmt.Errorf("%w: metric %q was not measured; the nearest are %s; %s stand for all lines",
		bench.ErrInvalid, name, strings.Join(near[:min(most, len(near))], ", "), joined(linesOnly(measured)))
}

// linesOnly returns the metrics that belong to lines.
func linesOnly(metrics []bench.Metric) []bench.Metric {
	return slices.DeleteFunc(slices.Clone(metrics), func(m bench.Metric) bool {
		line, _ := m.Split()
		return line == ""
	})
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

// shownName returns the name of a series of a line as the first column and the metric's column
// of a table show it; empty for a series without a line.
func shownName(k stats.Key) string {
	if k.Line == "" {
		return ""
	}
	return k.Name() + " " + k.Metric
}

// Verdict is the conclusion about one series that decides on an exit code.
type Verdict struct {
	Metric bench.Metric
	// Shown is the name of the series in tables if its metric belongs to a line, such as
	// "lexer.Parse/small ns/op".
	Shown string
	// Regression reports whether the series changed for the worse.
	Regression bool
}

// Verdicts returns the verdicts of a local comparison.
func Verdicts(r report.Report) []Verdict {
	list := make([]Verdict, len(r.Rows))
	for i, row := range r.Rows {
		list[i] = Verdict{Metric: results.Metric(row.Key), Shown: shownName(row.Key), Regression: row.Direction == report.Regression}
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

// Shown returns the metrics of lines by the names of their series in tables.
func Shown(list []Verdict) map[string]bench.Metric {
	shown := make(map[string]bench.Metric)
	for _, v := range list {
		if v.Shown != "" {
			shown[v.Shown] = v.Metric
		}
	}
	return shown
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
