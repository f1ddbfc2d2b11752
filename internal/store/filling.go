package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
)

// Filling is how a task queue is filled.
type Filling struct {
	// Depth is how many jobs of one queue are to wait in Temporal, by the task
	// queue's live collectors; Strict the same for a strict queue, nil: as for others.
	Depth, Strict func(liveCollectors int) int
	// Sized: jobs for which a size class is still to be selected stay.
	Sized bool
}

func (f Filling) depth(class fairshare.Class, live int) int {
	if class == fairshare.Strict && f.Strict != nil {
		return f.Strict(live)
	}
	return f.Depth(live)
}

// Why a job that waits is put aside (job_queue.held): hand-outs do not look at it
// again until that has changed.
const (
	heldByTurn  = "turn"  // no request that waits for it has its turn
	heldByPause = "pause" // its project's queue is paused
	heldByCap   = "cap"   // its submitter has as much under way as the limit allows
)

// ErrMore: a hand-out has put many jobs aside and is not through with them. What it
// handed out comes with it. Called again, it goes on behind them.
var ErrMore = errors.New("more jobs are to be looked at")

// HandOut hands out waiting jobs of a task queue: of each queue (fairness key) what
// has begun before, then the oldest, until [Filling.Depth] of its jobs wait in
// Temporal. It reads about as many rows as it hands out, however many wait. Weight,
// level and limits are those of this moment.
//
// Jobs that no request waits for in its turn stay, and so do those of projects whose
// queue is paused, and of accounts at their limit. They may be thousands: [ErrMore]
// then, so that other hand-outs of the task queue come in between.
func (s *Store) HandOut(ctx context.Context, taskQueue string, how Filling) ([]bench.HandOut, error) {
	var out []bench.HandOut
	more := false
	err := s.inTx(ctx, "handing out jobs of task queue "+taskQueue, func(tx pgx.Tx) error {
		if err := lock(ctx, tx, "hand-out "+taskQueue); err != nil {
			return err
		}
		live, err := liveCollectors(ctx, tx, taskQueue)
		if err != nil {
			return err
		}
		// Plans that were made while little waited must not be used when much does.
		if _, err := tx.Exec(ctx, `set local plan_cache_mode = force_custom_plan`); err != nil {
			return err
		}
		f := filling{tx: tx, taskQueue: taskQueue, live: live, sized: how.Sized, depth: func(class fairshare.Class) int { return how.depth(class, live) }}
		taken, err := f.choose(ctx)
		if err != nil {
			return err
		}
		if more = f.more; len(taken) > 0 {
			out, err = f.write(ctx, taken)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if more {
		return out, ErrMore
	}
	return out, nil
}

// filling is one hand-out under the lock of its task queue.
type filling struct {
	tx        pgx.Tx
	taskQueue string
	live      int // collectors that take jobs from there now
	depth     func(fairshare.Class) int
	sized     bool
	queues    func(name string) fairshare.Queue // those with jobs that wait here
	// limits and free are read when a limited account is met first: how many more
	// jobs it may have under way.
	limits fairshare.Limits
	free   map[string]int
	capped bool // the lock of capped accounts is held
	// foreign are the queues of accounts in which jobs of others wait; nil: not read.
	foreign map[string]bool
	more    bool // behind those that were put aside there may be others
}

// room is how many jobs of a queue wait in Temporal, by which turn, and how many more
// are to.
type room struct {
	Queue      string
	InTemporal int
	Turn       int
	room       int
	last       place // how far its jobs were looked at
}

// place is where a job stands in its queue.
type place struct {
	Fresh   bool // it has never begun
	Created time.Time
	ID      int64
}

// candidate is a job that waits; it is locked.
type candidate struct {
	ID        int64
	Queue     string
	Submitter string
	Branch    string
	Waiting   bool // as a row
	InTurn    bool // a request that waits for it has its turn
	Paused    bool // its project's queue is
	weight    float64
	level     int
	turn      int
}

// choose locks the jobs that go next. Those that may not go are put aside, and
// the next ones looked at in their place.
func (f *filling) choose(ctx context.Context) ([]candidate, error) {
	rooms, err := f.rooms(ctx)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(rooms))
	for i, r := range rooms {
		names[i] = r.Queue
	}
	if f.queues, err = queuesByName(ctx, f.tx, names); err != nil {
		return nil, err
	}
	most, turns := 0, make(map[string]int, len(rooms))
	for i, r := range rooms {
		turns[r.Queue] = r.Turn
		rooms[i].room = max(0, f.depth(f.queues(r.Queue).Class)-r.InTemporal)
		most = max(most, rooms[i].room)
	}
	rooms = slices.DeleteFunc(rooms, func(r room) bool { return r.room == 0 })
	var taken []candidate
	for round, look := 0, most; len(rooms) > 0; round, look = round+1, lookPast {
		if f.more = round == roundsAtOnce; f.more {
			break
		}
		found, err := f.next(ctx, rooms, look, round > 0)
		if err != nil {
			return nil, err
		}
		chosen, aside, err := f.sift(ctx, rooms, found)
		if err != nil {
			return nil, err
		}
		taken = append(taken, chosen...)
		for i, r := range rooms {
			rooms[i].room -= inQueue(chosen, r.Queue)
		}
		// Behind those that were put aside there may be others.
		rooms = slices.DeleteFunc(rooms, func(r room) bool { return r.room == 0 || inQueue(aside, r.Queue) == 0 })
	}
	f.configure(taken, turns)
	return taken, nil
}

const (
	// lookPast is how many jobs of a queue are looked at together when the first ones
	// may not go: they may be thousands, each looked at once.
	lookPast = 1000
	// roundsAtOnce bounds how often that is done in one transaction: for as long as it
	// lasts, some tenths of a second, nobody else hands out jobs of the task queue.
	roundsAtOnce = 3
)

func inQueue(cs []candidate, queue string) int {
	n := 0
	for _, c := range cs {
		if c.Queue == queue {
			n++
		}
	}
	return n
}

// wasted counts the jobs of a queue that were cancelled while they waited in Temporal.
func wasted(taskQueue, queue string) string {
	return `(select count(*) from job_queue w where w.task_queue = ` + taskQueue + ` and w.queue = ` + queue + `
		and w.status = 'cancelled' and w.handed_out_at is not null and w.started_at is null)`
}

// rooms are the queues with jobs that wait here, found by going from one to the
// next in the index, not by reading their jobs.
//
// The turn of a queue of which nothing waits in Temporal is how many of its jobs were
// cancelled while they did. Temporal has charged the queue's fairness key for them, so
// that key is left behind. While something waits there its key stays, or a queue that
// cancels all the time would never be charged.
func (f *filling) rooms(ctx context.Context) ([]room, error) {
	return all[room](ctx, f.tx, `
		with recursive queues as (
			(select queue from job_queue where task_queue = $1 and status = 'queued' and held = '' order by queue limit 1)
			union all
			select (select j.queue from job_queue j where j.task_queue = $1 and j.status = 'queued' and j.held = '' and j.queue > q.queue
				order by j.queue limit 1)
			from queues q where q.queue is not null
		)
		select q.queue, there.jobs as in_temporal, coalesce(there.turn, `+wasted("$1", "q.queue")+`) as turn
		from queues q cross join lateral (
			select count(*) as jobs, max(t.turn) as turn from job_queue t
			where t.task_queue = $1 and t.queue = q.queue and t.status = 'handed_out') there
		where q.queue is not null order by q.queue`, f.taskQueue)
}

// next locks the next jobs of queues, at most so many of each: those behind the ones
// that were looked at before. What has no size class yet is passed over.
func (f *filling) next(ctx context.Context, rooms []room, most int, passLocked bool) ([]candidate, error) {
	n := len(rooms)
	queues, fresh, created, ids := make([]string, n), make([]bool, n), make([]time.Time, n), make([]int64, n)
	for i, r := range rooms {
		queues[i], fresh[i], created[i], ids[i] = r.Queue, r.last.Fresh, r.last.Created, r.last.ID
	}
	type row struct {
		place
		Queue   string
		Unsized bool
	}
	found, err := all[row](ctx, f.tx, `
		select q.queue, c.* from unnest($2::text[], $4::boolean[], $5::timestamptz[], $6::bigint[]) as q (queue, fresh, created, id)
		cross join lateral (
			select j.started_at is null as fresh, j.request_created as created, j.id, `+unsized+` as unsized
			from job_queue j where j.task_queue = $1 and j.status = 'queued' and j.held = '' and j.queue = q.queue
				and ((j.started_at is null), j.request_created, j.id) > (q.fresh, q.created, q.id)
			order by (j.started_at is null), j.request_created, j.id limit $3) c`, f.taskQueue, queues, most, fresh, created, ids)
	if err != nil {
		return nil, err
	}
	var wanted []int64
	for _, r := range found {
		rooms[slices.Index(queues, r.Queue)].last = r.place
		if !f.sized || !r.Unsized {
			wanted = append(wanted, r.ID)
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	return f.lock(ctx, wanted, passLocked)
}

// lock keeps jobs from changing, in the order of their IDs as everywhere, and then
// reads them by a statement of its own: it sees all that was decided before. Who has
// jobs locked already must not wait for those of others, who may wait for these: it
// passes them over.
func (f *filling) lock(ctx context.Context, ids []int64, passLocked bool) ([]candidate, error) {
	how := "for update"
	if passLocked {
		how += " skip locked"
	}
	ids, err := column[int64](ctx, f.tx, `select id from job_queue where id = any($1) order by id `+how, ids)
	if err != nil {
		return nil, err
	}
	found, err := all[candidate](ctx, f.tx, `
		select j.id, j.queue, j.submitter, j.branch, j.status = 'queued' as waiting, exists (`+activeWaiter+`) as in_turn, not (`+unpaused+`) as paused
		from job_queue j where j.id = any($1)
		order by j.queue, (j.started_at is null), j.request_created, j.id`, ids)
	return slices.DeleteFunc(found, func(c candidate) bool { return !c.Waiting }), err
}

// sift leaves those that may go and for which there is room. Others are put aside,
// if there may be some behind them that may.
func (f *filling) sift(ctx context.Context, rooms []room, found []candidate) (chosen, aside []candidate, err error) {
	if err := f.readLimits(ctx, found); err != nil {
		return nil, nil, err
	}
	if err := f.readForeign(ctx, found); err != nil {
		return nil, nil, err
	}
	space := make(map[string]int)
	for _, r := range rooms {
		space[r.Queue] = r.room
	}
	// What an account may begin at all, it begins in the queue that goes first.
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(f.queues(a.Queue).Level, f.queues(b.Queue).Level) })
	held := make(map[string][]int64)
	for _, c := range found {
		var why string
		switch {
		case space[c.Queue] == 0: // looked at for nothing
			continue
		case !c.InTurn:
			why = heldByTurn
		case c.Paused:
			why = heldByPause
		case f.free[c.Submitter] > 0:
			f.free[c.Submitter]--
			space[c.Queue]--
			chosen = append(chosen, c)
			continue
		case c.Queue == fairshare.OfUser(c.Submitter) && !f.foreign[c.Queue]:
			continue // behind it are more of the same account
		default:
			why = heldByCap
		}
		held[why] = append(held[why], c.ID)
		aside = append(aside, c)
	}
	for _, why := range []string{heldByTurn, heldByPause, heldByCap} {
		if len(held[why]) == 0 {
			continue
		}
		if _, err := f.tx.Exec(ctx, `update job_queue set held = $2 where id = any($1)`, held[why], why); err != nil {
			return nil, nil, err
		}
	}
	return chosen, aside, nil
}

// readForeign finds the queues of accounts in which jobs of others wait, once one of
// an account at its limit is met.
func (f *filling) readForeign(ctx context.Context, found []candidate) error {
	if f.foreign != nil || !slices.ContainsFunc(found, func(c candidate) bool { return f.free[c.Submitter] < unlimited }) {
		return nil
	}
	names, err := column[string](ctx, f.tx, `
		select distinct queue from job_queue
		where task_queue = $1 and status = 'queued' and held = '' and queue like 'user:%' and queue <> 'user:' || submitter`, f.taskQueue)
	f.foreign = make(map[string]bool, len(names))
	for _, name := range names {
		f.foreign[name] = true
	}
	return err
}

// write hands the jobs out.
func (f *filling) write(ctx context.Context, taken []candidate) ([]bench.HandOut, error) {
	n := len(taken)
	ids, weights, levels, turns := make([]int64, n), make([]float64, n), make([]int, n), make([]int, n)
	for i, c := range taken {
		ids[i], weights[i], levels[i], turns[i] = c.ID, c.weight, c.level, c.turn
	}
	rows, err := all[handOutRow](ctx, f.tx, `
		with handed as (
			update job_queue j set status = 'handed_out', handed_out_at = clock_timestamp(), handed_out_to = (`+firstWaiter+`),
				weight = t.weight, priority = t.level, turn = t.turn
			from unnest($1::bigint[], $2::float8[], $3::int[], $4::int[]) as t (id, weight, level, turn)
			where j.id = t.id and exists (`+activeWaiter+`)
			returning j.*
		)
		select `+handOutColumns("j.handed_out_to")+` from handed j order by j.request_created, j.id`, ids, weights, levels, turns)
	return summaries(rows), err
}

// configure gives the jobs the weight, the level and the turn that are in force now.
func (f *filling) configure(taken []candidate, turns map[string]int) {
	for i, c := range taken {
		q := f.queues(c.Queue)
		taken[i].weight, taken[i].level, taken[i].turn = q.Weight, f.limits.Level(q, c.Submitter, c.Branch), turns[c.Queue]
	}
	slices.SortFunc(taken, func(a, b candidate) int { return cmp.Compare(a.ID, b.ID) })
}

// WaitingTaskQueues lists the task queues for which jobs wait that may be handed
// out.
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
