package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
)

// QueueState is a queue with its backlog.
type QueueState struct {
	fairshare.Queue
	// By configured the queue last, at the time At; empty if it has its defaults.
	By string
	At *time.Time
	// Queued counts jobs that wait as rows, HandedOut those in Temporal, Running those
	// that have begun.
	Queued, HandedOut, Running int
}

// AccountState is an account's limit with its use.
type AccountState struct {
	fairshare.AccountLimit
	By string
	At time.Time
	// Queued counts jobs that wait as rows, Running those handed out and not ended. Both
	// are 0 for [fairshare.Any] and for a single branch.
	Queued, Running int
}

// Queues lists the queues that are configured, built in or have open jobs, by level and
// name.
func (s *Store) Queues(ctx context.Context) ([]QueueState, error) {
	type row struct {
		Name                       string
		Class                      *fairshare.Class
		Weight                     *float64
		Level                      *int
		WaitObjective              time.Duration
		By                         string
		At                         *time.Time
		Queued, HandedOut, Running int
	}
	rows, err := all[row](ctx, s.pool, `
		with backlog as (
			select queue as name, count(*) filter (where status = 'queued') as queued,
				count(*) filter (where status = 'handed_out') as handed_out, count(*) filter (where status = 'in_progress') as running
			from job_queue where status in ('queued', 'handed_out', 'in_progress') group by queue
		), named as (
			select name from queue_config union select name from backlog union values ($1), ($2)
		)
		select n.name, c.class, c.weight, c.level, coalesce(c.wait_objective_seconds, 0) * 1000000000::bigint as wait_objective, coalesce(c.updated_by, '') as by, c.updated_at as at,
			coalesce(b.queued, 0) as queued, coalesce(b.handed_out, 0) as handed_out, coalesce(b.running, 0) as running
		from named n left join queue_config c on c.name = n.name left join backlog b on b.name = n.name`, fairshare.VIP, fairshare.Idle)
	if err != nil {
		return nil, wrap("listing the queues", err)
	}
	out := make([]QueueState, len(rows))
	for i, r := range rows {
		q := QueueState{Queue: fairshare.Default(r.Name), By: r.By, At: r.At, Queued: r.Queued, HandedOut: r.HandedOut, Running: r.Running}
		if r.Class != nil {
			q.Class, q.Weight, q.Level, q.WaitObjective = *r.Class, *r.Weight, *r.Level, r.WaitObjective
		}
		out[i] = q
	}
	slices.SortFunc(out, func(a, b QueueState) int {
		if a.Level != b.Level {
			return a.Level - b.Level
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out, nil
}

// Queue reads the configuration of a queue. known reports whether jobs may name it: it is
// configured or built in.
func (s *Store) Queue(ctx context.Context, name string) (q fairshare.Queue, known bool, err error) {
	q, err = one[fairshare.Queue](ctx, s.pool, `select `+queueColumnsOf+` from queue_config c where c.name = $1`, name)
	if errors.Is(err, ErrNotFound) {
		q = fairshare.Default(name)
		return q, q.Class == fairshare.Strict, nil
	}
	return q, err == nil, wrap("reading queue "+name, err)
}

// Accounts lists the limits of accounts.
func (s *Store) Accounts(ctx context.Context) ([]AccountState, error) {
	out, err := all[AccountState](ctx, s.pool, `
		select `+limitColumns+`, updated_by as by, updated_at as at,
			case when branch = '*' then (select count(*) from job_queue j where j.submitter = l.account and j.status = 'queued') else 0 end as queued,
			case when branch = '*' then (select count(*) from job_queue j where j.submitter = l.account and j.status in ('handed_out', 'in_progress')) else 0 end as running
		from account_limit l order by account, branch`)
	return out, wrap("listing the limits of accounts", err)
}

// Limits reads the limits that apply to an account: its own, and the default for accounts
// without any.
func (s *Store) Limits(ctx context.Context, account string) (fairshare.Limits, error) {
	limits, err := limitsOf(ctx, s.pool, []string{account})
	return limits, wrap("reading the limits of "+account, err)
}

// ApplyQueues applies a configuration of queues and limits, all or nothing. With replace,
// queues and accounts that it does not name return to their defaults.
func (s *Store) ApplyQueues(ctx context.Context, c fairshare.Config, replace bool, act Act) (Operation, error) {
	what := Operation{Action: "queue apply", Subject: "queues", Detail: detail(map[string]any{"queues": c.Queues, "accounts": c.Limits, "replace": replace})}
	return s.audited(ctx, what, act, func(tx pgx.Tx, _ int64) (OperationResult, error) {
		if err := lock(ctx, tx, "configuration of queues"); err != nil {
			return OperationResult{}, err
		}
		var did []string
		for _, q := range c.Queues {
			changed, err := putQueue(ctx, tx, q, act.Who)
			if err != nil {
				return OperationResult{}, err
			}
			if changed {
				did = append(did, q.Name)
			}
		}
		for _, l := range c.Limits {
			changed, err := column[string](ctx, tx, `
				insert into account_limit as l (account, branch, max_running, max_queued, first_level, updated_by) values (@account, @branch, @max_running, @max_queued, @first_level, @who)
				on conflict (account, branch) do update set max_running = excluded.max_running, max_queued = excluded.max_queued,
					first_level = excluded.first_level, updated_by = excluded.updated_by, updated_at = now()
				where (l.max_running, l.max_queued, l.first_level) is distinct from (excluded.max_running, excluded.max_queued, excluded.first_level)
				returning account`,
				pgx.NamedArgs{
					"account": l.Account, "branch": l.Branch, "max_running": l.MaxRunning, "max_queued": l.MaxQueued,
					"first_level": l.FirstLevel, "who": act.Who,
				})
			if err != nil {
				return OperationResult{}, err
			}
			for range changed {
				did = append(did, limitName(l))
			}
		}
		if replace {
			gone, err := removeOthers(ctx, tx, c)
			if err != nil {
				return OperationResult{}, err
			}
			did = append(did, gone...)
		}
		if len(did) == 0 {
			return OperationResult{Message: "queues and limits have these values already"}, nil
		}
		// The next hand-outs see which accounts are at their new limits.
		_, err := tx.Exec(ctx, `update account_limited set until = now() where until is null`)
		return OperationResult{Changed: true, Message: "changed: " + strings.Join(did, ", ")}, err
	})
}

func limitName(l fairshare.AccountLimit) string {
	if l.Branch == fairshare.Any {
		return "the limit of " + l.Account
	}
	return fmt.Sprintf("the limit of %s on %s", l.Account, l.Branch)
}

func putQueue(ctx context.Context, tx pgx.Tx, q fairshare.Queue, who string) (changed bool, err error) {
	names, err := column[string](ctx, tx, `
		insert into queue_config as c (name, class, weight, level, wait_objective_seconds, updated_by)
		values (@name, @class, @weight, @level, nullif(@objective::int, 0), @who)
		on conflict (name) do update set class = excluded.class, weight = excluded.weight, level = excluded.level,
			wait_objective_seconds = excluded.wait_objective_seconds, updated_by = excluded.updated_by, updated_at = now()
		where (c.class, c.weight, c.level, c.wait_objective_seconds)
			is distinct from (excluded.class, excluded.weight, excluded.level, excluded.wait_objective_seconds)
		returning name`,
		pgx.NamedArgs{"name": q.Name, "class": q.Class, "weight": q.Weight, "level": q.Level, "objective": int(q.WaitObjective / time.Second), "who": who})
	return len(names) > 0, err
}

// removeOthers removes the queues and limits that a configuration does not name.
func removeOthers(ctx context.Context, tx pgx.Tx, c fairshare.Config) ([]string, error) {
	var names, accounts, branches []string
	for _, q := range c.Queues {
		names = append(names, q.Name)
	}
	for _, l := range c.Limits {
		accounts, branches = append(accounts, l.Account), append(branches, l.Branch)
	}
	gone, err := column[string](ctx, tx, `delete from queue_config where name <> all(coalesce($1::text[], '{}')) returning name || ' (removed)'`, names)
	if err != nil {
		return nil, err
	}
	limits, err := column[string](ctx, tx, `
		delete from account_limit where (account, branch) not in (select account, branch from unnest($1::text[], $2::text[]) as t (account, branch))
		returning 'the limit of ' || account || case when branch = '*' then '' else ' on ' || branch end || ' (removed)'`, accounts, branches)
	slices.Sort(gone)
	slices.Sort(limits)
	return append(gone, limits...), err
}

// ErrStrict reports that a strict queue has no weight.
var ErrStrict = errors.New("the queue is strict: its level decides, not a weight")

// QueueKnown reports whether a queue is more than a name: it is configured, belongs to a
// known account or project, or has had a job.
func (s *Store) QueueKnown(ctx context.Context, name string) (bool, error) {
	known, err := value[bool](ctx, s.pool, `
		select exists (select from queue_config where name = $1)
			or exists (select from access_token where kind = 'user' and $2 || owner = $1)
			or exists (select from account_limit where $2 || account = $1)
			or exists (select from benchmark_request where $2 || submitter = $1)
			or exists (select from project where $3 || name = $1)
			or exists (select from job_queue where queue = $1)`, name, bench.UserQueue, bench.ProjectQueue)
	return known || name == fairshare.VIP || name == fairshare.Idle, wrap("looking for queue "+name, err)
}

// SetWeight sets the weight of a weighted queue; an unconfigured one is weighted. It
// returns [ErrStrict] for a strict queue.
func (s *Store) SetWeight(ctx context.Context, name string, weight float64, act Act) (Operation, error) {
	what := Operation{Action: "queue set-weight", Subject: name, Detail: detail(map[string]float64{"weight": weight})}
	return s.audited(ctx, what, act, func(tx pgx.Tx, _ int64) (OperationResult, error) {
		if err := lock(ctx, tx, "configuration of queues"); err != nil {
			return OperationResult{}, err
		}
		configured, err := queuesOf(ctx, tx, []string{name})
		if err != nil {
			return OperationResult{}, err
		}
		q := configured.Of(name)
		if q.Class == fairshare.Strict {
			return OperationResult{}, fmt.Errorf("queue %s: %w", name, ErrStrict)
		}
		before := q.Weight
		q.Weight = weight
		changed, err := putQueue(ctx, tx, q, act.Who)
		return OperationResult{Changed: changed && before != weight, Message: fmt.Sprintf("it was %g", before)}, err
	})
}

// Relevelled is a job that waits in Temporal at an outdated level.
type Relevelled struct {
	bench.JobRef
	// Level is the job's level by the rules in force.
	Level int
}

// Relevel lists the jobs waiting in Temporal whose level has changed with their queue's
// configuration or a limit.
func (s *Store) Relevel(ctx context.Context) ([]Relevelled, error) {
	type row struct {
		bench.JobRef
		Priority int
		fairshare.Job
	}
	rows, err := all[row](ctx, s.pool, `
		select `+jobRefColumns+`, j.queue, j.submitter, j.branch, j.priority from job_queue j
		where j.status in ('handed_out', 'in_progress') and `+unattended+` order by j.id`)
	if err != nil {
		return nil, wrap("listing the jobs waiting in Temporal", err)
	}
	jobs := make([]fairshare.Job, len(rows))
	for i, r := range rows {
		jobs[i] = r.Job
	}
	rules, err := rulesOf(ctx, s.pool, jobs)
	if err != nil {
		return nil, wrap("reading queues and limits of accounts", err)
	}
	var out []Relevelled
	for _, r := range rows {
		if level := rules.Level(r.Job); level != r.Priority {
			out = append(out, Relevelled{JobRef: r.JobRef, Level: level})
		}
	}
	return out, nil
}

// SetLevel records the level that an open job has in Temporal.
func (s *Store) SetLevel(ctx context.Context, key bench.JobKey, level int) error {
	_, err := s.pool.Exec(ctx, `update job_queue set priority = $2 where key = $1 and status in ('handed_out', 'in_progress')`, key, level)
	return wrap("recording the level of job "+string(key), err)
}

// RenewLevel records and returns the level in force for an open job before it is
// dispatched again.
func (s *Store) RenewLevel(ctx context.Context, key bench.JobKey) (int, error) {
	var level int
	err := s.inTx(ctx, "renewing the level of job "+string(key), func(tx pgx.Tx) error {
		job, err := lockJob(ctx, tx, key)
		if err != nil {
			return err
		}
		of := fairshare.Job{Queue: job.Queue, Submitter: job.Submitter, Branch: job.Branch}
		rules, err := rulesOf(ctx, tx, []fairshare.Job{of})
		if err != nil {
			return err
		}
		level = rules.Level(of)
		if level == job.Priority {
			return nil
		}
		_, err = tx.Exec(ctx, `update job_queue set priority = $2 where id = $1`, job.ID, level)
		return err
	})
	return level, err
}
