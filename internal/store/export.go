package store

import (
	"context"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// exportPage bounds the values that an export reads at a time: some megabytes.
const exportPage = 10_000

// ExportCollections yields every collection of the artifacts' latest generation, in the
// order of the tags, then by test case, surrounding and iteration. No tags means all of
// the project. Results are listed first and then read page by page, and no connection is
// held while yield runs, however slow it is: what was purged meanwhile is left out. An
// error of yield ends the export and is returned.
func (s *Store) ExportCollections(ctx context.Context, project string, tags []string, yield func(bench.ExportedCollection) error) error {
	return s.export(ctx, project, tags, func(artifact int64) error { return s.exportArtifact(ctx, artifact, `latest_result`, yield) })
}

// ExportInTurns yields every valid collection of the artifacts that was measured in turns with another one, in the same
// way and order, and by run within it.
func (s *Store) ExportInTurns(ctx context.Context, project string, tags []string, yield func(bench.ExportedCollection) error) error {
	return s.export(ctx, project, tags, func(artifact int64) error {
		return s.exportArtifact(ctx, artifact, `(select * from test_result where in_turns and invalid_at is null and not probe)`, yield)
	})
}

func (s *Store) export(ctx context.Context, project string, tags []string, artifact func(id int64) error) error {
	artifacts, err := column[int64](ctx, s.reports, `
		select id from artifact where project = $1 and (cardinality($2::text[]) = 0 or tag = any($2))
		order by array_position($2, tag), tag`, project, append([]string{}, tags...))
	if err != nil {
		return wrap("looking artifacts up", err)
	}
	for _, id := range artifacts {
		if err := artifact(id); err != nil {
			return err
		}
	}
	return nil
}

// exportable is a result with its size.
type exportable struct{ ID, Collections, Values int64 }

// exportArtifact yields the collections of an artifact's results in a table or view.
func (s *Store) exportArtifact(ctx context.Context, artifact int64, results string, yield func(bench.ExportedCollection) error) error {
	listed, err := all[exportable](ctx, s.reports, `
		select r.id, size.collections, size.values from `+results+` r join test_case tc on tc.id = r.test_case_id `+sized+`
		where r.artifact_id = $1 and r.status = 'ok' and size.collections > 0
		order by tc.benchmark, tc.profile, tc.scenario, tc.backend, tc.target, r.size_class, r.hardware_id, r.co_located, r.id`, artifact)
	if err != nil {
		return wrap("exporting results", err)
	}
	for len(listed) > 0 {
		p := pageOf(listed)
		listed = listed[len(p.results):]
		for more := true; more; {
			rows, err := s.exportPage(ctx, p)
			if err != nil {
				return wrap("exporting results", err)
			}
			for _, row := range rows {
				if err := yield(row); err != nil {
					return err
				}
			}
			if more = len(rows) == p.most; more {
				p.after = rows[len(rows)-1].Iteration
			}
		}
	}
	return nil
}

// exportedPage selects whole results, or a part of one that is large.
type exportedPage struct {
	results []int64
	// after and most select the iterations of a single result.
	after, most int
}

// pageOf returns the first page of the results that are left.
func pageOf(left []exportable) exportedPage {
	p := exportedPage{after: math.MinInt32, most: math.MaxInt32}
	if first := left[0]; first.Values > exportPage {
		p.results, p.most = []int64{first.ID}, max(1, int(exportPage*first.Collections/first.Values))
		return p
	}
	values := int64(0)
	for _, r := range left {
		if values += r.Values; values > exportPage {
			break
		}
		p.results = append(p.results, r.ID)
	}
	return p
}

func (s *Store) exportPage(ctx context.Context, p exportedPage) ([]bench.ExportedCollection, error) {
	type exported struct {
		bench.ExportedCollection
		Metrics []bench.Metric
		Numbers []float64
	}
	rows, err := s.reports.Query(ctx, `
		select a.tag, `+testCaseDocument+` as test_case, j.kind, n.collector, n.pool, r.size_class, r.hardware_id, r.co_located,
			n.segment, c.iteration, c.collected_at, c.disturbed, st.metrics, st.numbers, coalesce(j.versus || ' ' || j.tag, '') as in_turns
		from (
			select w.place, c.* from unnest($1::bigint[]) with ordinality as w (id, place) join collection c on c.result_id = w.id
			where c.iteration > $2 order by w.place, c.iteration limit $3
		) c
		join test_result r on r.id = c.result_id
		join artifact a on a.id = r.artifact_id
		join job_run n on n.id = r.run_id
		join job_queue j on j.id = n.job_id
		join test_case tc on tc.id = r.test_case_id
		cross join lateral (
			select array_agg(se.metric order by se.metric) as metrics, array_agg(p.value order by se.metric) as numbers
			from `+statistics+` p join pstat_series se on se.id = p.series_id where p.collection_id = c.id
		) st
		order by c.place, c.iteration`, p.results, p.after, p.most)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (bench.ExportedCollection, error) {
		read, err := pgx.RowToStructByNameLax[exported](row)
		read.Values = make(map[bench.Metric]float64, len(read.Metrics))
		for i, m := range read.Metrics {
			read.Values[m] = read.Numbers[i]
		}
		return read.ExportedCollection, err
	})
}
