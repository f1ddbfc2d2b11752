package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// ResultSize is the amount of stored results.
type ResultSize struct {
	// Series counts metrics, per test case and surrounding; Values counts their values.
	Series, Values int64
}

// sized joins to each result r its number of collections, series and values.
const sized = `cross join lateral (
		select count(distinct c.id) as collections, count(distinct p.series_id) as series, count(*) as values
		from collection c join ` + statistics + ` p on p.collection_id = c.id where c.result_id = r.id
	) size`

const sumOfSizes = `select coalesce(sum(size.series), 0)::bigint as series, coalesce(sum(size.values), 0)::bigint as values`

// SizeOf returns the size of what [Store.SamplesOf] reads; zero if there is nothing.
func (s *Store) SizeOf(ctx context.Context, project, tag string) (ResultSize, error) {
	artifact, err := s.artifact(ctx, project, tag)
	if errors.Is(err, ErrNotFound) {
		return ResultSize{}, nil
	} else if err != nil {
		return ResultSize{}, wrap("looking up artifact "+tag, err)
	}
	type packedSize struct {
		Sheets int
		ResultSize
	}
	known, err := one[packedSize](ctx, s.reports, `
		select count(*) as sheets, coalesce(sum(s.series), 0)::bigint as series, coalesce(sum(s.n_values), 0)::bigint as values
		from sheet s where s.artifact_id = $1 and not exists (select from stale_result m where m.artifact_id = $1)`, artifact)
	if err != nil || known.Sheets > 0 {
		return known.ResultSize, wrap("sizing the results of "+tag, err)
	}
	if size, known, err := s.staleSize(ctx, artifact); known || err != nil {
		return size, wrap("sizing the results of "+tag, err)
	}
	size, err := one[ResultSize](ctx, s.reports, sumOfSizes+` from latest_result r `+sized+`
		where r.artifact_id = $1 and r.status = 'ok'`, artifact)
	return size, wrap("sizing the results of "+tag, err)
}

// staleSize returns the size of the results of a stale artifact. Unless there are too many, they
// are read: counting them takes as long.
func (s *Store) staleSize(ctx context.Context, artifact int64) (size ResultSize, known bool, err error) {
	if kept, known, err := s.keptStale(ctx, artifact); known || err != nil {
		return kept.size, known, err
	}
	const many = 200_000
	err = s.reading(ctx, func(tx pgx.Tx) error {
		versions, err := staleVersions(ctx, tx, artifact)
		if err != nil || versions[artifact] == "" {
			return err
		}
		rows, err := value[int](ctx, tx, `
			select (select count(*) from (select from pstat where artifact_id = $1 limit $2) c) + (select count(*) from (select from pstat_runtime where artifact_id = $1 limit $2) r)`,
			artifact, many)
		if err != nil || rows >= many {
			return err
		}
		kept, err := s.staleOf(ctx, tx, artifact, versions[artifact])
		if errors.Is(err, errUnpackable) {
			return nil
		}
		size, known = kept.size, err == nil
		return err
	})
	return size, known, err
}

// SizeInTurns returns the size of what [Store.SessionsInTurns] reads.
func (s *Store) SizeInTurns(ctx context.Context, project, a, b string) (ResultSize, error) {
	size, err := one[ResultSize](ctx, s.reports, sumOfSizes+`
		from artifact x join artifact y on y.project = x.project and y.id <> x.id
		join test_result r on r.artifact_id in (x.id, y.id) and r.status = 'ok' and r.invalid_at is null and not r.probe and r.in_turns
			and exists (select from test_result o where o.run_id = r.run_id and o.test_case_id = r.test_case_id
				and o.artifact_id in (x.id, y.id) and o.artifact_id <> r.artifact_id)
		`+sized+`
		where x.project = $1 and x.tag = $2 and y.tag = $3`, project, a, b)
	return size, wrap("sizing the results of "+a+" and "+b+" measured in turns", err)
}
