package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/plan"
)

// writtenGraph describes a graph that is written.
type writtenGraph struct {
	reason bench.GraphReason
	// jobs are the jobs for which it is written. Those of commands are in no graph.
	jobs []int64
	// replaced maps jobs to those that they replace.
	replaced map[int64]int64
}

// writeGraph adds a graph to the set of a request. Called again for the same jobs, it adds
// none. The caller holds the jobs' locks, and has linked them to the request.
func writeGraph(ctx context.Context, tx pgx.Tx, request bench.RequestID, w writtenGraph) error {
	lacking, err := value[bool](ctx, tx, `
		select exists (
			select from job_queue j where j.id = any($2) and j.kind not in ('command', 'profile')
				and not exists (select from graph g join graph_node n on n.graph_id = g.id where g.request_id = $1 and n.job_id = j.id and not n.input))`,
		request, w.jobs)
	if err != nil || !lacking {
		return err
	}
	// Locks the set: another request's retry may add a graph to it, too.
	if _, err := tx.Exec(ctx, `
		insert into graph_set as s (request_id) values ($1) on conflict (request_id) do update set created_at = s.created_at`, request); err != nil {
		return err
	}
	jobs, err := all[plan.GraphJob](ctx, tx, `
		select j.id, rj.stage, j.target, coalesce(j.tag, '') as tag, coalesce(j.versus, '') as versus, rj.superseded as replaced,
			case when j.kind = 'build' then coalesce((
				select array_agg(v.tag) from build_revision v where v.project = j.project and v.build_key = j.build ->> 'key' and v.target = j.target), array[j.tag])
				else '{}' end as builds,
			array(select t.test_case_id from job_test_case t where t.job_id = j.id) as test_cases,
			exists (select from graph g join graph_node n on n.graph_id = g.id where g.request_id = $1 and n.job_id = j.id and not n.input) as known
		from request_job rj join job_queue j on j.id = rj.job_id
		where rj.request_id = $1 and j.kind not in ('command', 'profile') order by j.id`, request)
	if err != nil {
		return err
	}
	added, err := plan.NextGraph(jobs, w.jobs)
	if err != nil || len(added.Jobs) == 0 {
		return err
	}
	id, err := newGraph(ctx, tx, request, w.reason)
	if err != nil {
		return err
	}
	return insertGraph(ctx, tx, id, added, w.replaced)
}

// newGraph adds an empty graph to the locked set of a request.
func newGraph(ctx context.Context, tx pgx.Tx, request bench.RequestID, reason bench.GraphReason) (int64, error) {
	return value[int64](ctx, tx, `
		insert into graph (request_id, project, number, reason)
		select r.id, r.project, (select coalesce(max(number), 0) + 1 from graph where request_id = $1), $2 from benchmark_request r where r.id = $1
		returning id`,
		request, reason)
}

func insertGraph(ctx context.Context, tx pgx.Tx, id int64, g plan.JobGraph, replaced map[int64]int64) error {
	replaces := make([]*int64, len(g.Jobs))
	linked := append([]int64{}, g.Inputs...)
	for i, job := range g.Jobs {
		if former, is := replaced[job]; is {
			replaces[i] = &former
			linked = append(linked, former)
		}
	}
	from, to, conditions := make([]int64, len(g.Edges)), make([]int64, len(g.Edges)), make([]string, len(g.Edges))
	for i, e := range g.Edges {
		from[i], to[i], conditions[i] = e.From, e.To, string(e.Condition)
	}
	_, err := tx.Exec(ctx, `
		with nodes as (
			insert into graph_node (graph_id, job_id, input, replaces)
			select @id::bigint, t.job, false, t.replaces from unnest(@jobs::bigint[], @replaces::bigint[]) as t (job, replaces)
			union all
			select @id::bigint, t.job, true, null::bigint from unnest(@inputs::bigint[]) as t (job)
		), edges as (
			insert into graph_edge (graph_id, from_job, to_job, condition)
			select @id::bigint, t.from_job, t.to_job, t.condition from unnest(@from::bigint[], @to::bigint[], @conditions::text[]) as t (from_job, to_job, condition)
		)
		update graph g set follows = (
			select max(o.number) from graph o join graph_node n on n.graph_id = o.id
			where o.request_id = g.request_id and o.id <> g.id and n.job_id = any(@linked) and not n.input)
		where g.id = @id`,
		pgx.NamedArgs{
			"id": id, "jobs": g.Jobs, "replaces": replaces, "inputs": append([]int64{}, g.Inputs...), "from": from, "to": to, "conditions": conditions, "linked": linked,
		})
	return err
}

// writeReplacements adds a graph to the set of each request for which replacement jobs
// were written; replaced maps them to the former jobs.
func writeReplacements(ctx context.Context, tx pgx.Tx, reason bench.GraphReason, replaced map[int64]int64) error {
	jobs := make([]int64, 0, len(replaced))
	for job := range replaced {
		jobs = append(jobs, job)
	}
	if len(jobs) == 0 {
		return nil
	}
	type row struct {
		ID       bench.RequestID
		Template bool
		Of       []int64
	}
	requests, err := all[row](ctx, tx, `
		with links as (
			select request_id, job_id from request_job where job_id = any($1) union all select request_id, id from service_node where id = any($1)
		)
		select l.request_id as id, coalesce(bool_or(s.definition is not null), false) as template, array_agg(l.job_id order by l.job_id) as of
		from links l left join graph_set s on s.request_id = l.request_id group by l.request_id order by l.request_id`, jobs)
	if err != nil {
		return err
	}
	for _, r := range requests {
		w := writtenGraph{reason: reason, jobs: r.Of, replaced: replaced}
		if r.Template {
			err = writeRepeated(ctx, tx, r.ID, w)
		} else {
			err = writeGraph(ctx, tx, r.ID, w)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
