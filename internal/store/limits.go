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

// queueColumnsOf selects the columns of a [fairshare.Queue] from row c of the configuration.
const queueColumnsOf = `c.name, c.class, c.weight, c.level, coalesce(c.wait_objective_seconds, 0) * 1000000000::bigint as wait_objective`

// queuesOf reads the configured queues among those named.
func queuesOf(ctx context.Context, q querier, names []string) (fairshare.Queues, error) {
	found, err := all[fairshare.Queue](ctx, q, `select `+queueColumnsOf+` from queue_config c where c.name = any($1)`, names)
	return byQueue(found), err
}

// allQueues reads all configured queues.
func allQueues(ctx context.Context, q querier) (fairshare.Queues, error) {
	found, err := all[fairshare.Queue](ctx, q, `select `+queueColumnsOf+` from queue_config c`)
	return byQueue(found), err
}

func byQueue(found []fairshare.Queue) fairshare.Queues {
	queues := make(fairshare.Queues, len(found))
	for _, c := range found {
		queues[c.Name] = c
	}
	return queues
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

// beginLimited records that these accounts have as much under way as their limits allow. A
// job that begins after another has ended continues the period: hand-outs follow within ten
// seconds, at the sweep. It locks rows that a transaction locks last.
func beginLimited(ctx context.Context, tx pgx.Tx, accounts []string) error {
	if len(accounts) == 0 {
		return nil
	}
	for _, sql := range []string{
		`update account_limited set until = null where id in (
			select l.id from account_limited l where l.account = any($1) and l.until > now() - interval '10 seconds'
				and not exists (select from account_limited later where later.account = l.account and later.id > l.id)
			order by l.id for update)`,
		`with old as (
			delete from account_limited where id in (
				select id from account_limited where until < now() - interval '90 days' order by id for update skip locked))
		insert into account_limited (account) select a from unnest($1::text[]) as a
		where not exists (select from account_limited l where l.account = a and l.until is null) order by a
		on conflict (account) where until is null do nothing`,
	} {
		if _, err := tx.Exec(ctx, sql, accounts); err != nil {
			return err
		}
	}
	return nil
}

// endLimited records that these accounts may have more under way.
func endLimited(ctx context.Context, tx pgx.Tx, accounts []string) error {
	if len(accounts) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
		update account_limited set until = now() where id in (
			select id from account_limited where account = any($1) and until is null order by id for update)`, accounts)
	return err
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
	return mayWaitLater(ctx, tx, account, written, 0)
}

// mayWaitLater is mayWait for jobs of which some are still to be written.
func mayWaitLater(ctx context.Context, tx pgx.Tx, account string, written, unwritten int) error {
	limits, err := limitsOf(ctx, tx, []string{account})
	if err != nil {
		return err
	}
	limit := limits.Of(account)
	if limit.MaxQueued == nil || written+unwritten == 0 {
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
	return limit.MayWait(account, waiting+unwritten, written+unwritten)
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
