-- What programs did while a profiler watched: one file per job of kind profile.

-- +goose Up

alter table job_queue drop constraint job_queue_kind_check;
alter table job_queue add constraint job_queue_kind_check check (kind in ('compiletime', 'runtime', 'command', 'build', 'profile'));
alter table job_queue add column profiler text not null default '';
alter table job_queue add constraint job_queue_profiler_check check ((kind = 'profile') = (profiler <> ''));

-- Goes with its run. The files are in the blob store, named by their digests; one that no row names is garbage.
create table code_profile (
    id           text primary key, -- bench.ProfileID
    project      text not null references project (name),
    request_id   text not null,    -- benchmark_request.id, to which the job was handed out
    job_id       bigint not null unique references job_queue (id) on delete cascade,
    run_id       text not null unique references job_run (id) on delete cascade,
    tag          text not null,
    benchmark    text not null,
    profile      text not null,
    scenario     text not null,
    backend      text not null,
    target       text not null,
    profiler     text not null,
    format       text not null,    -- of the raw file
    raw_digest   text not null,    -- SHA-256, in hexadecimal
    raw_size     bigint not null,  -- bytes
    digest       text not null,    -- of the common form, google/pprof's, compressed
    size         bigint not null,  -- bytes
    sample_types jsonb not null,   -- array of bench.SampleTotal
    created_at   timestamptz not null default now()
);
create index code_profile_by_project on code_profile (project, created_at desc, id desc);
create index code_profile_by_request on code_profile (request_id);
create index code_profile_by_raw on code_profile (raw_digest);
create index code_profile_by_digest on code_profile (digest);

-- A job of kind profile is done when its profile is stored.
create or replace view job_test_case_state as
select jt.job_id, jt.test_case_id, jt.place, case when j.kind = 'profile' then exists (
    select from code_profile p where p.job_id = j.id
) else exists (
    select from test_result r
    where r.artifact_id = jt.artifact_id and r.test_case_id = jt.test_case_id
        and r.size_class = coalesce(jt.done_class, j.size_class) and r.generation = j.generation and r.invalid_at is null
        and (jt.done_class is not null
            or exists (select from job_run own where own.job_id = j.id and own.hardware_id = r.hardware_id)
            or exists (select from job_run its where its.id = r.run_id and its.pool = j.pool))
) end as done, jt.artifact_id, jt.done_class, jt.done_pool
from job_test_case jt join job_queue j on j.id = jt.job_id;
