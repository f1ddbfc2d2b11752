-- What is kept for how long, and which programs a schema suits.

-- +goose Up

-- The oldest program that works with this schema, by the number of its last migration. A
-- migration that takes away what earlier programs use raises it, and those that still run
-- end.
create table schema_compatibility (
    only_row       boolean primary key default true check (only_row),
    oldest_program bigint not null
);
insert into schema_compatibility (oldest_program) values (100);

-- Retention by kind, as the orchestrator that removed last was configured, and what has
-- been removed.
create table retention (
    kind          text primary key,           -- bench.RetentionKind
    keep_seconds  bigint not null,            -- 0: for ever
    projects      jsonb not null default '{}', -- seconds by project, where they differ
    removed       bigint not null default 0,  -- rows so far, without those that belong to them
    removed_bytes bigint not null default 0,  -- of their rows so far, without indexes
    last_pass_at  timestamptz not null default now()
);

-- When log, tails and progress of a run were removed; null: they are kept.
alter table job_run add column output_removed_at timestamptz;
create index job_run_with_output on job_run (finished_at) where finished_at is not null and output_removed_at is null;

-- What has ended, the oldest first.
create index benchmark_request_ended on benchmark_request (type, completed_at) where status = 'completed';
create index artifact_notice_old on artifact_notice (last_at);

-- Rows that refer to one that is removed are found by these.
create index job_queue_by_suite on job_queue (suite_hash) where suite_hash is not null;
create index job_queue_by_handed_out_to on job_queue (handed_out_to) where handed_out_to is not null;
create index job_test_case_by_artifact on job_test_case (artifact_id);
create index test_result_by_artifact on test_result (artifact_id);
create index test_result_by_audit on test_result (invalid_audit) where invalid_audit is not null;
create index comparison_by_request on comparison (request_id);
create index benchmark_request_by_tag on benchmark_request (project, tag) where tag is not null;
create index benchmark_request_by_parent on benchmark_request (project, parent) where parent is not null;
create index benchmark_request_by_baseline on benchmark_request (project, baseline) where baseline is not null;
create index benchmark_request_by_versus on benchmark_request (project, versus) where versus is not null;
create index admission_by_request on admission (request_id);
