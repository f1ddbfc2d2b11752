package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
)

// keptLists bounds the lists of each kind that a process keeps: those of 5,000 artifacts
// take half a megabyte, those of 5,600 series one.
const keptLists = 8

// historyLists keeps the artifacts and series of which histories are made.
type historyLists struct {
	artifacts stamped[artifactsKey, []HistoryArtifact]
	series    stamped[seriesListKey, seriesList]
	releases  stamped[string, []HistoryRelease] // by project
}

func newHistoryLists() historyLists {
	return historyLists{
		newStamped[artifactsKey, []HistoryArtifact](keptLists), newStamped[seriesListKey, seriesList](keptLists), newStamped[string, []HistoryRelease](keptLists),
	}
}

// artifactsKey identifies a list of artifacts.
type artifactsKey struct {
	project string
	of      bench.RequestType
	most    int
}

// HistoryArtifacts lists the artifacts of a type of request whose jobs have ended, at most
// most, the oldest first. Of an artifact with several requests, the newest counts. The list
// is kept as long as no request of the type changes: callers must not change it.
func (s *Store) HistoryArtifacts(ctx context.Context, project string, of bench.RequestType, most int) ([]HistoryArtifact, error) {
	seen := func() (string, error) { return s.seen(ctx) }
	list, err := s.lists.artifacts.get(artifactsKey{project, of, most}, seen, func() (string, error) {
		// The column xmin of a row changes whenever the row does; tags of artifacts never do.
		return value[string](ctx, s.reports, `
			select concat_ws(' ',
				(select concat_ws(' ', count(*), sum(hashtextextended(q.id, q.xmin::text::bigint))) from benchmark_request q where q.project = $1 and q.type = $2),
				(select concat_ws(' ', count(*), max(a.id), sum(a.id)) from artifact a where a.project = $1))`, project, of)
	}, func() ([]HistoryArtifact, error) {
		list, err := all[HistoryArtifact](ctx, s.reports, `
			select id, tag, at, dated from (
				select distinct on (a.id) a.id, a.tag, coalesce(q.commit_date, q.created_at) as at, q.commit_date is not null as dated, q.created_at
				from benchmark_request q join artifact a on a.project = q.project and a.tag = q.tag
				where q.project = $1 and q.type = $2 and q.jobs_done_at is not null and coalesce(q.outcome, '') not in ('cancelled', 'expired')
				order by a.id, q.created_at desc
			) known
			order by at desc, created_at desc, id desc limit $3`, project, of, most)
		slices.Reverse(list)
		return list, err
	})
	return list, wrap("listing the artifacts in the history of project "+project, err)
}

// seriesListKey identifies a list of series.
type seriesListKey struct {
	project string
	most    int
}

// seriesList holds the first series of a project, and the number of those that are left out.
type seriesList struct {
	first []Series
	left  int
}

// SeriesOf lists the series of a project, by ID, without those of commands: the first most,
// and how many are left out. The list is kept while its series are the same: callers must
// not change it.
func (s *Store) SeriesOf(ctx context.Context, project string, most int) (list []Series, left int, err error) {
	const from = ` from test_case tc join pstat_series se on se.test_case_id = tc.id where tc.project = $1 and tc.benchmark <> $2`
	total := 0
	seen := func() (string, error) { return s.seen(ctx) }
	kept, err := s.lists.series.get(seriesListKey{project, most}, seen, func() (string, error) {
		var last, sum int64 // series and test cases never change
		err := s.reports.QueryRow(ctx, `select count(*), coalesce(max(se.id), 0), coalesce(sum(se.id), 0)::bigint`+from, project, bench.CommandBenchmark).Scan(&total, &last, &sum)
		return fmt.Sprint(total, last, sum), err
	}, func() (out seriesList, err error) {
		ids, err := column[int64](ctx, s.reports, `select se.id`+from+` order by se.id limit $3`, project, bench.CommandBenchmark, most)
		if err != nil {
			return out, err
		}
		names, err := s.seriesByID(ctx, s.reports, ids)
		for _, id := range ids {
			if name, there := names[id]; there {
				out.first = append(out.first, name)
			}
		}
		out.left = max(0, total-len(ids))
		return out, err
	})
	return kept.first, kept.left, wrap("listing the series of project "+project, err)
}
