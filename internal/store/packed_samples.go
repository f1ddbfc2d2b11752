package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
)

// packedSamples reads the sheets of an artifact as samples. known is false if it has none
// that agree with its results.
func (s *Store) packedSamples(ctx context.Context, artifact int64) (samples []bench.Samples, known bool, err error) {
	found, err := sheetsOf(ctx, s.reports, []int64{artifact}, nil)
	sheets := found[artifact]
	if err != nil || len(sheets) == 0 {
		return nil, false, err
	}
	places := slices.SortedFunc(maps.Keys(sheets), func(a, b sheetKey) int {
		if c := compareSurroundings(a.Surrounding, b.Surrounding); c != 0 {
			return c
		}
		return strings.Compare(string(a.Metric), string(b.Metric))
	})
	var ids []int64
	for _, at := range places {
		for i := range sheets[at] {
			ids = append(ids, sheets[at][i].ID)
		}
	}
	names, err := s.seriesNames(ctx, s.reports, ids)
	if err != nil {
		return nil, false, err
	}
	next := byTestCase(names)
	samples = make([]bench.Samples, len(ids))
	n := 0
	for _, at := range places {
		for i := range sheets[at] {
			series, name := &sheets[at][i], names[n]
			samples[next[n]] = bench.Samples{
				Series: series.ID, TestCase: name.TestCase, Metric: name.Metric, Kind: series.Origin.Kind, Surrounding: at.Surrounding, Segment: series.Origin.Segment,
				Values: series.Values, Iterations: series.Iterations, Disturbed: series.Disturbed, DisturbedBy: series.Origin.DisturbedBy,
			}
			n++
		}
	}
	// Lines of a metric are in the order of their IDs so far; nothing else is out of order.
	for from := 0; from < n; {
		to := from + 1
		for to < n && samples[to].TestCase == samples[from].TestCase {
			to++
		}
		slices.SortFunc(samples[from:to], func(a, b bench.Samples) int {
			if c := compareSurroundings(a.Surrounding, b.Surrounding); c != 0 {
				return c
			}
			return strings.Compare(string(a.Metric), string(b.Metric))
		})
		from = to
	}
	return samples, true, nil
}

// byTestCase returns the place of each series in the order of their test cases; those of one
// test case stay as they are.
func byTestCase(names []*Series) []int {
	count := make(map[int64]int)
	var cases []*Series // one series of each
	for _, name := range names {
		if count[name.TestCaseID]++; count[name.TestCaseID] == 1 {
			cases = append(cases, name)
		}
	}
	slices.SortFunc(cases, func(a, b *Series) int { return bench.CompareTestCases(a.TestCase, b.TestCase) })
	next := make(map[int64]int, len(cases))
	for i, before := 0, 0; i < len(cases); i++ {
		next[cases[i].TestCaseID] = before
		before += count[cases[i].TestCaseID]
	}
	places := make([]int, len(names))
	for i, name := range names {
		places[i] = next[name.TestCaseID]
		next[name.TestCaseID]++
	}
	return places
}

// seriesNames returns the names of series, in their order.
func (s *Store) seriesNames(ctx context.Context, q querier, ids []int64) ([]*Series, error) {
	names := make([]*Series, len(ids))
	var unknown []int64
	for i, id := range ids {
		if kept := s.series.Get(id); kept != nil {
			names[i] = kept.Value()
		} else {
			unknown = append(unknown, id)
		}
	}
	if len(unknown) == 0 {
		return names, nil
	}
	found, err := s.seriesByID(ctx, q, unknown)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		if names[i] != nil {
			continue
		}
		name, there := found[id]
		if !there {
			return nil, fmt.Errorf("series %d of a sheet is not in the record", id)
		}
		names[i] = &name
	}
	return names, nil
}
