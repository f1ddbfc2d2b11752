package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// ResultFilter selects results. Zero values do not narrow, but at least one condition is
// required.
type ResultFilter struct {
	Project   string     `json:"project,omitempty"`
	Tag       string     `json:"tag,omitempty"` // needs a project
	Collector string     `json:"collector,omitempty"`
	Since     *time.Time `json:"since,omitempty"` // measured then or later
	Until     *time.Time `json:"until,omitempty"` // measured before
}

// Check refuses a filter that selects everything, or nothing.
func (f ResultFilter) Check() error {
	switch {
	case f.Project == "" && f.Collector == "" && f.Since == nil && f.Until == nil:
		return fmt.Errorf("%w: nothing narrows the results down: name a project, a collector, or since or until when they were measured", bench.ErrInvalid)
	case f.Tag != "" && f.Project == "":
		return fmt.Errorf("%w: the tag %s needs its project", bench.ErrInvalid, f.Tag)
	case f.Since != nil && f.Until != nil && !f.Since.Before(*f.Until):
		return fmt.Errorf("%w: no time is since %s and before %s", bench.ErrInvalid, f.Since.Format(time.RFC3339), f.Until.Format(time.RFC3339))
	}
	return nil
}

// InvalidateResults marks results as invalid: they stay, but no longer count, and their
// test cases have no result. Results already invalid do not change. The answer names the
// requests that can be retried to measure them again.
func (s *Store) InvalidateResults(ctx context.Context, f ResultFilter, act Act) (Operation, error) {
	if err := f.Check(); err != nil {
		return Operation{}, err
	}
	what := Operation{Action: "results invalidate", Project: f.Project, Subject: f.Tag, Detail: detail(f)}
	return s.audited(ctx, what, act, func(tx pgx.Tx, entry int64) (OperationResult, error) {
		return invalidate(ctx, tx, f, entry)
	})
}

func invalidate(ctx context.Context, tx pgx.Tx, f ResultFilter, entry int64) (OperationResult, error) {
	type counts struct{ Results, TestCases, Artifacts int }
	n, err := one[counts](ctx, tx, `
		with chosen as (
			select r.id from test_result r
			join artifact a on a.id = r.artifact_id
			join job_run n on n.id = r.run_id
			where r.invalid_at is null
				and (@project = '' or a.project = @project) and (@tag = '' or a.tag = @tag)
				and (@collector = '' or n.collector = @collector)
				and (@since::timestamptz is null or coalesce((select max(c.collected_at) from collection c where c.result_id = r.id), r.created_at) >= @since)
				and (@until::timestamptz is null or coalesce((select max(c.collected_at) from collection c where c.result_id = r.id), r.created_at) < @until)
			order by r.id for update of r
		), marked as (
			update test_result r set invalid_at = now(), invalid_audit = @entry,
				invalid_reason = (select reason from audit where id = @entry)
			where r.id in (select id from chosen) and r.invalid_at is null
			returning r.id, r.artifact_id, r.test_case_id
		)
		select count(*) as results, count(distinct (artifact_id, test_case_id)) as test_cases, count(distinct artifact_id) as artifacts from marked`,
		pgx.NamedArgs{"project": f.Project, "tag": f.Tag, "collector": f.Collector, "since": f.Since, "until": f.Until, "entry": entry})
	if err != nil {
		return OperationResult{}, err
	}
	result := OperationResult{Changed: n.Results > 0, Results: n.Results, TestCases: n.TestCases}
	result.Message = fmt.Sprintf("%s of %s of %s", count(n.Results, "result"), count(n.TestCases, "test case"), count(n.Artifacts, "artifact"))
	result.Requests, err = column[bench.RequestID](ctx, tx, `
		select distinct q.id from test_result r
		join job_run n on n.id = r.run_id
		join request_job rj on rj.job_id = n.job_id and not rj.superseded
		join job_queue j on j.id = rj.job_id
		join benchmark_request q on q.id = rj.request_id
		where r.invalid_audit = $1 and q.status = 'completed' and q.tag is not distinct from j.tag
		order by q.id limit $2`, entry, shownRequests)
	return result, err
}

// ErrInUse reports that jobs of the artifact run or wait.
var ErrInUse = errors.New("it is in use")

// PurgeArtifact removes an artifact's results, its requests and their jobs (section 4 of
// the request life cycle). The artifact's row stays, as do builds, from which other
// artifacts may come. It returns ErrInUse if a request for the artifact is open or a job
// of it has not ended, and ErrNotFound if there is no such artifact.
func (s *Store) PurgeArtifact(ctx context.Context, project, tag string, act Act) (Operation, error) {
	what := Operation{Action: "artifact purge", Project: project, Subject: tag}
	return s.audited(ctx, what, act, func(tx pgx.Tx, _ int64) (OperationResult, error) {
		return purge(ctx, tx, project, tag)
	})
}

func purge(ctx context.Context, tx pgx.Tx, project, tag string) (OperationResult, error) {
	if err := lockJobWriting(ctx, tx, project); err != nil {
		return OperationResult{}, err
	}
	type row struct {
		ID     bench.RequestID
		Status bench.RequestStatus
	}
	// Requests and artifact are locked for no key update: transactions that hold a job's
	// lock write rows that refer to them, and must not wait here.
	requests, err := all[row](ctx, tx, `
		select id, status from benchmark_request where project = $1 and tag = $2 and command is null order by id for no key update`, project, tag)
	if err != nil {
		return OperationResult{}, err
	}
	var result OperationResult
	for _, r := range requests {
		if r.Status != bench.Completed {
			return result, fmt.Errorf("%w: request %s for it is %s; cancel it first", ErrInUse, r.ID, r.Status)
		}
		result.Requests = append(result.Requests, r.ID)
	}
	artifact, err := value[int64](ctx, tx, `select id from artifact where project = $1 and tag = $2 for no key update`, project, tag)
	if err != nil {
		return OperationResult{}, err
	}
	if err := unused(ctx, tx, artifact); err != nil {
		return result, err
	}
	// Rows are locked in order before they are deleted.
	for _, sql := range []string{
		`select n.id from job_run n join job_queue j on j.id = n.job_id where $1 in (j.artifact_id, j.versus_artifact_id) and j.kind <> 'build' order by n.id for update of n`,
		`select r.id::text from test_result r where ` + purged + ` order by r.id for update`,
	} {
		if _, err := column[string](ctx, tx, sql, artifact); err != nil {
			return result, err
		}
	}
	if _, err := tx.Exec(ctx, `
		update artifact a set first_generation = coalesce((select max(j.generation) + 1 from job_queue j where a.id in (j.artifact_id, j.versus_artifact_id)), a.first_generation)
		where a.id = $1`, artifact); err != nil {
		return result, err
	}
	// Verdicts about it cannot be computed again.
	if _, err := tx.Exec(ctx, `
		delete from comparison c where $1 in (c.artifact_id, c.baseline_id)
			or exists (select from comparison_verdict v where v.comparison_id = c.id and v.against_id = $1)`, artifact); err != nil {
		return result, err
	}
	for _, step := range []struct {
		count *int
		sql   string
	}{
		// Results measured in turns are removed as a pair.
		{&result.Results, `delete from test_result r where ` + purged},
		{&result.Runs, `delete from job_run where job_id in (select id from job_queue where $1 in (artifact_id, versus_artifact_id) and kind <> 'build')`},
		{&result.Jobs, `delete from job_queue where $1 in (artifact_id, versus_artifact_id) and kind <> 'build'`},
	} {
		tag, err := tx.Exec(ctx, step.sql, artifact)
		if err != nil {
			return result, err
		}
		*step.count = int(tag.RowsAffected())
	}
	if _, err := tx.Exec(ctx, `delete from benchmark_request where id = any($1)`, result.Requests); err != nil {
		return result, err
	}
	if len(result.Requests)+result.Jobs+result.Results == 0 {
		return result, ErrNotFound // it was purged before
	}
	result.Changed = true
	result.Message = fmt.Sprintf("%s, %s, %s, %s", count(len(result.Requests), "request"), count(result.Jobs, "job"), count(result.Runs, "run"), count(result.Results, "result"))
	result.Requests = result.Requests[:min(len(result.Requests), shownRequests)]
	return result, nil
}

// purged matches a result r that is removed with artifact $1: its own, and those measured
// in turns with it.
const purged = `(r.artifact_id = $1 or r.run_id in (
	select n.id from job_run n join job_queue j on j.id = n.job_id where j.versus is not null and $1 in (j.artifact_id, j.versus_artifact_id)))`

// unused returns ErrInUse if a job of the artifact may still run. It locks all its jobs.
func unused(ctx context.Context, tx pgx.Tx, artifact int64) error {
	type row struct {
		Key    bench.JobKey
		Status bench.JobStatus
		Waits  string
	}
	if _, err := column[int64](ctx, tx, `
		select id from job_queue where $1 in (artifact_id, versus_artifact_id) and kind <> 'build' order by id for update`, artifact); err != nil {
		return err
	}
	open, err := all[row](ctx, tx, `
		select j.key, j.status, coalesce((
			select string_agg(r.id, ', ' order by r.id) from request_job rj join benchmark_request r on r.id = rj.request_id
			where rj.job_id = j.id and r.status <> 'completed'), '') as waits
		from job_queue j where $1 in (j.artifact_id, j.versus_artifact_id) and j.kind <> 'build' and j.status in ('queued', 'handed_out', 'in_progress') order by j.id`, artifact)
	if err != nil {
		return err
	}
	for _, j := range open {
		if j.Waits != "" {
			return fmt.Errorf("%w: job %s of it is %s, and %s waits for it; cancel that first", ErrInUse, j.Key, j.Status, j.Waits)
		}
		if j.Status == bench.JobInProgress {
			return fmt.Errorf("%w: job %s of it is being measured; try again when that has ended", ErrInUse, j.Key)
		}
	}
	return nil
}
