package results

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/filter"
	"github.com/benchloom/benchloom/internal/history"
	"github.com/benchloom/benchloom/internal/store"
)

// choose finds the series with the metric and the words that were asked for.
func (r *historyReading) choose(ctx context.Context) error {
	all, left, err := r.record.SeriesOf(ctx, r.query.Project, maxHistorySeries)
	if err != nil {
		return err
	}
	r.narrow(left, "only the oldest %d of %d series are looked at", len(all), len(all)+left)
	r.countMetrics(all)
	if r.out.Metric, err = r.metric(all); err != nil {
		return err
	}
	of, metrics := withMetric(all, r.out.Metric)
	changes, left, err := r.record.HistoryChanges(ctx, r.ids, metrics, maxHistoryMarks)
	if err != nil {
		return err
	}
	r.narrow(left, "%d confirmed changes of the oldest artifacts are not marked", left)
	r.changes = make(map[caseMetric][]store.HistoryChange)
	for _, c := range changes {
		k := caseMetric{c.TestCaseID, c.Metric}
		r.changes[k] = append(r.changes[k], c)
	}
	words := filter.Read(r.query.Words, HistoryKeys)
	r.found, r.series = make([]store.Series, 0, len(of)), make([]history.Series, 0, len(of))
	for _, s := range of {
		one := history.Series{TestCase: s.TestCase, Metric: s.Metric}
		if !r.fits(words, s, one) || r.query.OneChart && one.Parameter(r.query.Split) != r.query.Chart {
			continue
		}
		r.found, r.series = append(r.found, s), append(r.series, one)
	}
	r.out.Series = len(r.found)
	if r.query.Facets {
		r.out.Facets = filter.Facets(r.query.Words, facetKeys, len(r.found), func(i int, key string) []string { return r.values(key, r.found[i], r.series[i]) })
	}
	return nil
}

// facetKeys are the [HistoryKeys] by which series are counted: not metric, which all share.
var facetKeys = slices.DeleteFunc(slices.Clone(HistoryKeys), func(key string) bool { return key == "metric" })

// withMetric returns the series of a metric, or of all metrics with that unit, and their metrics.
func withMetric(all []store.Series, metric bench.Metric) (of []store.Series, metrics []bench.Metric) {
	matches := make(map[bench.Metric]bool)
	for i := range all {
		m := all[i].Metric
		is, known := matches[m]
		if !known {
			if is = m.Matches(string(metric)); is {
				metrics = append(metrics, m)
			}
			matches[m] = is
		}
		if is {
			of = append(of, all[i])
		}
	}
	return of, metrics
}

// countMetrics lists the metrics of all series; metrics of lines are one by their unit. Those that only explain others come
// last.
func (r *historyReading) countMetrics(all []store.Series) {
	counts := make(map[bench.Metric]int)
	for _, s := range all {
		_, unit := s.Metric.Split()
		counts[unit]++
	}
	for m, n := range counts {
		r.out.Metrics = append(r.out.Metrics, HistoryMetric{m, n})
	}
	explains := func(m bench.Metric) int { return map[bool]int{true: 1}[m.Explains()] }
	slices.SortFunc(r.out.Metrics, func(a, b HistoryMetric) int {
		return cmp.Or(explains(a.Metric)-explains(b.Metric), strings.Compare(string(a.Metric), string(b.Metric)))
	})
}

// metric returns the metric that was asked for, or the one that decides in most series.
func (r *historyReading) metric(all []store.Series) (bench.Metric, error) {
	if r.query.Metric == "" {
		best := HistoryMetric{}
		for _, m := range r.out.Metrics {
			better := m.Series > best.Series || m.Series == best.Series && m.Metric == bench.WallTime
			if best.Series == 0 || better && !m.Metric.Explains() {
				best = m
			}
		}
		return best.Metric, nil
	}
	names := make([]string, len(r.out.Metrics))
	for i, m := range r.out.Metrics {
		if m.Metric.Matches(r.query.Metric) {
			return m.Metric, nil
		}
		names[i] = string(m.Metric)
	}
	if i := slices.IndexFunc(all, func(s store.Series) bool { return s.Metric.Matches(r.query.Metric) }); i >= 0 {
		return all[i].Metric, nil // that of one line
	}
	has := "it has no series yet"
	if len(names) > 0 {
		has = "it has " + strings.Join(names, ", ")
	}
	return "", fmt.Errorf("%w as %q in project %s: %s", ErrNoSuchMetric, r.query.Metric, r.query.Project, has)
}

// fits reports whether a series has the words that were asked for.
func (r *historyReading) fits(words filter.Filter, s store.Series, one history.Series) bool {
	return words.Shows(func(key string) []string { return r.values(key, s, one) }, func() []string {
		texts := []string{string(s.Metric), s.TestCase.String()}
		for _, p := range history.Parameters {
			texts = append(texts, one.Parameter(p))
		}
		return texts
	})
}

// values returns the values of a series for one of the [HistoryKeys].
func (r *historyReading) values(key string, s store.Series, one history.Series) []string {
	switch key {
	case "metric":
		_, unit := s.Metric.Split()
		return []string{string(s.Metric), string(unit)}
	case "category":
		return []string{string(r.facts.Category(s.TestCase.Benchmark))}
	case "verdict":
		var verdicts []string
		for _, c := range r.changes[caseMetric{s.TestCaseID, s.Metric}] {
			verdicts = append(verdicts, "changed", direction(s.Metric, c.Change))
		}
		return verdicts
	}
	return []string{one.Parameter(key)}
}

// direction calls a change of a metric an improvement or a regression.
func direction(m bench.Metric, change float64) string {
	if change > 0 == (m.Direction() == bench.HigherIsBetter) {
		return "improvement"
	}
	return "regression"
}
