package storetest

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// Task is the content of a job's task, besides the job's key.
type Task struct {
	Dispatch  bench.Dispatch
	TaskQueue string
}

// Dispatched dispatches the job of a run, as its workflow does for each attempt, and
// returns the task that reaches the collector: from where the job waits or, if it has
// moved, from where it was when only that is served by the collector. The task of a run
// that has begun is the one that began it. Without such a job, the task is empty.
func Dispatched(ctx context.Context, url string, run bench.RunID, collector string) (task Task, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return Task{}, fmt.Errorf("connecting to Postgres: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	if _, err := conn.Exec(ctx, `
		update job_queue set dispatch = gen_random_uuid() where key = $1 and not exists (select from job_run where id = $2)`, run.Job(), run); err != nil {
		return Task{}, err
	}
	var secret string
	err = conn.QueryRow(ctx, `
		select coalesce((select dispatch from job_run where id = $2), j.dispatch)::text, case when moved_from is not null and not exists (
				select from collector_config c where c.name = $3 and ('bench/' || c.target || '/' || c.size_class || '/' || c.pool = j.task_queue
					or exists (select from collector_set s where s.task_queue = j.task_queue and c.name = any(s.collectors))))
			then moved_from else task_queue end
		from job_queue j where key = $1`, run.Job(), run, collector).Scan(&secret, &task.TaskQueue)
	if errors.Is(err, pgx.ErrNoRows) {
		return Task{}, nil
	}
	task.Dispatch = bench.Dispatch(secret)
	return task, err
}
