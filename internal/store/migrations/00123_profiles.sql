-- What machines and jobs did while they ran, as their agents have sampled it.

-- +goose Up

-- One row per attempt at a run that has sent something. There is no foreign key: it would lock the run,
-- and results, which wait for that lock, must not wait for samples.
create table profile_attempt (
    id       bigint generated always as identity primary key,
    run_id   text not null,                      -- job_run.id
    name     text not null,                      -- as its agent calls it
    project  text not null,                      -- that of the run
    host     text not null,
    number   integer not null,                   -- within the run, from 1
    part     integer not null default 0,         -- of its last upload; uploads count within the run, from 1
    began_at timestamptz not null default now(), -- its samples are in the partition of this time
    dropped  bigint not null default 0,          -- values that were measured and lost
    bytes    bigint not null default 0,          -- of its samples
    absent   jsonb not null default '[]',        -- profiler.Absence
    series   jsonb not null default '[]',        -- in the order of their arrival, with what they have so far
    summary  jsonb,                              -- profiler.Summary; null: more may come, or it was cut off
    unique (run_id, name)
);
create index profile_attempt_old on profile_attempt (began_at);

-- One row per batch of a series: some hundred samples.
create table profile_batch (
    began_at timestamptz not null, -- of its attempt
    attempt  bigint not null,      -- profile_attempt.id
    part     integer not null,     -- the upload that brought it
    series   smallint not null,    -- place in profile_attempt.series, from 0
    sequence smallint not null,
    samples  bytea not null        -- see internal/profiler/columns
) partition by range (began_at);
-- No primary key: pg_dump --clean would drop the keys of the partitions by themselves, which Postgres refuses.
create unique index profile_batch_once on profile_batch (began_at, attempt, series, sequence);
alter table profile_batch alter column samples set storage external; -- packed already

-- Makes the partitions that are missing from this week on. It blocks no reader or writer.
-- +goose StatementBegin
create function make_profile_partitions(ahead interval) returns void language plpgsql as $$
declare
    week timestamp := date_trunc('week', now() at time zone 'utc');
    name text;
begin
    perform pg_advisory_xact_lock(hashtextextended('benchloom partitions of samples', 0));
    while week <= (now() + ahead) at time zone 'utc' loop
        name := 'profile_batch_' || to_char(week, 'YYYYMMDD');
        if to_regclass(name) is null then
            execute format('create table %I (like profile_batch including storage)', name);
            execute format('alter table profile_batch attach partition %I for values from (%L) to (%L)',
                name, week at time zone 'utc', (week + interval '7 days') at time zone 'utc');
        end if;
        week := week + interval '7 days';
    end loop;
end $$;
-- +goose StatementEnd
select make_profile_partitions(interval '8 weeks');

-- Samples go with their run.
-- +goose StatementBegin
create function forget_profiles() returns trigger language plpgsql as $$
declare
    forgotten record;
begin
    for forgotten in delete from profile_attempt a using removed r where a.run_id = r.id returning a.began_at, a.id loop
        delete from profile_batch b where b.began_at = forgotten.began_at and b.attempt = forgotten.id;
    end loop;
    return null;
end $$;
-- +goose StatementEnd
create trigger forget_profiles after delete on job_run referencing old table as removed
    for each statement execute function forget_profiles();
