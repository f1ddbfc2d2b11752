-- Since when a job's workflow knows of a run.

-- +goose Up

alter table job_run add column announced_at timestamptz; -- null: it does not
-- Workflows were told of runs at their start.
update job_run set announced_at = started_at where outcome = '';
