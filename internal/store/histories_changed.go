package store

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/packed"
)

const (
	// staleAtOnce bounds the stale artifacts that a statement reads from their rows.
	staleAtOnce = 50
	// fewStale bounds the stale artifacts whose results are read whole: pages ask for the
	// newest ones again and again, and they are kept. Of more, only what is wanted is read.
	fewStale = 24
)

// changedPoints makes the points of stale artifacts from their rows, by series, which are by
// ascending ID, with some fields of their summaries.
func (s *Store) changedPoints(ctx context.Context, tx pgx.Tx, stale, series []int64, fields packed.Fields, names map[int64]Series) (map[int64]map[bench.Surrounding]packed.Strip, error) {
	points := make(map[int64]map[bench.Surrounding]packed.Strip)
	if len(stale) == 0 {
		return points, nil
	}
	add := func(series int64, where bench.Surrounding, p packed.Point) {
		if points[series] == nil {
			points[series] = make(map[bench.Surrounding]packed.Strip)
		}
		points[series][where] = append(points[series][where], p)
	}
	if len(stale) <= fewStale {
		wanted := wantedSeries{series, make(map[bench.Metric]bool), fields}
		for _, name := range names {
			_, unit := name.Metric.Split()
			wanted.metrics[unit] = true
		}
		versions, err := staleVersions(ctx, tx, stale...)
		if err != nil {
			return nil, err
		}
		for _, artifact := range stale {
			if err := s.stalePoints(ctx, tx, artifact, versions[artifact], wanted, add); err != nil {
				return nil, err
			}
		}
		return points, nil
	}
	for some := range slices.Chunk(stale, staleAtOnce) {
		rows, err := all[rawSeries](ctx, tx, rawOf+`r.artifact_id = any($1) and p.series_id = any($2)
			and r.test_case_id = any(array(select test_case_id from pstat_series where id = any($2)))`+rawGroups, some, series)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			one := r.series()
			add(r.SeriesID, r.Surrounding, pointOf(r.ArtifactID, &one))
		}
	}
	return points, nil
}
