package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
)

// openGroup counts open jobs to which the same rules apply.
type openGroup struct {
	fairshare.Job
	Waiting, HandedOut, Running int
}

// openGroups counts the open jobs at a task queue, in groups to which the same rules apply.
func (s *Store) openGroups(ctx context.Context, taskQueue string) ([]openGroup, error) {
	return all[openGroup](ctx, s.pool, `
		with running as (
			select j.queue, j.submitter, j.branch, count(distinct j.id) as jobs from job_run o join job_queue j on j.id = o.job_id
			where o.outcome = '' and j.task_queue = $1 and j.status in ('queued', 'handed_out', 'in_progress') group by 1, 2, 3
		), open as (
			select queue, submitter, branch, coalesce(sum(jobs) filter (where status = 'queued'), 0) as waiting, sum(jobs) as jobs
			from job_tally where task_queue = $1 group by 1, 2, 3 having sum(jobs) > 0
		)
		select o.queue, o.submitter, o.branch, o.waiting::int, (o.jobs - o.waiting - coalesce(r.jobs, 0))::int as handed_out, coalesce(r.jobs, 0)::int as running
		from open o left join running r using (queue, submitter, branch) order by o.queue`, taskQueue)
}

func jobsOf(groups []openGroup) []fairshare.Job {
	jobs := make([]fairshare.Job, len(groups))
	for i, g := range groups {
		jobs[i] = g.Job
	}
	return jobs
}

// settleShares sets the levels of queues whose open jobs go later than configured because
// of account limits.
func (s *Store) settleShares(ctx context.Context, shares []Share) error {
	limited, err := value[bool](ctx, s.pool, `select exists (select from account_limit where first_level > $1)`, fairshare.FirstLevel)
	if err != nil || !limited {
		return err
	}
	open, err := all[openGroup](ctx, s.pool, `
		select queue, submitter, branch, 0 as waiting, 0 as handed_out, 0 as running from job_tally
		group by queue, submitter, branch having sum(jobs) > 0 order by queue`)
	if err != nil {
		return err
	}
	jobs := jobsOf(open)
	rules, err := rulesOf(ctx, s.pool, jobs)
	if err != nil {
		return err
	}
	levels := rules.Earliest(jobs)
	for i, q := range shares {
		if level, ok := levels[q.Name]; ok {
			shares[i].Level = level
		}
		if q.Entitled != nil && rules.Share(q.Name, jobs) == nil {
			shares[i].Entitled = nil
		}
	}
	return nil
}

// advance moves shared jobs to the queue and account of a request if that gives them an
// earlier level, so that the request does not wait for work that others want done last.
// The jobs are locked. A running job stays; the level of one that waits in Temporal
// follows, see [Store.Relevel].
func advance(ctx context.Context, tx pgx.Tx, r bench.Request, queue string, ids []int64) error {
	if queue == "" {
		return nil
	}
	type row struct {
		ID int64
		fairshare.Job
	}
	rows, err := all[row](ctx, tx, `select j.id, j.queue, j.submitter, j.branch from job_queue j where j.id = any($1) and `+unattended, ids)
	if err != nil {
		return err
	}
	own := fairshare.Job{Queue: queue, Submitter: r.Submitter, Branch: r.Branch}
	jobs := []fairshare.Job{own}
	for _, j := range rows {
		jobs = append(jobs, j.Job)
	}
	rules, err := rulesOf(ctx, tx, jobs)
	if err != nil {
		return err
	}
	var later []int64
	for _, j := range rows {
		if rules.Level(j.Job) > rules.Level(own) {
			later = append(later, j.ID)
		}
	}
	if len(later) == 0 {
		return nil
	}
	// Jobs held by another account's limit are released.
	_, err = tx.Exec(ctx, `
		update job_queue j set queue = $2, submitter = $3, branch = $4, held = '', turn = `+turnIn+`
		where j.id = any($1)`, later, own.Queue, own.Submitter, own.Branch)
	return err
}
