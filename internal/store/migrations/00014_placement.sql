-- Jobs with constraints are looked at by themselves: which sets of collectors have
-- any, and whether the collectors that meet them have changed.

-- +goose Up
create index job_queue_constrained on job_queue (task_queue, request_created)
    where constraints is not null and status in ('queued', 'handed_out', 'in_progress');

-- +goose Down
drop index job_queue_constrained;
