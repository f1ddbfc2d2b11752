-- Hand-out reads as many rows as it hands out, however much waits.

-- +goose Up

-- A job that was looked at and may not go yet is put aside, so that no hand-out
-- looks at it again: '' when it is not; turn: no request that waits for it has its
-- turn; pause: its project's queue is paused; cap: its submitter has as much under
-- way as the limit allows. Whatever ends the reason takes it back, and a sweep
-- finds what that missed.
alter table job_queue add column held text not null default '' check (held in ('', 'turn', 'pause', 'cap'));

-- Weights as people write them: 0.3 is to be read as 0.3.
alter table queue_config alter column weight type double precision;
alter table job_queue alter column weight type double precision;

drop index job_queue_waiting, job_queue_by_submitter;
create index job_queue_waiting on job_queue (task_queue, held, queue, (started_at is null), request_created, id) where status = 'queued';
create index job_queue_held on job_queue (held, submitter, task_queue, queue, (started_at is null), request_created, id)
    where status = 'queued' and held <> '';
-- What an account has waiting and under way.
create index job_queue_by_submitter on job_queue (submitter, status, task_queue) where status in ('queued', 'handed_out', 'in_progress');

-- +goose Down
drop index job_queue_by_submitter, job_queue_held, job_queue_waiting;
create index job_queue_waiting on job_queue (task_queue, queue, (started_at is null), request_created, id) where status = 'queued';
create index job_queue_by_submitter on job_queue (submitter, task_queue) where status in ('queued', 'handed_out', 'in_progress');
alter table job_queue alter column weight type real;
alter table queue_config alter column weight type real;
alter table job_queue drop column held;
