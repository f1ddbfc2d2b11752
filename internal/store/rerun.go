package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// Reruns: nodes of a request's graphs that a person asks for again as themselves. Their
// definitions, keys and places stay; their former ends move to node_end. Results of
// a rerun are of a later generation.

// succeededBefore matches an edge e whose input has succeeded before it was asked for again,
// which counts for what needs it: an input that succeeded once has succeeded. If one call
// asked for both, only what the input did since then counts, and a node may want the latest
// run. It is the rule of [graph.StateOf] in the database.
var succeededBefore = `
	exists (select from node_end ne where ne.node_id = e.from_job and ne.status = 'success'
		and not coalesce((select n.latest from graph_node n where n.graph_id = e.graph_id and n.job_id = e.to_job), false)
		and (ne.asked_in >= ` + askedIn("e.to_job") + ` or ` + askedIn("e.to_job") + ` <> ` + askedIn("e.from_job") + `
			and not exists (select from node_end x where x.node_id = e.from_job and x.asked_in = ` + askedIn("e.to_job") + `)))`

// askedIn is the call that last asked for a node.
func askedIn(node string) string {
	return `coalesce((select a.asked_in from job_queue a where a.id = ` + node + `), (select a.asked_in from service_node a where a.id = ` + node + `), 0)`
}

// rerun asks again for ended jobs, and for the chosen nodes that no machine runs. It
// returns the number of these nodes.
func (o reopening) rerun(ctx context.Context, jobs []bench.Job) (services int, err error) {
	call, err := value[int64](ctx, o.tx, `select nextval('rerun_call')`)
	if err != nil {
		return 0, err
	}
	ids, generations := make([]int64, len(jobs)), make([]int, len(jobs))
	for i, j := range jobs {
		ids[i], generations[i] = j.ID, j.Generation
		if j.Build == nil { // a build's result is its archive, and its generation is part of its key
			if generations[i], err = laterGeneration(ctx, o.tx, j.Key); err != nil {
				return 0, err
			}
		}
		o.wrote(j)
	}
	if err := rerunJobs(ctx, o.tx, askedAgain{call, o.who, o.options.again()}, ids, generations); err != nil {
		return 0, err
	}
	return o.rerunServices(ctx, call)
}

// askedAgain says by which call jobs are asked for again, by whom, and how many more times
// after they have ended.
type askedAgain struct {
	call int64
	who  string
	more int
}

func rerunJobs(ctx context.Context, tx pgx.Tx, asked askedAgain, ids []int64, generations []int) error {
	if _, err := tx.Exec(ctx, `
		insert into node_end (node_id, rerun, asked_in, asked_at, status, message, started_at, ended_at)
		select id, rerun, asked_in, created_at, status, message, started_at, completed_at from job_queue where id = any($1)`, ids); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `
		update job_test_case set done_class = null, done_pool = null where job_id = any($1) and done_class is not null`, ids); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
		update job_queue j set rerun = j.rerun + 1, asked_in = @call, asked_by = @who, again = @more, generation = t.generation, status = 'queued', message = '', held = '', holds = '[]',
			dispatch = gen_random_uuid(), created_at = now(), handed_out_at = null, handed_out_to = null, started_at = null, completed_at = null,
			moved_from = null, moved_at = null, affinity_until = null
		from unnest(@ids::bigint[], @generations::integer[]) as t (id, generation) where j.id = t.id`,
		pgx.NamedArgs{"call": asked.call, "who": asked.who, "more": asked.more, "ids": ids, "generations": generations})
	return err
}

// nextTime asks once more for a locked job that has just ended, if it was asked for several
// times.
func nextTime(ctx context.Context, tx pgx.Tx, job bench.Job, more int) error {
	call, err := value[int64](ctx, tx, `select nextval('rerun_call')`)
	if err != nil {
		return err
	}
	generation := job.Generation
	if job.Build == nil {
		if generation, err = laterGeneration(ctx, tx, job.Key); err != nil {
			return err
		}
	}
	return rerunJobs(ctx, tx, askedAgain{call, job.AskedBy, more - 1}, []int64{job.ID}, []int{generation})
}

// rerunServices asks again for the chosen nodes that no machine runs.
func (o reopening) rerunServices(ctx context.Context, call int64) (int, error) {
	ids, err := column[int64](ctx, o.tx, `
		select id from service_node where request_id = $1 and key = any($2) and not superseded and status <> 'waiting' order by id for update`, o.request.ID, o.only())
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	if _, err := o.tx.Exec(ctx, `
		insert into node_end (node_id, rerun, asked_in, asked_at, status, message, ended_at)
		select id, rerun, asked_in, created_at, status, message, ended_at from service_node where id = any($1)`, ids); err != nil {
		return 0, err
	}
	_, err = o.tx.Exec(ctx, `
		update service_node set rerun = rerun + 1, asked_in = $2, status = 'waiting', message = '', created_at = now(), ended_at = null, ended_by = '' where id = any($1)`, ids, call)
	return len(ids), err
}
