-- What counts for the limit of jobs that may wait.

-- +goose Up

-- Requests whose jobs are still to be written: each counts as one that waits.
create index benchmark_request_unexpanded on benchmark_request (submitter) where status <> 'completed' and expanded_at is null;

-- +goose Down
drop index benchmark_request_unexpanded;
