package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/fairshare"
)

const limitColumns = `account, branch, max_running, max_queued, first_level`

// readLimits reads the limits of the submitters of jobs, those that were not read
// before.
func (f *filling) readLimits(ctx context.Context, jobs []candidate) error {
	if f.free == nil {
		f.free = make(map[string]int)
	}
	var unknown []string
	for _, c := range jobs {
		if _, known := f.free[c.Submitter]; !known && !slices.Contains(unknown, c.Submitter) {
			unknown = append(unknown, c.Submitter)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	limits, err := limitsOf(ctx, f.tx, unknown)
	if err != nil {
		return err
	}
	for _, l := range limits {
		if !slices.ContainsFunc(f.limits, func(have fairshare.AccountLimit) bool { return have.Account == l.Account && have.Branch == l.Branch }) {
			f.limits = append(f.limits, l)
		}
	}
	for _, account := range unknown {
		if f.free[account], err = f.freeOf(ctx, account); err != nil {
			return err
		}
	}
	return nil
}

// unlimited is how many jobs an account without a limit may begin.
const unlimited = int(^uint(0) >> 1)

// freeOf is how many more jobs an account may have under way. What others hand out
// at the same time waits until this transaction has ended: one lock for all limited
// accounts, for two locks of two hand-outs could wait for each other.
func (f *filling) freeOf(ctx context.Context, account string) (int, error) {
	most := f.limits.Of(account).MaxRunning
	if most == nil {
		return unlimited, nil
	}
	if !f.capped {
		if err := lock(ctx, f.tx, "accounts at their limit"); err != nil {
			return 0, err
		}
		f.capped = true
	}
	load, err := underWay(ctx, f.tx, account)
	if f.live == 0 {
		// What is handed out here waits too; by the whole count there is never more of
		// it than the limit.
		return max(0, *most-load.Jobs), err
	}
	return load.free(*most), err
}

// load is what an account has under way, in all task queues.
type load struct {
	// Jobs were handed out and have not ended, or have, as cancelled, and still run.
	Jobs int
	// Stranded are those of them that nobody carries out, at places without a live
	// collector: nothing says when they begin, so they keep no other job from it.
	Stranded int
}

// free is how many more jobs may begin with this limit.
func (l load) free(most int) int { return max(0, most-l.Jobs+l.Stranded) }

// underWay counts what an account has under way.
func underWay(ctx context.Context, q querier, account string) (load, error) {
	return one[load](ctx, q, `
		with there as materialized (
			select j.task_queue, count(*) as jobs, count(*) filter (where `+unattended+`) as waiting
			from job_queue j where j.submitter = $1 and j.status in ('handed_out', 'in_progress') group by j.task_queue
		)
		select coalesce(sum(t.jobs), 0)::bigint + (
			select count(*) from job_run n join job_queue j on j.id = n.job_id
			where n.outcome = '' and j.submitter = $1 and j.status not in ('handed_out', 'in_progress')) as jobs, coalesce(sum(t.waiting) filter (where t.waiting > 0 and not exists (
			select from collector_config c where c.active and c.`+heardOf("$2")+` and `+serves("t.task_queue")+`)), 0)::bigint as stranded
		from there t`, account, liveWithin.Seconds())
}

// limitsOf are the limits that concern accounts: their own, and those of all that
// have none.
func limitsOf(ctx context.Context, q querier, accounts []string) (fairshare.Limits, error) {
	return all[fairshare.AccountLimit](ctx, q, `
		select `+limitColumns+` from account_limit where account = any($1) or account = '*' order by account, branch`, accounts)
}

// queuesByName reads how queues are configured; those that are not have their
// defaults.
func queuesByName(ctx context.Context, q querier, names []string) (func(name string) fairshare.Queue, error) {
	found, err := all[fairshare.Queue](ctx, q, `select name, class, weight, level from queue_config where name = any($1)`, names)
	return func(name string) fairshare.Queue {
		if i := slices.IndexFunc(found, func(c fairshare.Queue) bool { return c.Name == name }); i >= 0 {
			return found[i]
		}
		return fairshare.Default(name)
	}, err
}

// TooManyWaiting is that an account may not have that many jobs waiting.
type TooManyWaiting struct {
	Account string
	// Most is what its limit allows, Waiting what there is, More what was asked for
	// besides.
	Most, Waiting, More int
}

func (e *TooManyWaiting) Error() string {
	return fmt.Sprintf("%d jobs of %s wait already, and %d at most may (max_queued): there is no room for %d more; wait until some have run, cancel some, or ask an administrator for a larger limit",
		e.Waiting, e.Account, e.Most, e.More)
}

// mayWait is asked in the transaction that has written so many jobs, or requests: a
// [TooManyWaiting] when the account's limit forbids it. Others who write jobs of the
// same account wait until it has ended, so it comes last.
//
// A request whose jobs are still to be written counts as one.
func mayWait(ctx context.Context, tx pgx.Tx, account string, written int) error {
	limits, err := limitsOf(ctx, tx, []string{account})
	if err != nil {
		return err
	}
	most := limits.Of(account).MaxQueued
	if most == nil || written == 0 {
		return nil
	}
	if err := lock(ctx, tx, "jobs waiting of "+account); err != nil {
		return err
	}
	waiting, err := value[int](ctx, tx, `
		select (select count(*) from job_queue where submitter = $1 and status = 'queued')
			+ (select count(*) from benchmark_request where submitter = $1 and status <> 'completed' and expanded_at is null)`, account)
	if err != nil {
		return err
	}
	if waiting > *most {
		return &TooManyWaiting{Account: account, Most: *most, Waiting: waiting - written, More: written}
	}
	return nil
}

// TooEarly is that somebody asks for what goes earlier than anything of theirs may.
type TooEarly struct {
	Queue, Branch, Account string
	// Level is the one that the jobs would have, First the first one of the account.
	Level, First int
}

func (e *TooEarly) Error() string {
	of := ""
	if e.Branch != "" {
		of = " on branch " + e.Branch
	}
	return fmt.Sprintf("what waits in queue %s goes at level %d, and what %s asks for%s goes at level %d at the earliest (first_level of the limits of accounts); let somebody ask for it who may, or submit it anew",
		e.Queue, e.Level, e.Account, of, e.First)
}

// standing is where and on whose account jobs wait.
type standing struct{ Queue, Submitter, Branch string }

// mayAskFor refuses jobs that go earlier than those of whoever asks for them may,
// with a [TooEarly]: that they are somebody else's is no way around a limit.
func mayAskFor(ctx context.Context, tx pgx.Tx, who string, jobs map[standing]bool) error {
	accounts, queues := []string{who}, []string{}
	for at := range jobs {
		accounts, queues = append(accounts, at.Submitter), append(queues, at.Queue)
	}
	limits, err := limitsOf(ctx, tx, accounts)
	if err != nil {
		return err
	}
	configured, err := queuesByName(ctx, tx, queues)
	if err != nil {
		return err
	}
	for at := range jobs {
		level := limits.Level(configured(at.Queue), at.Submitter, at.Branch)
		if first := limits.FirstLevel(who, at.Branch); first > level {
			return &TooEarly{Queue: at.Queue, Branch: at.Branch, Account: who, Level: level, First: first}
		}
	}
	return nil
}
