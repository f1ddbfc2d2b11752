-- Requests whose build failed are opened again when it succeeds later.

-- +goose Up

create index job_queue_built on job_queue (completed_at) where kind = 'build' and status = 'success';
