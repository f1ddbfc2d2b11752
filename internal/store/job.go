package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

const jobColumns = `j.id, j.project, j.key, coalesce(j.tag, '') as tag, coalesce(j.versus, '') as versus, j.kind, j.target, j.backend, j.profile,
	coalesce(j.suite_hash, '') as suite_hash, j.test_cases, j.iterations, j.command, j.build, j.profiler, j.size_class, j.pool, j.task_queue,
	j.generation, j.rerun, j.queue, j.weight, j.priority, j.status, j.message, j.request_created, j.created_at, j.handed_out_at,
	coalesce(j.handed_out_to, '') as handed_out_to, j.started_at, j.completed_at,
	coalesce(j.moved_from, '') as moved_from, j.moved_at, j.submitter, j.branch, j.constraints, j.shape, j.selected_at, j.selected_why, j.probe,
	j.timeout_seconds, j.affinity_until, j.min_class, j.place as line, j.chunk, j.name, j.asked_by,
	(select count(*) from job_test_case_state t where t.job_id = j.id and t.done) as done`

// Job reads a job.
func (s *Store) Job(ctx context.Context, key bench.JobKey) (bench.Job, error) {
	j, err := one[bench.Job](ctx, s.pool, `select `+jobColumns+` from job_queue j where j.key = $1`, key)
	return j, wrap("reading job "+string(key), err)
}

// RequestJobs lists the jobs that a request waits or waited for, in the order in which
// they were written.
func (s *Store) RequestJobs(ctx context.Context, id bench.RequestID) ([]bench.Job, error) {
	return s.StageJobs(ctx, id, "")
}

// StageJobs lists a request's jobs of one stage; of all stages if it is empty.
func (s *Store) StageJobs(ctx context.Context, id bench.RequestID, stage bench.Stage) ([]bench.Job, error) {
	js, err := all[bench.Job](ctx, s.pool, `
		select `+jobColumns+` from request_job rj join job_queue j on j.id = rj.job_id
		where rj.request_id = $1 and ($2 = '' or rj.stage = $2) order by j.id`, id, string(stage))
	return js, wrap("listing the jobs of request "+string(id), err)
}

// FailedBuilds lists the builds of a request that failed, without replaced ones.
func (s *Store) FailedBuilds(ctx context.Context, id bench.RequestID) ([]bench.BuildKey, error) {
	keys, err := column[bench.BuildKey](ctx, s.pool, `
		select distinct j.build ->> 'key' from request_job rj join job_queue j on j.id = rj.job_id
		where rj.request_id = $1 and rj.stage = 'build' and j.status = 'failure' and j.build is not null and not rj.superseded`, id)
	return keys, wrap("listing the failed builds of request "+string(id), err)
}

// jobLock reads job $1 and locks it until the transaction ends.
const jobLock = `select ` + jobColumns + ` from job_queue j where j.key = $1 for update of j`

// lockJob reads a job and locks it until the transaction ends.
func lockJob(ctx context.Context, tx pgx.Tx, key bench.JobKey) (bench.Job, error) {
	return one[bench.Job](ctx, tx, jobLock, key)
}

// FinishJob ends a job as its stored results require. It is a success if every test case
// has an accepted result, or its build is stored, whatever gaveUp says; otherwise a
// failure, with the message gaveUp or, if that is empty, the last errors. A job that has
// ended does not change. Open runs are closed. Every call returns the waiters, so that a
// repetition notifies them again. A job that was asked for several times is asked for once
// more, unless its build is stored by now.
//
// The end is that of the job as it was asked for rerun times. If it was asked for again
// since, nothing changes, and the call returns its former end, without waiters.
func (s *Store) FinishJob(ctx context.Context, key bench.JobKey, rerun int, gaveUp string) (bench.JobEnd, error) {
	return s.endJob(ctx, key, rerun, bench.RunLost, func(tx pgx.Tx, job endingJob) (bench.JobStatus, string, error) {
		if job.Build != nil {
			return finishBuild(ctx, tx, job.Job, gaveUp)
		}
		if job.Done == job.Total {
			return bench.JobSuccess, "", nil
		}
		if gaveUp == "" {
			var err error
			if gaveUp, err = lastErrors(ctx, tx, job.ID); err != nil {
				return "", "", err
			}
		}
		return bench.JobFailure, fmt.Sprintf("%d of %d test cases have no result: %s", job.Total-job.Done, job.Total, gaveUp), nil
	})
}

// CancelJob ends a job as cancelled, with a message that says by whom and why. It returns
// the same as [Store.FinishJob].
func (s *Store) CancelJob(ctx context.Context, key bench.JobKey, rerun int, message string) (bench.JobEnd, error) {
	return s.endJob(ctx, key, rerun, bench.RunCancelled, func(pgx.Tx, endingJob) (bench.JobStatus, string, error) {
		return bench.JobCancelled, message, nil
	})
}

// formerEnd says how a job had ended before it was asked for again.
type formerEnd struct {
	Status  bench.JobStatus
	Message string
}

// endingJob is an open job with the number of its test cases. Again is how many times it is asked
// for once it has ended.
type endingJob struct {
	bench.Job
	jobEnd
	Total, Again int
}

// brief matches a job j that has ended within a second of its first run's start.
const brief = `j.completed_at - j.started_at < interval '1 second'`

// endColumns selects the columns of a [jobEnd] from job j with its last run n, and joinLastRun joins
// that.
const (
	endColumns = `coalesce(j.submitted_with, '') as batch, coalesce(n.id, '') as last_run, coalesce(n.collector, '') as collector,
		exists (select from graph_edge e where e.from_job = j.id and (select w.held from job_queue w where w.id = e.to_job and w.status = 'queued') = 'input') as needed,
		exists (select from job_run o where o.job_id = j.id and o.outcome = '') as running,
		coalesce(j.completed_at is null and now() - j.started_at < interval '1 second' or ` + brief + `, false) as brief`
	joinLastRun = ` left join lateral (select id, collector from job_run where job_id = j.id order by number desc limit 1) n on true `
)

// jobEnd holds everything besides the job that an end depends on or reports.
type jobEnd struct {
	Batch     bench.RequestID
	LastRun   bench.RunID
	Collector string
	// Needed reports that other jobs wait for its end, Running that a run has not ended.
	Needed, Running, Brief bool
}

func (e jobEnd) of(status bench.JobStatus, message, taskQueue, submitter string) bench.JobEnd {
	return bench.JobEnd{
		Status: status, Message: message, TaskQueue: taskQueue, Submitter: submitter,
		Batch: e.Batch, Run: e.LastRun, Collector: e.Collector, Needed: e.Needed, Brief: e.Brief,
	}
}

func (s *Store) endJob(ctx context.Context, key bench.JobKey, rerun int, runs bench.RunOutcome,
	decide func(pgx.Tx, endingJob) (bench.JobStatus, string, error),
) (bench.JobEnd, error) {
	end, ended, err := s.endedJob(ctx, key, rerun)
	if err != nil || ended {
		return end, err
	}
	err = s.inPlannedTx(ctx, "ending job "+string(key), func(tx pgx.Tx) (err error) {
		var ask pgx.Batch
		var job endingJob
		ask.Queue(`select id from job_queue where key = $1 for update`, key)
		// Read by a statement that starts with the lock held: its former holder may have stored
		// results.
		queueOne(&ask, &job, `
			select `+jobColumns+`, (select count(*) from job_test_case t where t.job_id = j.id) as total, j.again, `+endColumns+`
			from job_queue j`+joinLastRun+`where j.key = $1`, key)
		if err := tx.SendBatch(ctx, &ask).Close(); err != nil {
			return err
		}
		if job.Rerun != rerun {
			former, err := one[formerEnd](ctx, tx, `select status, message from node_end where node_id = $1 and rerun = $2`, job.ID, rerun)
			end = bench.JobEnd{Status: former.Status, Message: former.Message, TaskQueue: job.TaskQueue, Submitter: job.Submitter}
			return err
		}
		end = job.of(job.Status, job.Message, job.TaskQueue, job.Submitter)
		var last pgx.Batch
		if job.Status.Open() {
			if end.Status, end.Message, err = decide(tx, job); err != nil {
				return err
			}
			end.Message = cleanText(end.Message)
			last.Queue(`update job_queue set status = $2, message = $3, completed_at = now() where id = $1`, job.ID, end.Status, end.Message)
			if job.Again > 0 && end.Status != bench.JobCancelled && !(job.Build != nil && end.Status == bench.JobSuccess) {
				if err := tx.SendBatch(ctx, &last).Close(); err != nil {
					return err
				}
				last = pgx.Batch{}
				if err := nextTime(ctx, tx, job.Job, job.Again); err != nil {
					return err
				}
			}
		}
		queueConsequences(&last, &end.Consequences, key)
		if err := tx.SendBatch(ctx, &last).Close(); err != nil || !job.Running {
			return err
		}
		return closeRuns(ctx, tx, job.ID, runs, "the job ended as "+string(end.Status))
	})
	if err != nil {
		return bench.JobEnd{}, err
	}
	return end, nil
}

// endedJob describes the end of a job that has ended, in one round trip. ended is false while the
// job is open, or if it was asked for again since.
func (s *Store) endedJob(ctx context.Context, key bench.JobKey, rerun int) (end bench.JobEnd, ended bool, err error) {
	var job struct {
		Status                        bench.JobStatus
		Message, TaskQueue, Submitter string
		Rerun                         int
		jobEnd
	}
	var consequences bench.Consequences
	var ask pgx.Batch
	ask.Queue(planned)
	queueOne(&ask, &job, `
		select j.status, j.message, j.task_queue, j.submitter, j.rerun, `+endColumns+` from job_queue j`+joinLastRun+`where j.key = $1`, key)
	queueConsequences(&ask, &consequences, key)
	if err := s.pool.SendBatch(ctx, &ask).Close(); err != nil {
		return bench.JobEnd{}, false, wrap("reading the end of job "+string(key), err)
	}
	if job.Status.Open() || job.Running || job.Rerun != rerun {
		return bench.JobEnd{}, false, nil
	}
	end = job.of(job.Status, job.Message, job.TaskQueue, job.Submitter)
	end.Consequences = consequences
	return end, true, nil
}

// queueConsequences adds to a batch the reading of what has to be done after the end of job
// $1, which must be written before.
func queueConsequences(b *pgx.Batch, c *bench.Consequences, key bench.JobKey) {
	queueAll(b, &c.Waiters, `
		select `+requestRefColumns("wr")+` from request_job w join benchmark_request wr on wr.id = w.request_id
		where w.job_id = (select id from job_queue where key = $1) and `+stillWaits+` order by wr.created_at, wr.id`, key)
	b.Queue(`
		select exists (select from job_queue o where o.submitted_with = j.submitted_with and o.status in ('queued', 'handed_out', 'in_progress')),
			not exists (select from account_limit l where l.account in (j.submitter, '*') and l.max_running is not null),
			not exists (select from collector_config c group by c.target having min(c.size_class) <> max(c.size_class))
		from job_queue j where j.key = $1`, key).QueryRow(func(row pgx.Row) error { return row.Scan(&c.BatchOpen, &c.Unlimited, &c.OneClass) })
	queueFilled(b, &c.Filled, key)
}

// shownErrors bounds how many errors a job's message quotes.
const shownErrors = 3

// lastErrors describes the last errors of a job that no later run has resolved.
func lastErrors(ctx context.Context, tx pgx.Tx, jobID int64) (string, error) {
	errs, err := all[bench.RunError](ctx, tx, lastingErrors+` order by e.created_at desc, e.id desc`, []int64{jobID})
	if err != nil {
		return "", err
	}
	if len(errs) == 0 {
		return "no run reported why", nil
	}
	var words []string
	for _, e := range errs[:min(len(errs), shownErrors)] {
		if e.TestCase != nil {
			words = append(words, e.TestCase.String()+": "+e.Message)
		} else {
			words = append(words, e.Message)
		}
	}
	if more := len(errs) - shownErrors; more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(words, "; "), nil
}

// testCaseDocument selects a test case tc in the JSON form of bench.TestCase.
const testCaseDocument = `jsonb_build_object('benchmark', tc.benchmark, 'profile', tc.profile, 'scenario', tc.scenario,
	'backend', tc.backend, 'target', tc.target)`

// lastingErrors selects, for the jobs $1, the last error of each test case without a
// result, and the error of the last run of each job with such a test case.
const lastingErrors = `
	with lacking as (
		select distinct job_id, test_case_id from job_test_case_state where not done
			and job_id = any(array(select n.job_id from job_run n where n.job_id = any($1) and exists (select from error e where e.run_id = n.id)))
	), last_of_case as (
		select distinct on (l.job_id, l.test_case_id) e.id
		from lacking l
		join job_run n on n.job_id = l.job_id
		join error e on e.run_id = n.id and e.test_case_id = l.test_case_id
		order by l.job_id, l.test_case_id, n.number desc
	), last_of_job as (
		select e.id from error e join job_run n on n.id = e.run_id
		where e.test_case_id is null and n.job_id in (select job_id from lacking)
			and n.number = (select max(number) from job_run x where x.job_id = n.job_id)
	)
	select e.run_id as run, case when tc.id is not null then ` + testCaseDocument + ` end as test_case,
		e.kind, e.message, e.output_tail, e.created_at
	from error e left join test_case tc on tc.id = e.test_case_id
	where e.id in (select id from last_of_case union all select id from last_of_job)`
