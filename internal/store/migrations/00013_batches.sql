-- Batches: thousands of commands in one request.

-- +goose Up

alter table benchmark_request
    add column batch  integer not null default 0, -- how many jobs were submitted with it; 0: it is no batch
    add column digest text not null default '';   -- of what a batch asks for: the same key means the same jobs

alter table job_queue
    add column place integer not null default 0,  -- in its batch, from 1; 0: it belongs to none
    add column name  text not null default '',    -- as its submitter calls it
    -- The request that it was written with, whose own it is; null: it is found by request_job alone.
    add column submitted_with text references benchmark_request (id) on delete set null;
-- Counts a batch by status, and finds those that ended last, without a look at the rest.
create index job_queue_by_batch on job_queue (submitted_with, status, completed_at, id) where submitted_with is not null;

-- What is open, in the order in which it is foreseen, however much has ended.
create index job_queue_foreseen on job_queue (request_created, id) where status in ('queued', 'handed_out', 'in_progress');

-- +goose Down
drop index job_queue_foreseen, job_queue_by_batch;
alter table job_queue drop column submitted_with, drop column name, drop column place;
delete from benchmark_request where batch > 0;
alter table benchmark_request drop column digest, drop column batch;
