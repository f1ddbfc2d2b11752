package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
)

// openGroup are the open jobs of an account and a branch in a queue: they go at one
// level.
type openGroup struct {
	Queue, Submitter, Branch    string
	Waiting, HandedOut, Running int
}

// force is what is in force for jobs: how queues are configured, and the limits of
// accounts.
type force struct {
	queues func(name string) fairshare.Queue
	limits fairshare.Limits
}

// inForce reads what is in force for these jobs.
func inForce(ctx context.Context, q querier, jobs []openGroup) (force, error) {
	names, accounts := make([]string, len(jobs)), make([]string, len(jobs))
	for i, j := range jobs {
		names[i], accounts[i] = j.Queue, j.Submitter
	}
	queues, err := queuesByName(ctx, q, names)
	if err != nil {
		return force{}, err
	}
	limits, err := limitsOf(ctx, q, accounts)
	return force{queues: queues, limits: limits}, err
}

func (f force) level(j openGroup) int {
	return f.limits.Level(f.queues(j.Queue), j.Submitter, j.Branch)
}

// earliest is the level of each queue's jobs that go first.
func (f force) earliest(jobs []openGroup) map[string]int {
	levels := make(map[string]int)
	for _, j := range jobs {
		level, known := levels[j.Queue]
		if own := f.level(j); !known || own < level {
			levels[j.Queue] = own
		}
	}
	return levels
}

// share is a weighted queue's part of the weights of the weighted queues with these
// jobs, 0 to 1; nil when they do not all go at one level: the earlier ones get all.
func (f force) share(queue string, jobs []openGroup) *float64 {
	weights, level := make(map[string]float64), 0
	for _, j := range jobs {
		q := f.queues(j.Queue)
		if q.Class != fairshare.Weighted {
			continue
		}
		if own := f.level(j); level == 0 {
			level = own
		} else if level != own {
			return nil
		}
		weights[j.Queue] = q.Weight
	}
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	share := weights[queue] / sum
	return &share
}

// settleShares gives queues the levels at which their open jobs go, where limits of
// accounts say later ones than the queues do.
func (s *Store) settleShares(ctx context.Context, shares []Share) error {
	limited, err := value[bool](ctx, s.pool, `select exists (select from account_limit where first_level > $1)`, fairshare.FirstLevel)
	if err != nil || !limited {
		return err
	}
	open, err := all[openGroup](ctx, s.pool, `
		select queue, submitter, branch, 0 as waiting, 0 as handed_out, 0 as running from job_queue
		where status in ('queued', 'handed_out', 'in_progress') group by queue, submitter, branch order by queue`)
	if err != nil {
		return err
	}
	f, err := inForce(ctx, s.pool, open)
	if err != nil {
		return err
	}
	levels := f.earliest(open)
	for i, q := range shares {
		if level, ok := levels[q.Name]; ok {
			shares[i].Level = level
		}
		if q.Entitled != nil && f.share(q.Name, open) == nil {
			shares[i].Entitled = nil
		}
	}
	return nil
}

// advance lets jobs that a request waits for go in its own queue and for its own
// account, those that would go at a later level in theirs: a request is not to wait
// for what others want done last. They are locked. One that runs stays; the level of
// one that waits in Temporal follows ([Store.Relevel]).
func advance(ctx context.Context, tx pgx.Tx, r bench.Request, queue string, ids []int64) error {
	if queue == "" {
		return nil
	}
	type row struct {
		ID                       int64
		Queue, Submitter, Branch string
	}
	jobs, err := all[row](ctx, tx, `select j.id, j.queue, j.submitter, j.branch from job_queue j where j.id = any($1) and `+unattended, ids)
	if err != nil {
		return err
	}
	own := openGroup{Queue: queue, Submitter: r.Submitter, Branch: r.Branch}
	groups := []openGroup{own}
	for _, j := range jobs {
		groups = append(groups, openGroup{Queue: j.Queue, Submitter: j.Submitter, Branch: j.Branch})
	}
	f, err := inForce(ctx, tx, groups)
	if err != nil {
		return err
	}
	var later []int64
	for i, j := range jobs {
		if f.level(groups[i+1]) > f.level(own) {
			later = append(later, j.ID)
		}
	}
	if len(later) == 0 {
		return nil
	}
	// What was put aside for another account's limit is not by this one's.
	_, err = tx.Exec(ctx, `
		update job_queue j set queue = $2, submitter = $3, branch = $4, held = '', turn = coalesce((
			select max(t.turn) from job_queue t where t.task_queue = j.task_queue and t.queue = $2 and t.status = 'handed_out'), `+wasted("j.task_queue", "$2")+`)
		where j.id = any($1)`, later, own.Queue, own.Submitter, own.Branch)
	return err
}
