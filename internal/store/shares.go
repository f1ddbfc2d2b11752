package store

import (
	"context"
	"fmt"
	"time"

	"github.com/benchloom/benchloom/internal/fairshare"
)

// ShareBy names the kind of subject whose shares are listed.
type ShareBy string

// Subjects: queue (fairness key), submitting account, host that runs jobs, and task
// queue.
const (
	ByQueue ShareBy = "queue"
	ByUser  ShareBy = "user"
	ByHost  ShareBy = "host"
	ByPool  ShareBy = "pool"
)

// Share compares the entitlement of a queue, user, host or pool with what it received,
// and counts its backlog.
type Share struct {
	Name string
	// Class, Weight and Level are a queue's configuration; empty and 0 for other
	// subjects. Level is that of its earliest open jobs, which account limits may make
	// later than configured.
	Class  string
	Weight float64
	Level  int
	// Entitled is a weighted queue's share of the weights of all weighted queues with
	// open jobs, 0 to 1. It is nil for other subjects, and if those jobs have several
	// levels.
	Entitled *float64
	// Started counts the runs that began within the window. Received is their share of
	// all runs that did, 0 to 1; nil if none did.
	Started  int
	Received *float64
	// Queued counts jobs that wait as rows, HandedOut those that wait in Temporal,
	// Running those with an open run. A job that several hosts may take counts for each.
	Queued, HandedOut, Running int
	// WaitMedian, Wait90 and WaitMax are the seconds that jobs waited for runs begun
	// within the window, from being ready (written, or the previous run ended) to the
	// run's start; nil if no run began.
	WaitMedian, Wait90, WaitMax *float64
	// OldestSince is the time since which the oldest waiting job has been ready; nil: none waits.
	OldestSince *time.Time
}

// shareSubject holds the SQL expressions that assign jobs and runs to a subject.
type shareSubject struct {
	waiting string // of a job j that waits; more than one row of w: it counts for each
	from    string // joined to j for that
	run     string // of a run n of a job j at a collector c, which may be gone
}

const runTaskQueue = `'bench/' || j.target || '/' || n.size_class || '/' || n.pool`

var shareSubjects = map[ShareBy]shareSubject{
	ByQueue: {waiting: "j.queue", run: "j.queue"},
	ByUser:  {waiting: "j.submitter", run: "j.submitter"},
	ByPool:  {waiting: "j.task_queue", run: runTaskQueue},
	ByHost: {
		waiting: "w.host", run: "coalesce(nullif(c.host, ''), n.collector)",
		from: `join (
			select distinct coalesce(nullif(c.host, ''), c.name) as host, q.task_queue from collector_config c
			cross join lateral (
				select 'bench/' || c.target || '/' || c.size_class || '/' || c.pool as task_queue
				union all select t.task_queue from collector_set t where c.name = any(t.collectors)
			) q
		) w on w.task_queue = j.task_queue`,
	},
}

// recentRuns begins a recursive query with the runs that began within $1 seconds. It
// searches by collector, as the index does.
const recentRuns = `
	with recursive known (collector) as (
		(select collector from job_run order by collector limit 1)
		union all
		select (select n.collector from job_run n where n.collector > known.collector order by n.collector limit 1)
		from known where known.collector is not null
	), recent as materialized (
		select n.id, n.job_id, n.number, n.size_class, n.pool, n.collector, n.started_at from known
		cross join lateral (
			select * from job_run where collector = known.collector and started_at > now() - make_interval(secs => $1)
		) n
	)`

// readySince is the expression for when a job j became ready for the run with this
// number: it was written, or the previous run ended.
func readySince(number string) string {
	return `coalesce((select max(b.finished_at) from job_run b where b.job_id = j.id and b.number < ` + number + `), j.created_at)`
}

// waitingGroups counts the waiting jobs by their subjects: those of the tally without an
// open run. A job that has never begun has been ready since it was written: an index finds
// the oldest. Jobs that wait again are few, and each is looked at.
var waitingGroups = `
	select o.task_queue, o.queue, o.submitter, o.queued, o.jobs - o.queued - coalesce(b.running, 0) as handed_out, least(f.since, b.since) as since
	from (
		select task_queue, queue, submitter, coalesce(sum(jobs) filter (where status = 'queued'), 0) as queued, sum(jobs) as jobs
		from job_tally group by 1, 2, 3 having sum(jobs) > 0
	) o left join (
		select j.task_queue, j.queue, j.submitter, count(*) filter (where w.running) as running, min(w.since) as since
		from job_queue j cross join lateral (
			select r.running, case when not r.running then ` + readySince("1 << 30") + ` end as since
			from (select exists (select from job_run n where n.job_id = j.id and n.outcome = '') as running) r
		) w
		where j.started_at is not null and j.status in ('queued', 'handed_out', 'in_progress') group by 1, 2, 3
	) b using (task_queue, queue, submitter) left join lateral (
		select j.created_at as since from job_queue j
		where j.task_queue = o.task_queue and j.queue = o.queue and j.submitter = o.submitter
			and j.started_at is null and j.status in ('queued', 'handed_out', 'in_progress')
		order by j.created_at limit 1
	) f on true
	where o.jobs > coalesce(b.running, 0)`

// Shares lists the shares of all subjects of a kind that have open jobs, or runs that
// began within the window before now, and of configured queues; by name.
func (s *Store) Shares(ctx context.Context, by ShareBy, window time.Duration) ([]Share, error) {
	subject, known := shareSubjects[by]
	if !known {
		return nil, fmt.Errorf("no shares by %q; use queue, user, host or pool", by)
	}
	sql := recentRuns + `, started as (
		select subject as name, count(*) as runs, percentile_cont(array[0.5, 0.9, 1]) within group (order by wait) as waits
		from (
			select ` + subject.run + ` as subject, greatest(0, extract(epoch from n.started_at - ` + readySince("n.number") + `))::float8 as wait
			from recent n join job_queue j on j.id = n.job_id left join collector_config c on c.name = n.collector
		) r group by subject
	), running as (
		select ` + subject.run + ` as name, count(*) as jobs
		from job_run n join job_queue j on j.id = n.job_id left join collector_config c on c.name = n.collector
		where n.outcome = '' group by 1
	), waiting as (
		select ` + subject.waiting + ` as name, sum(j.queued)::bigint as queued, sum(j.handed_out)::bigint as handed_out, min(j.since) as since
		from (` + waitingGroups + `) j ` + subject.from + `
		group by 1
	), subject as (
		select name from started union select name from running union select name from waiting` + configuredQueues(by) + `
	), share as (
		select name, coalesce(started.runs, 0) as started, coalesce(waiting.queued, 0) as queued, coalesce(waiting.handed_out, 0) as handed_out,
			coalesce(running.jobs, 0) as running, started.waits, waiting.since` + queueColumns(by) + `
		from subject left join started using (name) left join running using (name) left join waiting using (name)
		left join queue_config q using (name)
	)
	select name, class, weight, level,
		case when class = 'weighted' and ` + hasWork + ` then weight / sum(weight) filter (where class = 'weighted' and ` + hasWork + `) over () end as entitled,
		started, started / nullif(sum(started) over (), 0)::float8 as received, queued, handed_out, running,
		waits[1] as wait_median, waits[2] as wait90, waits[3] as wait_max, since as oldest_since
	from share order by name`
	shares, err := all[Share](ctx, s.pool, sql, window.Seconds())
	if err == nil && by == ByQueue {
		err = s.settleShares(ctx, shares)
	}
	return shares, wrap("reading the shares by "+string(by), err)
}

const hasWork = `queued + handed_out + running > 0`

func configuredQueues(by ShareBy) string {
	if by == ByQueue {
		return ` union select name from queue_config`
	}
	return ""
}

// queueColumns selects the configuration of a queue.
func queueColumns(by ShareBy) string {
	if by == ByQueue {
		return `, ` + asConfigured("name")
	}
	return `, '' as class, 0::float8 as weight, 0 as level`
}

// asConfigured selects class, weight and level from row q of a queue's configuration;
// without one, those of [fairshare.Default].
func asConfigured(name string) string {
	vip, idle := fairshare.Default(fairshare.VIP), fairshare.Default(fairshare.Idle)
	other := fairshare.Default("")
	return fmt.Sprintf(`coalesce(q.class, case when %[1]s in ('%[2]s', '%[3]s') then '%[4]s' else '%[5]s' end) as class,
		coalesce(q.weight, %[6]g)::numeric::float8 as weight,
		coalesce(q.level, case %[1]s when '%[2]s' then %[7]d when '%[3]s' then %[8]d else %[9]d end) as level`,
		name, vip.Name, idle.Name, fairshare.Strict, fairshare.Weighted, other.Weight, vip.Level, idle.Level, other.Level)
}
