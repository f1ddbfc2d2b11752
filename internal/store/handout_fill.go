package store

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
)

// HandOutOptions bounds a hand-out.
type HandOutOptions struct {
	// Depth returns how many jobs of one weighted queue should wait in Temporal, given the
	// number of the task queue's live collectors. Strict does the same for a strict queue;
	// nil: Depth is used. See [fairshare.Depth].
	Depth, Strict func(liveCollectors int) int
	// Spare returns how many more should wait if no other queue has waiting jobs; nil: none. See
	// [fairshare.Spare].
	Spare func(liveCollectors int) int
	// Sized skips jobs whose size class has not been selected yet.
	Sized bool
}

func (o HandOutOptions) depth(class fairshare.Class, live int, alone bool) int {
	depth := o.Depth
	if class == fairshare.Strict && o.Strict != nil {
		depth = o.Strict
	}
	if alone && o.Spare != nil {
		return depth(live) + o.Spare(live)
	}
	return depth(live)
}

// ErrMore accompanies the jobs handed out so far after many jobs had to be held. The next
// call continues behind them.
var ErrMore = errors.New("more jobs remain to be handed out")

// HandOut hands out waiting jobs of a task queue. From each queue (fairness key) it takes
// jobs that have begun before, then the oldest, until [HandOutOptions.Depth] of its jobs
// wait in Temporal. It reads about as many rows as it hands out, however many wait.
// Weight, level and limits are those in force at the time of the call.
//
// Jobs that may not run yet are held, see [fairshare.Held]. If there are thousands,
// HandOut returns [ErrMore], so that other hand-outs of the task queue get their turn.
func (s *Store) HandOut(ctx context.Context, taskQueue string, opts HandOutOptions) ([]bench.HandOut, error) {
	var out []bench.HandOut
	more := false
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{BeginQuery: beginHandOut}, func(tx pgx.Tx) error {
		var live int
		var ask pgx.Batch
		queueLock(&ask, "hand-out "+taskQueue)
		queueValue(&ask, &live, liveCollectors, taskQueue, liveWithin.Seconds())
		if err := tx.SendBatch(ctx, &ask).Close(); err != nil {
			return err
		}
		h := handOut{tx: tx, taskQueue: taskQueue, live: live, sized: opts.Sized}
		err := h.choose(ctx, func(class fairshare.Class, alone bool) int { return opts.depth(class, live, alone) })
		if err != nil {
			return err
		}
		if more = h.more; len(h.chosen) > 0 {
			out, err = h.write(ctx)
		}
		if err != nil {
			return err
		}
		full, others := h.selection.AtLimit()
		return errors.Join(beginLimited(ctx, tx, full), endLimited(ctx, tx, others))
	})
	if err != nil {
		return nil, wrap("handing out jobs of task queue "+taskQueue, err)
	}
	if more {
		return out, ErrMore
	}
	return out, nil
}

// handOut is one hand-out, under the lock of its task queue.
type handOut struct {
	tx        pgx.Tx
	taskQueue string
	live      int // number of live collectors of the task queue
	sized     bool
	selection *fairshare.Selection
	looked    map[string]position // by queue: the last job read
	limited   bool                // the lock on accounts with limits is held
	chosen    []fairshare.Candidate
	more      bool // unread jobs may follow the held ones
}

// beginHandOut has each statement planned once, like [beginPlanned], and by the indexes made for
// it, which match its conditions and its order.
const beginHandOut = beginPlanned + `; set local enable_bitmapscan = off; set local enable_sort = off`

// position orders the jobs of a queue: jobs that have begun before go first, then those
// of the oldest request.
type position struct {
	Fresh   bool // it has never begun
	Created time.Time
	ID      int64
}

// choose locks the next jobs, and holds those that may not run yet. depth returns how many jobs of
// a queue of the class should wait in Temporal; alone is set if no other queue has waiting jobs.
func (h *handOut) choose(ctx context.Context, depth func(class fairshare.Class, alone bool) int) error {
	backlogs, err := h.backlogs(ctx)
	if err != nil {
		return err
	}
	names := make([]string, len(backlogs))
	for i, b := range backlogs {
		names[i] = b.Queue
	}
	queues, err := queuesOf(ctx, h.tx, names)
	if err != nil {
		return err
	}
	h.selection, h.looked = fairshare.NewSelection(backlogs, queues, func(class fairshare.Class) int { return depth(class, len(backlogs) == 1) }), make(map[string]position)
	for round, look := 0, h.selection.Most(); len(h.selection.Open()) > 0; round, look = round+1, lookPast {
		if h.more = round == roundsAtOnce; h.more {
			return nil
		}
		found, err := h.next(ctx, look, round > 0)
		if err != nil {
			return err
		}
		if err := h.sift(ctx, found); err != nil {
			return err
		}
	}
	return nil
}

const (
	// lookPast bounds how many jobs of a queue are read together after the first ones had
	// to be held: thousands may have to be, each read once.
	lookPast = 1000
	// roundsAtOnce bounds the rounds of one transaction, which blocks other hand-outs of the
	// task queue for some tenths of a second.
	roundsAtOnce = 3
)

// waitingQueues names the queues with jobs that wait for a task queue. It skips from one to the next
// in the index and does not read their jobs.
func waitingQueues(taskQueue string) string {
	return strings.ReplaceAll(`queues as (
			(select queue from job_queue where task_queue = $1 and status = 'queued' and held = '' order by queue limit 1)
			union all
			select (select j.queue from job_queue j where j.task_queue = $1 and j.status = 'queued' and j.held = '' and j.queue > q.queue
				order by j.queue limit 1)
			from queues q where q.queue is not null
		)`, "$1", taskQueue)
}

// queueFilled adds to a batch whether enough jobs of each queue wait in Temporal for the task queue
// of job $1, but false if the job took long. Nothing is locked: what changes meanwhile ends as
// well, and looks again.
func queueFilled(b *pgx.Batch, filled *bool, job bench.JobKey) {
	var was bool
	queueValue(b, &was, `select coalesce(`+brief+`, false) from job_queue j where j.key = $1`, job)
	const taskQueue = `(select task_queue from job_queue j where j.key = $1 and ` + brief + `)`
	b.Queue(`
		with recursive `+waitingQueues(taskQueue)+`
		select q.queue, coalesce(c.class, '') as class, (select count(*) from (
				select status from job_queue
				where task_queue = `+taskQueue+` and queue between q.queue and q.queue and status in ('handed_out', 'in_progress') order by queue) t
			where t.status = 'handed_out') as in_temporal, (`+strings.ReplaceAll(liveCollectors, "$1::text", taskQueue)+`) as live
		from queues q left join queue_config c on c.name = q.queue
		where q.queue is not null`, job, liveWithin.Seconds()).Query(func(rows pgx.Rows) error {
		type row struct {
			Queue            string
			Class            fairshare.Class
			InTemporal, Live int
		}
		found, err := pgx.CollectRows(rows, byName[row]())
		*filled = err == nil && was && !slices.ContainsFunc(found, func(r row) bool {
			depth := fairshare.Depth
			if cmp.Or(r.Class, fairshare.Default(r.Queue).Class) == fairshare.Strict {
				depth = fairshare.StrictDepth
			}
			return r.InTemporal < depth(r.Live)
		})
		return err
	})
}

// wasted counts the jobs of a queue that were cancelled while they waited in Temporal.
func wasted(taskQueue, queue string) string {
	return `(select count(*) from job_queue w where w.task_queue = ` + taskQueue + ` and w.queue = ` + queue + `
		and w.status = 'cancelled' and w.handed_out_at is not null and w.started_at is null)`
}

// backlogs lists the queues with jobs waiting in the task queue.
//
// While no job of a queue waits in Temporal, the queue's turn is the number of its jobs
// that were cancelled there. Temporal has charged the queue's fairness key for them, so a
// new key is used. While jobs wait there the key stays; otherwise a queue that keeps
// cancelling would never be charged.
//
// The statement asks for jobs in Temporal by a range of queues, in order: only the index
// of task queues and queues yields that.
func (h *handOut) backlogs(ctx context.Context) ([]fairshare.Backlog, error) {
	return all[fairshare.Backlog](ctx, h.tx, `
		with recursive `+waitingQueues("$1")+`
		select q.queue, there.jobs as in_temporal, coalesce(there.turn, `+wasted("$1", "q.queue")+`) as turn
		from queues q cross join lateral (
			select count(*) as jobs, max(t.turn) as turn from (
				select status, turn from job_queue
				where task_queue = $1 and queue between q.queue and q.queue and status in ('handed_out', 'in_progress') order by queue) t
			where t.status = 'handed_out') there
		where q.queue is not null order by q.queue`, h.taskQueue)
}

// next locks the next jobs of the open queues, at most most of each, after those read
// before. It skips jobs without a size class.
func (h *handOut) next(ctx context.Context, most int, passLocked bool) ([]fairshare.Candidate, error) {
	queues := h.selection.Open()
	n := len(queues)
	fresh, created, ids := make([]bool, n), make([]time.Time, n), make([]int64, n)
	for i, name := range queues {
		last := h.looked[name]
		fresh[i], created[i], ids[i] = last.Fresh, last.Created, last.ID
	}
	type row struct {
		position
		Queue   string
		Unsized bool
	}
	found, err := all[row](ctx, h.tx, `
		select q.queue, c.* from unnest(@queues::text[], @fresh::boolean[], @created::timestamptz[], @ids::bigint[]) as q (queue, fresh, created, id)
		cross join lateral (
			select j.started_at is null as fresh, j.request_created as created, j.id, `+unsized+` as unsized
			from job_queue j where j.task_queue = @task_queue and j.status = 'queued' and j.held = '' and j.queue = q.queue
				and ((j.started_at is null), j.request_created, j.id) > (q.fresh, q.created, q.id)
			order by (j.started_at is null), j.request_created, j.id limit @most) c`,
		pgx.NamedArgs{"task_queue": h.taskQueue, "queues": queues, "most": most, "fresh": fresh, "created": created, "ids": ids})
	if err != nil {
		return nil, err
	}
	var wanted []int64
	for _, r := range found {
		h.looked[r.Queue] = r.position
		if !h.sized || !r.Unsized {
			wanted = append(wanted, r.ID)
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	return h.lock(ctx, wanted, passLocked)
}

// lock locks jobs in the order of their IDs, as everywhere, and then reads them by a
// separate statement that sees all earlier decisions. A transaction that has locked jobs
// already must not wait for more, as their holders may be waiting for it: it skips them.
func (h *handOut) lock(ctx context.Context, ids []int64, passLocked bool) ([]fairshare.Candidate, error) {
	how := "for update"
	if passLocked {
		how += " skip locked"
	}
	ids, err := column[int64](ctx, h.tx, `select id from job_queue where id = any($1) order by id `+how, ids)
	if err != nil {
		return nil, err
	}
	type row struct {
		fairshare.Candidate
		Waiting bool // as a row; not part of the where clause, which might then use the index of all waiting jobs
	}
	found, err := all[row](ctx, h.tx, `
		select j.id, j.queue, j.submitter, j.branch, j.status = 'queued' as waiting, exists (`+activeWaiter+`) as in_turn, not exists (`+readyWaiter+`) as blocked, not (`+unpaused+`) as paused
		from job_queue j where j.id = any($1)
		order by j.queue, (j.started_at is null), j.request_created, j.id`, ids)
	var waiting []fairshare.Candidate
	for _, r := range found {
		if r.Waiting {
			waiting = append(waiting, r.Candidate)
		}
	}
	return waiting, err
}

// sift chooses among locked jobs those that may run, and holds the others.
func (h *handOut) sift(ctx context.Context, found []fairshare.Candidate) error {
	if err := h.readLimits(ctx, h.selection.Unknown(found)); err != nil {
		return err
	}
	if h.selection.NeedShared(found) {
		shared, err := h.sharedQueues(ctx)
		if err != nil {
			return err
		}
		h.selection.Shared(shared)
	}
	chosen, held := h.selection.Sift(found)
	h.chosen = append(h.chosen, chosen...)
	for _, why := range slices.Sorted(maps.Keys(held)) {
		if _, err := h.tx.Exec(ctx, `update job_queue set held = $2 where id = any($1)`, held[why], why); err != nil {
			return err
		}
	}
	return nil
}

// readLimits reads the limits of accounts, and how many more jobs each may have in
// progress.
//
// Concurrent hand-outs of a limited account's jobs wait until this transaction has ended.
// One lock covers all limited accounts: with a lock for each, two hand-outs could wait
// for each other.
func (h *handOut) readLimits(ctx context.Context, accounts []string) error {
	if len(accounts) == 0 {
		return nil
	}
	limits, err := limitsOf(ctx, h.tx, accounts)
	if err != nil {
		return err
	}
	rules := &h.selection.Rules
	rules.Limits = rules.Limits.Add(limits)
	for _, account := range accounts {
		limit := rules.Limits.Of(account)
		if limit.MaxRunning == nil {
			h.selection.Limit(account, fairshare.Unlimited)
			continue
		}
		if !h.limited {
			if err := lock(ctx, h.tx, "accounts at their limit"); err != nil {
				return err
			}
			h.limited = true
		}
		under, err := underWay(ctx, h.tx, account)
		if err != nil {
			return err
		}
		h.selection.Limit(account, limit.Free(under, h.live > 0))
	}
	return nil
}

// sharedQueues lists the accounts' queues in which jobs of other accounts wait in this
// task queue.
func (h *handOut) sharedQueues(ctx context.Context) ([]string, error) {
	return column[string](ctx, h.tx, `
		select distinct queue from job_queue
		where task_queue = $1 and status = 'queued' and held = '' and queue like 'user:%' and queue <> 'user:' || submitter`, h.taskQueue)
}

// write hands the chosen jobs out.
func (h *handOut) write(ctx context.Context) ([]bench.HandOut, error) {
	choices := h.selection.Choices(h.chosen)
	n := len(choices)
	ids, weights, levels, turns := make([]int64, n), make([]float64, n), make([]int, n), make([]int, n)
	for i, c := range choices {
		ids[i], weights[i], levels[i], turns[i] = c.ID, c.Weight, c.Level, c.Turn
	}
	rows, err := all[handOutRow](ctx, h.tx, `
		with handed as (
			update job_queue j set status = 'handed_out', handed_out_at = clock_timestamp(), handed_out_to = (`+firstWaiter+`),
				weight = t.weight, priority = t.level, turn = t.turn
			from unnest($1::bigint[], $2::float8[], $3::int[], $4::int[]) as t (id, weight, level, turn)
			where j.id = t.id and exists (`+readyWaiter+`)
			returning j.*
		)
		select `+handOutColumns("j.handed_out_to")+` from handed j order by j.request_created, j.id`, ids, weights, levels, turns)
	return summaries(rows), err
}

// WaitingTaskQueues lists the task queues with jobs that may be handed out.
func (s *Store) WaitingTaskQueues(ctx context.Context) ([]string, error) {
	queues, err := column[string](ctx, s.pool, `
		with recursive queues as (
			(select task_queue from job_queue where status = 'queued' order by task_queue limit 1)
			union all
			select (select j.task_queue from job_queue j where j.status = 'queued' and j.task_queue > q.task_queue order by j.task_queue limit 1)
			from queues q where q.task_queue is not null
		)
		select q.task_queue from queues q cross join lateral (
			select from job_queue j where j.task_queue = q.task_queue and j.status = 'queued' and j.held = '' order by j.queue limit 1) first
		order by q.task_queue`)
	return queues, wrap("listing the task queues with waiting jobs", err)
}
