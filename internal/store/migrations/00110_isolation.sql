-- Isolation of benchmarks begins a new segment of every series.

-- +goose Up

-- Settings of the machine that begin a new segment of every series: kernel, governor,
-- microcode, boot options, turbo, SMT, isolation (bench.Segment). An empty or missing part
-- is not known. Runs of collectors that do not tell their isolation had none.
alter table job_run drop column segment;
alter table job_run add column segment text not null generated always as (rtrim(
    coalesce(facts ->> 'kernel', '') || '|' || coalesce(facts ->> 'governor', '') || '|' || coalesce(facts ->> 'microcode', '') || '|' ||
    coalesce(facts ->> 'boot_options', '') || '|' || coalesce(facts ->> 'turbo', '') || '|' || coalesce(facts ->> 'smt', '') || '|' ||
    case when facts ? 'kernel' then coalesce(facts ->> 'isolation', 'none') else '' end, '|')) stored;
