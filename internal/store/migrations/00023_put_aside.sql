-- What was put aside is found by what it waits for, not by looking at each job.

-- +goose Up

create index job_queue_paused on job_queue (project, id) where status = 'queued' and held = 'pause';
create index job_queue_without_turn on job_queue (id) where status = 'queued' and held = 'turn';
-- Jobs that wait in the queue of another account than theirs; hardly any.
create index job_queue_foreign on job_queue (task_queue, queue)
    where status = 'queued' and held = '' and queue like 'user:%' and queue <> 'user:' || submitter;

-- +goose Down

drop index job_queue_foreign, job_queue_without_turn, job_queue_paused;
