-- The secret of a job's dispatch, which the fence demands.

-- +goose Up

-- Drawn anew whenever the job is dispatched again. A job that was dispatched before has no
-- task that carries its secret: the fence refuses that task, and its workflow dispatches
-- the job again.
alter table job_queue add column dispatch uuid not null default gen_random_uuid();

-- The dispatch that began the run; null: before there were any.
alter table job_run add column dispatch uuid;
