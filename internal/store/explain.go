package store

import (
	"context"
	"maps"
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
	"github.com/benchloom/benchloom/internal/graphset"
)

// QueuePosition locates a job within its queue at its task queue, and the queue among the
// others there.
type QueuePosition struct {
	// Class, Weight and OwnLevel are the queue's, as configured. Level is the job's: its
	// queue's, or a later one set by a limit of its account.
	Class           string
	Weight          float64
	OwnLevel, Level int
	// Entitled is a weighted queue's share of the weights of the weighted queues with
	// open jobs at the task queue, 0 to 1. It is nil if the queue is strict, or if those
	// jobs have several levels.
	Entitled *float64
	// Before counts the queue's waiting rows ahead of the job, up to [MaxBefore].
	Before int
	// Waiting counts the queue's jobs there that wait as rows, HandedOut those in
	// Temporal without a run, Running those with one.
	Waiting, HandedOut, Running int
	// Earlier lists the other queues with open jobs there at an earlier level, Beside
	// those at the same level but none earlier; by name, up to a bound.
	Earlier, Beside []string
}

const (
	// MaxBefore bounds how many rows are counted for a position.
	MaxBefore = 1000
	// namesBound bounds how many other queues are named.
	namesBound = 100
)

// freshBeside matches a waiting job e that has never begun, in the same queue as a job.
const freshBeside = `e.task_queue = job.task_queue and e.held = h.held and e.queue = job.queue and e.status = 'queued' and e.started_at is null`

// QueuePosition returns a job's position within its queue.
func (s *Store) QueuePosition(ctx context.Context, key bench.JobKey) (QueuePosition, error) {
	doing := "finding the place of job " + string(key)
	type row struct {
		TaskQueue, Queue, Submitter, Branch string
		Before                              int
	}
	job, err := one[row](ctx, s.pool, `
		select job.task_queue, job.queue, job.submitter, job.branch, (
			select count(*) from (
				select from job_queue e where e.task_queue = job.task_queue and e.queue = job.queue and e.status = 'queued' and e.started_at is not null
					and (job.started_at is null or (e.request_created, e.id) < (job.request_created, job.id))
				union all
				select from unnest(array['', 'turn', 'input', 'pause', 'cap']) as h (held) cross join lateral ( -- each a range of an index
					(select from job_queue e where `+freshBeside+` and e.request_created < job.request_created order by e.request_created, e.id limit $2)
					union all
					(select from job_queue e where `+freshBeside+` and e.request_created = job.request_created and e.id < job.id order by e.id limit $2)
				) e
				where job.started_at is null
				limit $2
			) earlier) as before
		from job_queue job where job.key = $1`, key, MaxBefore)
	if err != nil {
		return QueuePosition{}, wrap(doing, err)
	}
	open, err := s.openGroups(ctx, job.TaskQueue)
	if err != nil {
		return QueuePosition{}, wrap(doing, err)
	}
	own := fairshare.Job{Queue: job.Queue, Submitter: job.Submitter, Branch: job.Branch}
	jobs := jobsOf(open)
	rules, err := rulesOf(ctx, s.pool, append(jobs, own))
	if err != nil {
		return QueuePosition{}, wrap(doing, err)
	}
	q := rules.Queues.Of(job.Queue)
	p := QueuePosition{Class: string(q.Class), Weight: q.Weight, OwnLevel: q.Level, Level: rules.Level(own), Before: job.Before, Earlier: []string{}, Beside: []string{}}
	for _, o := range open {
		if o.Queue == job.Queue {
			p.Waiting, p.HandedOut, p.Running = p.Waiting+o.Waiting, p.HandedOut+o.HandedOut, p.Running+o.Running
		}
	}
	if q.Class == fairshare.Weighted {
		p.Entitled = rules.Share(job.Queue, append(jobs, own))
	}
	first := rules.Earliest(jobs)
	for _, name := range slices.Sorted(maps.Keys(first)) {
		switch {
		case name == job.Queue:
		case first[name] < p.Level && len(p.Earlier) < namesBound:
			p.Earlier = append(p.Earlier, name)
		case first[name] == p.Level && len(p.Beside) < namesBound:
			p.Beside = append(p.Beside, name)
		}
	}
	return p, nil
}

// JobWaiter is a request that waits for a job.
type JobWaiter struct {
	ID bench.RequestID
	// InTurn reports that the request's jobs may run.
	InTurn bool
}

// JobWaiters lists the requests that wait for a job, the oldest first.
func (s *Store) JobWaiters(ctx context.Context, key bench.JobKey) ([]JobWaiter, error) {
	ws, err := all[JobWaiter](ctx, s.pool, `
		select wr.id, `+inItsTurn+` as in_turn from job_queue j
		join request_job w on w.job_id = j.id join benchmark_request wr on wr.id = w.request_id
		where j.key = $1 and `+stillWaits+` order by wr.created_at, wr.id`, key)
	return ws, wrap("listing the requests that wait for job "+string(key), err)
}

// MissingInputs maps jobs that are held for their inputs to the missing inputs, open ones first.
func (s *Store) MissingInputs(ctx context.Context, keys ...bench.JobKey) (map[bench.JobKey][]graphset.Missing, error) {
	type row struct {
		Key  bench.JobKey
		Open bool
		graphset.Missing
	}
	rows, err := all[row](ctx, s.pool, `
		select distinct j.key, coalesce(f.key, v.key) as job, n.name, v.id is not null as service, coalesce(f.status, v.status) as status,
			coalesce(f.status, v.status) in ('queued', 'handed_out', 'in_progress', 'waiting') as open
		from job_queue j join graph_edge e on e.to_job = j.id join graph g on g.id = e.graph_id join graph_node n on n.graph_id = g.id and n.job_id = e.from_job
		left join graph_set gs on gs.request_id = g.request_id left join job_queue f on f.id = e.from_job left join service_node v on v.id = e.from_job
		where j.key = any($1) and j.status = 'queued' and j.held = 'input' and (
			gs.definition is null and f.status in ('queued', 'handed_out', 'in_progress') and not (`+succeededBefore+`) or gs.definition is not null and not (`+inputMet+`))
		order by j.key, open desc, job`, keys)
	inputs := make(map[bench.JobKey][]graphset.Missing, len(rows))
	for _, r := range rows {
		inputs[r.Key] = append(inputs[r.Key], r.Missing)
	}
	return inputs, wrap("listing what jobs wait for", err)
}

// Submitters maps jobs to the accounts whose limits apply to them.
func (s *Store) Submitters(ctx context.Context, keys []bench.JobKey) (map[bench.JobKey]string, error) {
	type row struct {
		Key       bench.JobKey
		Submitter string
	}
	rows, err := all[row](ctx, s.pool, `select key, submitter from job_queue where key = any($1)`, keys)
	submitters := make(map[bench.JobKey]string, len(rows))
	for _, r := range rows {
		submitters[r.Key] = r.Submitter
	}
	return submitters, wrap("reading the submitters of jobs", err)
}

// OpenJob is an open job. Running reports that a collector is running it.
type OpenJob struct {
	bench.Job
	Running bool
}

// OpenJobsOf lists a request's open jobs, at most limit: running ones first, then those
// handed out, then the waiting ones in hand-out order.
func (s *Store) OpenJobsOf(ctx context.Context, id bench.RequestID, limit int) ([]OpenJob, error) {
	alone, err := s.alone(ctx, id)
	if err != nil {
		return nil, err
	}
	of := `request_job rj join job_queue j on j.id = rj.job_id and rj.request_id = $1 and j.status in ('queued', 'handed_out', 'in_progress')`
	if alone { // reads those in Temporal and at most limit others, by an index each
		of = `(
			select i.id, i.status, i.started_at, i.request_created from job_queue i where i.submitted_with = $1 and i.status in ('handed_out', 'in_progress')
			union all
			(select w.id, w.status, w.started_at, w.request_created from job_queue w where w.submitted_with = $1 and w.status = 'queued' order by w.started_at is null, w.request_created, w.id limit $2)
		) j`
	}
	js, err := all[OpenJob](ctx, s.pool, `
		with open as (
			select j.id, o.id is not null as running, j.status = 'queued' as queued, j.started_at is null as fresh, j.request_created
			from `+of+` left join job_run o on o.job_id = j.id and o.outcome = ''
			order by running desc, queued, fresh, j.request_created, j.id limit $2
		)
		select `+jobColumns+`, open.running from open join job_queue j using (id)
		order by open.running desc, open.queued, open.fresh, open.request_created, j.id`, id, limit)
	return js, wrap("listing the open jobs of request "+string(id), err)
}

// SetMembers lists the collectors of the set to which a task queue belongs; none if it is
// a pool's.
func (s *Store) SetMembers(ctx context.Context, taskQueue string) ([]string, error) {
	names, err := column[string](ctx, s.pool, `select unnest(collectors) from collector_set where task_queue = $1 order by 1`, taskQueue)
	return names, wrap("listing the collectors of "+taskQueue, err)
}

// AccountHold compares an account's jobs in progress with its limits.
type AccountHold struct {
	// MaxRunning is nil if the account has no such limit.
	MaxRunning *int
	// UnderWay counts the jobs that count towards the limit. Stranded ones do not: no
	// live collector takes jobs from their task queues.
	UnderWay, Stranded int
	// FirstLevel is the earliest level allowed to the account's jobs on the branch.
	FirstLevel int
}

// AccountHold reads the limits in force for an account and a branch, and counts the
// account's jobs in progress.
func (s *Store) AccountHold(ctx context.Context, account, branch string) (AccountHold, error) {
	limits, err := limitsOf(ctx, s.pool, []string{account})
	if err != nil {
		return AccountHold{}, wrap("reading the limits of account "+account, err)
	}
	load, err := underWay(ctx, s.pool, account)
	return AccountHold{
		MaxRunning: limits.Of(account).MaxRunning, UnderWay: load.Jobs - load.Stranded, Stranded: load.Stranded, FirstLevel: limits.FirstLevel(account, branch),
	}, wrap("counting the jobs under way of account "+account, err)
}
