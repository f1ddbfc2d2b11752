-- Disturbed measurements, segments of series, and collectors that are set aside.

-- +goose Up

-- Why an iteration is disturbed, as "cause: size; …" with the main cause first; '': it is
-- not. In turns, both collections of a pair, which have the same iteration, carry a mark.
alter table collection add column disturbed text not null default '';

-- A session is the result of one run for one test case of one artifact.
alter table test_result
    add column disturbed integer not null default 0,             -- number of disturbed collections
    add column disturbed_by text not null default '',            -- their most frequent cause
    add column disturbed_session boolean not null default false; -- too many of them (bench.SessionDisturbed): no model and no verdict uses it

-- Settings of the machine that begin a new segment of every series: kernel, governor,
-- microcode, boot options, turbo, SMT (bench.Segment). An empty or missing part is not
-- known.
alter table job_run add column segment text not null generated always as (rtrim(
    coalesce(facts ->> 'kernel', '') || '|' || coalesce(facts ->> 'governor', '') || '|' || coalesce(facts ->> 'microcode', '') || '|' ||
    coalesce(facts ->> 'boot_options', '') || '|' || coalesce(facts ->> 'turbo', '') || '|' || coalesce(facts ->> 'smt', ''), '|')) stored;

alter table collector_config
    add column disturbed_by text not null default '', -- why its last runs are disturbed; '': they are not
    add column set_aside_at timestamptz,              -- since when it takes no jobs for that reason; it is then not active
    add column quiet_from timestamptz,                -- while set aside: since when it reports a quiet machine
    add column judged_from timestamptz;               -- runs that began earlier count no longer
