package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
	"github.com/benchloom/benchloom/internal/waittime"
)

// hold is a period for which a job was put aside, as the job's row keeps it.
type hold struct {
	Why          fairshare.Held
	Since, Until time.Time
}

// holdReasons names what held jobs wait for.
var holdReasons = map[fairshare.Held]waittime.Reason{
	fairshare.HeldForTurn: waittime.Turn, fairshare.HeldForInput: waittime.Input, fairshare.HeldByPause: waittime.Pause, fairshare.HeldByLimit: waittime.Limit,
}

// waitingJobs describes jobs about which the same is known: their number, and what kept
// them from running.
type waitingJobs struct {
	Jobs      int
	Project   string
	Submitter string
	Queue     string
	Pool      string
	TaskQueue string
	// MovedFrom names the task queue in which they waited until MovedAt; nil: they have not moved.
	MovedFrom *string
	MovedAt   *time.Time
	Ready     time.Time
	HandedOut *time.Time
	Held      fairshare.Held
	HeldSince *time.Time
	Holds     []hold
	// InTurn is the time at which the first request that waits for them had its turn; nil: none has.
	InTurn *time.Time
	Now    time.Time
}

// waitingJobColumns selects the columns of [waitingJobs] from job j, but for Jobs, Pool and Ready. A job of a
// batch is in its turn from the beginning, and there may be very many.
const waitingJobColumns = `j.project, j.submitter, j.queue, j.task_queue, j.moved_from, j.moved_at, j.handed_out_at as handed_out, j.held, j.held_since, j.holds, now() as now,
	case when j.submitted_with is not null then j.created_at else (
		select min(coalesce(wr.admitted_at, wr.created_at)) from request_job w join benchmark_request wr on wr.id = w.request_id
		where w.job_id = j.id and ` + inItsTurn + `) end as in_turn`

// rows returns the obstacles of jobs that wait as rows: they do not keep a handed-out job
// from running. pauses are those of the project, limited the times when the account was
// at its limit.
func (w waitingJobs) rows(pauses, limited []waittime.Span) []waittime.Obstacle {
	asRow := w.Now
	if w.HandedOut != nil {
		asRow = *w.HandedOut
	}
	var out []waittime.Obstacle
	add := func(reason waittime.Reason, from, to time.Time) {
		if to.IsZero() || to.After(asRow) {
			to = asRow
		}
		if from.Before(to) {
			out = append(out, waittime.Obstacle{Reason: reason, Span: waittime.Span{From: from, To: to}})
		}
	}
	for _, h := range w.Holds {
		add(holdReasons[h.Why], h.Since, h.Until)
	}
	if w.Held != fairshare.NotHeld && w.HeldSince != nil {
		add(holdReasons[w.Held], *w.HeldSince, w.Now)
	}
	switch {
	case w.InTurn != nil:
		add(waittime.Turn, w.Ready, *w.InTurn)
	case w.HandedOut == nil:
		add(waittime.Turn, w.Ready, w.Now)
	}
	for _, p := range pauses {
		add(waittime.Pause, p.From, p.To)
	}
	for _, l := range limited {
		add(waittime.Limit, l.From, l.To)
	}
	return out
}

// queued returns the task queues in which the jobs have waited, each with the time span.
func (w waitingJobs) queued() map[string]waittime.Span {
	whole := waittime.Span{From: w.Ready, To: w.Now}
	if w.MovedFrom == nil || w.MovedAt == nil || !w.MovedAt.After(w.Ready) || *w.MovedFrom == w.TaskQueue {
		return map[string]waittime.Span{w.TaskQueue: whole}
	}
	return map[string]waittime.Span{*w.MovedFrom: {From: w.Ready, To: *w.MovedAt}, w.TaskQueue: {From: *w.MovedAt, To: w.Now}}
}

// waitsReader reads what kept jobs from running, once per project, account and task
// queue.
type waitsReader struct {
	q       querier
	since   time.Time // what ended before is of no interest
	pauses  map[string][]waittime.Span
	limited map[string][]waittime.Span
	served  map[string][]waittime.Span
}

func newWaitsReader(q querier, since time.Time) waitsReader {
	return waitsReader{q, since, make(map[string][]waittime.Span), make(map[string][]waittime.Span), make(map[string][]waittime.Span)}
}

func (r waitsReader) measure(ctx context.Context, w waitingJobs) (waittime.Wait, error) {
	pauses, err := r.spansOf(ctx, r.pauses, w.Project, pausesOf, w.Project, r.since)
	if err != nil {
		return waittime.Wait{}, err
	}
	limited, err := r.spansOf(ctx, r.limited, w.Submitter, limitedOf, w.Submitter, r.since)
	if err != nil {
		return waittime.Wait{}, err
	}
	obstacles := w.rows(pauses, limited)
	for taskQueue, when := range w.queued() {
		served, err := r.spansOf(ctx, r.served, taskQueue, servedAt, taskQueue, r.since, liveWithin.Seconds())
		if err != nil {
			return waittime.Wait{}, err
		}
		for _, gap := range waittime.Gaps(when, served) {
			obstacles = append(obstacles, waittime.Obstacle{Reason: waittime.Collector, Span: gap})
		}
	}
	return waittime.Measure(w.Ready, w.Now, obstacles), nil
}

// span is a [waittime.Span] as it is read; null: it has no bound.
type span struct{ From, To *time.Time }

func spans(rows []span) []waittime.Span {
	out := make([]waittime.Span, len(rows))
	for i, r := range rows {
		if r.From != nil {
			out[i].From = *r.From
		}
		if r.To != nil {
			out[i].To = *r.To
		}
	}
	return out
}

// queue adds to a batch what [waitsReader.measure] reads for these jobs.
func (r waitsReader) queue(b *pgx.Batch, w waitingJobs) {
	keep := func(in map[string][]waittime.Span, key, sql string, args ...any) {
		b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
			found, err := pgx.CollectRows(rows, byName[span]())
			in[key] = spans(found)
			return err
		})
	}
	keep(r.pauses, w.Project, pausesOf, w.Project, r.since)
	keep(r.limited, w.Submitter, limitedOf, w.Submitter, r.since)
	for taskQueue := range w.queued() {
		keep(r.served, taskQueue, servedAt, taskQueue, r.since, liveWithin.Seconds())
	}
}

// pausesOf selects the pauses of project $1 that ended after $2.
const pausesOf = `
	select since as "from", until as "to" from queue_pause_past where project = $1 and until > $2
	union all select paused_at, null from queue_pause where project = $1`

// limitedOf selects when account $1 was at its limit, until $2 or later.
const limitedOf = `
	select since as "from", until as "to" from account_limited where account = $1 and (until is null or until > $2)`

// servedAt selects the periods after $2 in which task queue $1 had a live collector, heard of
// within $3 seconds, merged: there may be hundreds of collectors.
var servedAt = `
	with present as (
		select p.collector, p.since, p.until from collector_presence p
		where p.task_queue = $1 and (p.until is null or p.until > $2)
		union all
		select p.collector, p.since, p.until
		from collector_set s join collector_presence p on p.collector = any(s.collectors) and p.target = s.target and p.size_class = s.size_class
		where s.task_queue = $1 and (p.until is null or p.until > $2)
	)
	select lower(r) as "from", upper(r) as "to" from unnest((
		select range_agg(tstzrange(p.since, case when p.until is not null then p.until
			when c.active and c.` + heardOf("$3") + ` then null else greatest(p.since, c.available_at) end))
		from present p left join collector_config c on c.name = p.collector)) as r`

// spansOf returns kept spans, or else reads and keeps them.
func (r waitsReader) spansOf(ctx context.Context, in map[string][]waittime.Span, key, sql string, args ...any) ([]waittime.Span, error) {
	if known, ok := in[key]; ok {
		return known, nil
	}
	found, err := all[span](ctx, r.q, sql, args...)
	in[key] = spans(found)
	return in[key], err
}

// RunWait records the wait of a job for a run.
type RunWait struct {
	waittime.Wait
	Pool, Queue string
	// Objective is the time within which it should have started.
	Objective time.Duration
}

// recordWait adds to a batch the record of how long a job has waited for the run that begins
// now.
func recordWait(ctx context.Context, waits waitsReader, at gate, run bench.Run, b *pgx.Batch) (RunWait, error) {
	w := at.Waited
	wait, err := waits.measure(ctx, w)
	if err != nil {
		return RunWait{}, err
	}
	pool := bench.Pool{Target: at.Job.Target, SizeClass: run.SizeClass, Name: run.Pool}.TaskQueue()
	b.Queue(`
		insert into run_wait (run_id, project, queue, pool, ready_at, runnable_at, waited, blocked_turn, blocked_input, blocked_pause, blocked_limit, blocked_collector)
		values (@run, @project, @queue, @pool, @ready, @runnable, @waited, @turn, @input, @pause, @limit, @collector)`,
		pgx.NamedArgs{
			"run": run.ID, "project": w.Project, "queue": w.Queue, "pool": pool, "ready": w.Ready, "runnable": wait.Runnable,
			"waited": wait.Waited.Seconds(), "turn": wait.Blocked[waittime.Turn].Seconds(), "input": wait.Blocked[waittime.Input].Seconds(), "pause": wait.Blocked[waittime.Pause].Seconds(),
			"limit": wait.Blocked[waittime.Limit].Seconds(), "collector": wait.Blocked[waittime.Collector].Seconds(),
		})
	return RunWait{Wait: wait, Pool: pool, Queue: w.Queue, Objective: at.Queues.Of(w.Queue).Objective()}, nil
}

// WaitFilter selects jobs by where they wait; empty: all.
type WaitFilter struct {
	Project, Queue string
	// Pool is the task queue of a pool, or the last part of its name.
	Pool string
}

// args returns the filter as named arguments of [waitFiltered], beside others.
func (f WaitFilter) args(others pgx.NamedArgs) pgx.NamedArgs {
	others["project"], others["queue"], others["pool"] = f.Project, f.Queue, f.Pool
	return others
}

// waitFiltered matches rows of w with these columns against a [WaitFilter].
const waitFiltered = `(@project = '' or w.project = @project) and (@queue = '' or w.queue = @queue)
	and (@pool = '' or w.pool = @pool or (position('/' in @pool) = 0 and w.pool like 'bench/%' and split_part(w.pool, '/', 4) = @pool))`

// Waits holds samples of waiting times, with the queues whose objectives judge them.
type Waits struct {
	// From and Until bound the period: jobs that became able to run within it, and all that
	// still wait.
	From, Until time.Time
	Samples     []waittime.Sample
	// Queues are the configured ones.
	Queues fairshare.Queues
}

// Waits reads the waiting times of jobs that became able to run within the window before
// now, and of those that wait now. Jobs with the same waiting time are one sample.
func (s *Store) Waits(ctx context.Context, window time.Duration, filter WaitFilter) (Waits, error) {
	var out Waits
	// One state of the record: a job that begins meanwhile counts once.
	err := pgx.BeginTxFunc(ctx, s.reports, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		var err error
		if out.Until, err = value[time.Time](ctx, tx, `select now()`); err != nil {
			return err
		}
		out.From = out.Until.Add(-window)
		if err := out.readStarted(ctx, tx, filter); err != nil {
			return err
		}
		if err := out.readWaiting(ctx, tx, filter); err != nil {
			return err
		}
		out.Queues, err = allQueues(ctx, tx)
		return err
	})
	return out, wrap("reading how long jobs wait", err)
}

// Objective returns the objective of a queue.
func (w Waits) Objective(queue string) time.Duration {
	return w.Queues.Of(queue).Objective()
}

// readStarted reads the jobs that have started.
func (w *Waits) readStarted(ctx context.Context, tx pgx.Tx, filter WaitFilter) error {
	type row struct {
		Pool, Queue                          string
		Block                                time.Time
		Tenths                               int64 // waited, see waittime.Resolution
		Runs                                 int
		Turn, Input, Pause, Limit, Collector float64
	}
	rows, err := all[row](ctx, tx, `
		select w.pool, w.queue, date_bin('15 minutes', w.runnable_at, 'epoch') as block, ceil(w.waited * 10)::bigint as tenths, count(*) as runs,
			sum(w.blocked_turn) as turn, sum(w.blocked_input) as input, sum(w.blocked_pause) as pause, sum(w.blocked_limit) as "limit", sum(w.blocked_collector) as collector
		from run_wait w where w.runnable_at >= @from and `+waitFiltered+` group by 1, 2, 3, 4`, filter.args(pgx.NamedArgs{"from": w.From}))
	for _, r := range rows {
		if r.Block.Before(w.From) {
			r.Block = w.From
		}
		w.Samples = append(w.Samples, waittime.Sample{
			Place: waittime.Place{Pool: r.Pool, Queue: r.Queue}, Runnable: r.Block, Waited: time.Duration(r.Tenths) * waittime.Resolution,
			Started: true, Jobs: r.Runs, Blocked: map[waittime.Reason]time.Duration{
				waittime.Turn: asSeconds(r.Turn), waittime.Input: asSeconds(r.Input), waittime.Pause: asSeconds(r.Pause), waittime.Limit: asSeconds(r.Limit), waittime.Collector: asSeconds(r.Collector),
			},
		})
	}
	return err
}

func asSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// readWaiting reads the waiting jobs: those about which the same is known, such as the
// jobs of a batch, as one.
func (w *Waits) readWaiting(ctx context.Context, tx pgx.Tx, filter WaitFilter) error {
	rows, err := all[waitingJobs](ctx, tx, `
		select count(*) as jobs, w.project, w.submitter, w.queue, w.pool, w.task_queue, w.moved_from, w.moved_at, w.ready, w.handed_out, w.held, w.held_since, w.holds, w.in_turn, w.now
		from (
			select 'bench/' || j.target || '/' || j.size_class || '/' || j.pool as pool,
				case when j.started_at is null then j.created_at else `+readySince("1 << 30")+` end as ready, `+waitingJobColumns+`
			from job_queue j where `+unattended+`
		) w where `+waitFiltered+`
		group by w.project, w.submitter, w.queue, w.pool, w.task_queue, w.moved_from, w.moved_at, w.ready, w.handed_out, w.held, w.held_since, w.holds, w.in_turn, w.now`,
		filter.args(pgx.NamedArgs{}))
	if err != nil {
		return err
	}
	since := w.Until
	for _, r := range rows {
		if r.Ready.Before(since) {
			since = r.Ready
		}
	}
	reader := newWaitsReader(tx, since)
	for _, r := range rows {
		wait, err := reader.measure(ctx, r)
		if err != nil {
			return err
		}
		blocked := make(map[waittime.Reason]time.Duration, len(wait.Blocked))
		for reason, took := range wait.Blocked {
			blocked[reason] = took * time.Duration(r.Jobs)
		}
		w.Samples = append(w.Samples, waittime.Sample{
			Place: waittime.Place{Pool: r.Pool, Queue: r.Queue}, Runnable: wait.Runnable, Waited: waittime.Rounded(wait.Waited),
			Still: wait.Still, Jobs: r.Jobs, Blocked: blocked,
		})
	}
	return nil
}

// EndToEnd sums up how long requests took from their cause to their results.
type EndToEnd struct {
	Project  string
	Type     bench.RequestType
	Requests int
	// Seconds within which half, nine tenths and all of them had their results.
	Median, Ninth, Longest float64
	// Admission is their median time until their turn, in seconds: they waited for artifacts,
	// parents, and requests that go first. It is nil if none needed an admission.
	Admission *float64
}

// EndToEnd lists by project and type the durations of requests completed within the window
// before now, without cancelled and expired ones. The cause of a request is its last
// reopening if it was opened again, the commit if a commit source made it, else its
// creation.
func (s *Store) EndToEnd(ctx context.Context, window time.Duration, project string) ([]EndToEnd, error) {
	found, err := all[EndToEnd](ctx, s.reports, `
		select r.project, r.type, count(*) as requests,
			percentile_disc(0.5) within group (order by r.took) as median, percentile_disc(0.9) within group (order by r.took) as ninth, max(r.took) as longest,
			percentile_disc(0.5) within group (order by r.admission) filter (where r.admission is not null) as admission
		from (
			select c.project, c.type, greatest(0, extract(epoch from c.completed_at - c.cause))::float8 as took,
				case when c.admitted_at is not null then greatest(0, extract(epoch from c.admitted_at - c.cause))::float8 end as admission
			from (
				select q.project, q.type, q.completed_at, q.admitted_at, case when q.reopened_at is not null then q.reopened_at
					when q.submitter = @source then least(q.commit_date, q.created_at) else q.created_at end as cause
				from benchmark_request q
				where q.status = 'completed' and q.type in ('release', 'master', 'try', 'adhoc') -- as the index needs it
					and q.completed_at >= now() - make_interval(secs => @window) and q.outcome in ('success', 'failure') and (@project = '' or q.project = @project)
			) c
		) r group by r.project, r.type order by r.project, r.type`,
		pgx.NamedArgs{"window": window.Seconds(), "project": project, "source": bench.CommitSubmitter})
	return found, wrap("reading how long requests took", err)
}

// PoolKnown reports whether a pool, by its task queue or the last part of its name, has a
// collector or had one within the last 90 days.
func (s *Store) PoolKnown(ctx context.Context, name string) (bool, error) {
	known, err := value[bool](ctx, s.pool, `
		select exists (select from collector_presence w where w.task_queue = $1 or (position('/' in $1) = 0 and split_part(w.task_queue, '/', 4) = $1))`, name)
	return known, wrap("looking for pool "+name, err)
}
