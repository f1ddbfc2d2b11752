package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/plan"
)

// Retries of a request's commands, of which there may be thousands. Unlike other jobs, each
// command has one test case and its own artifact, and only its request waits for it.

// lacks reports whether a command that has ended runs again.
func (o reopening) lacks(j linkedJob) bool {
	switch {
	case j.Superseded:
		return false // its successor counts instead
	case o.again != nil:
		return true // it was chosen
	case !o.options.Remeasure:
		return j.Done < len(j.TestCases)
	}
	return j.Tag == o.request.Tag && (len(o.options.Benchmarks) == 0 ||
		slices.ContainsFunc(j.TestCases, func(tc bench.TestCase) bool { return slices.Contains(o.options.Benchmarks, tc.Benchmark) }))
}

// replaceCommands replaces commands by those of the next generation, many per statement,
// each in the queue of the former one.
func (o reopening) replaceCommands(ctx context.Context, former []bench.Job) error {
	placed := make(map[string]string) // former task queue to present one
	for some := range slices.Chunk(former, commandsAtOnce) {
		ids, keys, taskQueues := make([]int64, len(some)), make([]string, len(some)), make([]string, len(some))
		for i, j := range some {
			if placed[j.TaskQueue] == "" {
				at, err := withSet(ctx, o.tx, bench.PlannedJob{Job: j})
				if err != nil {
					return err
				}
				o.sets.add(at.At())
				placed[j.TaskQueue] = at.TaskQueue
			}
			ids[i], keys[i], taskQueues[i] = j.ID, string(plan.Later(j, o.request.ID, j.Generation+1).Key), placed[j.TaskQueue]
		}
		tag, err := o.tx.Exec(ctx, `
			with line as (
				select * from unnest(@ids::bigint[], @keys::text[], @task_queues::text[]) as t (former, key, task_queue)
			), own as (
				insert into artifact (project, tag) select @project, key from line returning id, tag
			), job as (
				insert into job_queue (project, key, tag, artifact_id, kind, target, test_cases, iterations, command, size_class, pool, task_queue,
					generation, queue, weight, priority, status, request_created, submitter, branch, constraints, shape, min_class, place, name, asked_by, again)
				select f.project, l.key, f.tag, own.id, f.kind, f.target, f.test_cases, f.iterations, f.command, f.size_class, f.pool, l.task_queue,
					f.generation + 1, f.queue, f.weight, f.priority, 'queued', f.request_created, f.submitter, f.branch, f.constraints, f.shape, f.min_class, f.place, f.name, @who, @again
				from line l join job_queue f on f.id = l.former join own on own.tag = l.key order by f.id
				returning id, key, artifact_id
			), next as (
				select l.former, j.id, j.artifact_id from line l join job j on j.key = l.key
			), links as (
				insert into request_job (request_id, job_id, stage, optional)
				select @request, n.id, w.stage, w.optional from next n join request_job w on w.job_id = n.former and w.request_id = @request
			), old as (
				update request_job w set superseded = true from line l where w.job_id = l.former and w.request_id = @request
			)
			insert into job_test_case (job_id, artifact_id, test_case_id, place)
			select n.id, n.artifact_id, t.test_case_id, t.place from next n join job_test_case t on t.job_id = n.former`,
			pgx.NamedArgs{"ids": ids, "keys": keys, "task_queues": taskQueues, "project": o.request.Project, "request": o.request.ID, "who": o.who, "again": o.options.again()})
		if err != nil {
			return err
		}
		if tag.RowsAffected() != int64(len(some)) {
			return fmt.Errorf("%d of %d jobs were written", tag.RowsAffected(), len(some))
		}
		for _, j := range some {
			o.wrote(j)
		}
		if o.request.Template == nil {
			continue // a batch has no graph
		}
		type place struct{ Written, Former int64 }
		places, err := all[place](ctx, o.tx, `
			select j.id as written, t.former from unnest($1::text[], $2::bigint[]) as t (key, former) join job_queue j on j.key = t.key`, keys, ids)
		if err != nil {
			return err
		}
		for _, p := range places {
			o.replaced[p.Written] = p.Former
		}
	}
	return nil
}
