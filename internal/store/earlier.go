package store

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/packed"
)

// SeriesName names a series of a project: one metric of one test case.
type SeriesName struct {
	TestCase bench.TestCase `json:"test_case"`
	Metric   bench.Metric   `json:"metric"`
}

// Center is the median of the values of a series on one artifact.
type Center struct {
	Tag string
	bench.Surrounding
	Value float64
}

// Centers reads the medians of series on the artifacts of these tags, in any order: those
// of the latest results, without what was measured in turns, and without what is not finite.
// Series without any are left out.
func (s *Store) Centers(ctx context.Context, project string, tags []string, of []SeriesName) (map[SeriesName][]Center, error) {
	if len(of) == 0 {
		return nil, nil
	}
	series, err := column[int64](ctx, s.reports, `
		select se.id from jsonb_to_recordset($2::jsonb) as w (test_case jsonb, metric text)
		join test_case tc on tc.project = $1 and tc.benchmark = coalesce(w.test_case ->> 'benchmark', '') and tc.profile = coalesce(w.test_case ->> 'profile', '')
			and tc.scenario = coalesce(w.test_case ->> 'scenario', '') and tc.backend = coalesce(w.test_case ->> 'backend', '') and tc.target = coalesce(w.test_case ->> 'target', '')
		join pstat_series se on se.test_case_id = tc.id and se.metric = w.metric`, project, of)
	if err != nil || len(series) == 0 {
		return nil, wrap("looking series up", err)
	}
	type artifact struct {
		ID  int64
		Tag string
	}
	artifacts, err := all[artifact](ctx, s.reports, `select id, tag from artifact where project = $1 and tag = any($2)`, project, tags)
	if err != nil {
		return nil, wrap("looking artifacts up", err)
	}
	tag := make(map[int64]string, len(artifacts))
	for _, a := range artifacts {
		tag[a.ID] = a.Tag
	}
	names, err := s.seriesByID(ctx, s.reports, series)
	if err != nil {
		return nil, wrap("looking series up", err)
	}
	centers := make(map[SeriesName][]Center, len(series))
	err = s.Histories(ctx, slices.Collect(maps.Keys(tag)), series, packed.MedianFields, func(of []History) error {
		points := 0
		for _, h := range of {
			points += len(h.Points)
		}
		found := make([]Center, 0, points)
		for _, h := range of {
			for i := range h.Points {
				if p := &h.Points[i]; !math.IsNaN(p.Median) && !math.IsInf(p.Median, 0) {
					found = append(found, Center{tag[p.Artifact], h.Surrounding, p.Median})
				}
			}
		}
		if len(found) > 0 {
			name := names[of[0].Series]
			centers[SeriesName{name.TestCase, name.Metric}] = found
		}
		return nil
	})
	return centers, wrap("reading the earlier values of series of project "+project, err)
}
