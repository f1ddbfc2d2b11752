-- What pages ask of a request with very many jobs, each answered from a few rows.

-- +goose Up

-- Its waiting jobs in hand-out order, and when the first of its jobs began.
create index job_queue_batch_waiting on job_queue (submitted_with, (started_at is null), request_created, id)
    where submitted_with is not null and status = 'queued';
create index job_queue_batch_begun on job_queue (submitted_with, started_at) where submitted_with is not null and started_at is not null;
