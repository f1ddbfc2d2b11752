package store

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/fairshare"
)

const limitColumns = `account, branch, max_running, max_queued, first_level`

// limitsOf reads the limits that apply to accounts: their own, and the default for
// accounts without any.
func limitsOf(ctx context.Context, q querier, accounts []string) (fairshare.Limits, error) {
	return all[fairshare.AccountLimit](ctx, q, `
		select `+limitColumns+` from account_limit where account = any($1) or account = '*' order by account, branch`, accounts)
}

// queuesOf reads the configured queues among those named.
func queuesOf(ctx context.Context, q querier, names []string) (fairshare.Queues, error) {
	found, err := all[fairshare.Queue](ctx, q, `select name, class, weight, level from queue_config where name = any($1)`, names)
	queues := make(fairshare.Queues, len(found))
	for _, c := range found {
		queues[c.Name] = c
	}
	return queues, err
}

// rulesOf reads the rules in force for these jobs, and for further accounts.
func rulesOf(ctx context.Context, q querier, jobs []fairshare.Job, accounts ...string) (fairshare.Rules, error) {
	names := make([]string, len(jobs))
	for i, j := range jobs {
		names[i] = j.Queue
		accounts = append(accounts, j.Submitter)
	}
	queues, err := queuesOf(ctx, q, unique(names))
	if err != nil {
		return fairshare.Rules{}, err
	}
	limits, err := limitsOf(ctx, q, unique(accounts))
	return fairshare.Rules{Queues: queues, Limits: limits}, err
}

func unique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// underWay counts an account's jobs in progress.
func underWay(ctx context.Context, q querier, account string) (fairshare.Load, error) {
	return one[fairshare.Load](ctx, q, `
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

// mayWait returns a [fairshare.TooManyWaiting] if an account has too many waiting jobs. A
// transaction calls it last, after writing that many jobs or requests: others that write
// jobs of the same account wait until it has ended.
//
// A request whose jobs are not written yet counts as one.
func mayWait(ctx context.Context, tx pgx.Tx, account string, written int) error {
	limits, err := limitsOf(ctx, tx, []string{account})
	if err != nil {
		return err
	}
	limit := limits.Of(account)
	if limit.MaxQueued == nil || written == 0 {
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
	return limit.MayWait(account, waiting, written)
}

// mayAskFor returns a [fairshare.TooEarly] if one of the jobs goes earlier than the
// requesting account's own jobs may.
func mayAskFor(ctx context.Context, tx pgx.Tx, account string, jobs []fairshare.Job) error {
	rules, err := rulesOf(ctx, tx, jobs, account)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if err := rules.MayAsk(account, j); err != nil {
			return err
		}
	}
	return nil
}
