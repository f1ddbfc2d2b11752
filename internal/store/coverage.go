package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/plan"
)

// CoverageOf reads the results and open jobs of an artifact in a pool. All maps are empty
// for an artifact without requests.
func (s *Store) CoverageOf(ctx context.Context, project string, of plan.CoverageQuery) (plan.Coverage, error) {
	c, err := coverageOf(ctx, s.pool, project, of)
	return c, wrap("reading the results and jobs of "+of.Tag, err)
}

func coverageOf(ctx context.Context, q querier, project string, of plan.CoverageQuery) (plan.Coverage, error) {
	c := plan.Coverage{Stored: map[bench.TestCase]bool{}, Running: map[bench.TestCase]bench.JobKey{}, Impossible: map[bench.TestCase]string{}}
	artifact, err := value[int64](ctx, q, `select id from artifact where project = $1 and tag = $2`, project, of.Tag)
	if errors.Is(err, ErrNotFound) {
		return c, nil
	} else if err != nil {
		return c, err
	}
	type row struct {
		bench.TestCase
		State string
		Key   bench.JobKey
		Why   string
	}
	rows, err := all[row](ctx, q, `
		with here as (
			select 'stored' as state, r.test_case_id, '' as key, '' as why
			from latest_result r join job_run n on n.id = r.run_id
			where r.artifact_id = @artifact and r.size_class = @size_class and (n.pool = @pool or r.hardware_id in (
				select c.hardware_id from collector_config c where c.target = @target and c.size_class = @size_class and c.pool = @pool))
			union all
			-- a job that measures in turns is nobody else's: it fails with its other side
			select 'running', t.test_case_id, j.key, '' from job_queue j join job_test_case t on t.job_id = j.id
			where j.artifact_id = @artifact and j.versus is null and j.target = @target and j.size_class = @size_class and j.pool = @pool
				and t.done_class is null and j.status in ('queued', 'handed_out', 'in_progress')
			union all
			select 'impossible', t.test_case_id, '', j.message from job_queue j join job_test_case_state t on t.job_id = j.id and not t.done
			where t.artifact_id = @artifact and j.artifact_id = @artifact and j.versus is null
				and j.target = @target and j.status = 'failure' and j.suite_hash = @suite_hash
				-- what failed there may have gone on to a larger class, to fail there, too
				and ((j.size_class = @size_class and j.pool = @pool) or exists (
					select from job_run n where n.job_id = j.id and n.size_class = @size_class and n.pool = @pool and n.size_class < j.size_class))
		)
		select h.state, h.key, h.why, tc.benchmark, tc.profile, tc.scenario, tc.backend, tc.target
		from here h join test_case tc on tc.id = h.test_case_id`,
		pgx.NamedArgs{
			"artifact": artifact, "target": of.Target, "size_class": of.SizeClass, "pool": of.Name, "suite_hash": of.SuiteHash,
		})
	if err != nil {
		return c, err
	}
	for _, r := range rows {
		switch r.State {
		case "stored":
			c.Stored[r.TestCase] = true
		case "running":
			c.Running[r.TestCase] = r.Key
		default:
			c.Impossible[r.TestCase] = r.Why
		}
	}
	return c, nil
}
