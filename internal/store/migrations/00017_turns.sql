-- What was cancelled while it waited in Temporal leaves no debt: Temporal has charged
-- its queue for it, so what the queue hands out next goes by another fairness key.

-- +goose Up

alter table job_queue add column turn integer not null default 0; -- numbers the fairness keys of its queue in its task queue
create index job_queue_wasted on job_queue (task_queue, queue)
    where status = 'cancelled' and handed_out_at is not null and started_at is null;

-- +goose Down

drop index job_queue_wasted;
alter table job_queue drop column turn;
