-- What counts for the limit of jobs that may wait, and who takes commands.

-- +goose Up

-- Requests whose jobs are still to be written: each counts as one that waits.
create index benchmark_request_unexpanded on benchmark_request (submitter) where status <> 'completed' and expanded_at is null;

-- Commands that anyone of their size class may run: in which task queues there are
-- any, without reading them.
create index job_queue_unconstrained on job_queue (task_queue, request_created)
    where kind = 'command' and constraints is null and status in ('queued', 'handed_out', 'in_progress');

-- +goose Down
drop index job_queue_unconstrained, benchmark_request_unexpanded;
