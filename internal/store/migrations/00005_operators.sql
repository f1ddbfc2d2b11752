-- What operators do: an audit of it, requests that are opened again, results that
-- no longer count, queues that are paused.

-- +goose Up

-- Who did what, why and when. Entries stay when what they are about is purged.
create table audit (
    id              bigint generated always as identity primary key,
    at              timestamptz not null default now(),
    who             text not null,
    action          text not null,        -- the command, for example "request cancel"
    project         text not null,        -- empty: it is about several
    subject         text not null,        -- what the command named: a request's ID, a job's key, an artifact
    reason          text not null default '',
    idempotency_key text,
    detail          jsonb not null default '{}',  -- what was asked for besides
    result          jsonb not null default '{}'   -- what it did: the answer to a repetition
);
create unique index audit_idempotency on audit (who, idempotency_key) where idempotency_key is not null;
create index audit_by_project on audit (project, id desc);

alter table benchmark_request add column reopened_at timestamptz; -- when it was last opened again after its end

-- Jobs of a purged artifact are gone, but their workflow IDs were used: later ones
-- begin with another generation.
alter table artifact add column first_generation integer not null default 0;

-- A job that was replaced by one of a later generation no longer counts for the
-- request; the link stays as a record.
alter table request_job add column superseded boolean not null default false;

-- An invalid result stays, but counts nowhere; its test case may be measured again.
alter table test_result
    add column invalid_at     timestamptz,
    add column invalid_reason text not null default '',
    add column invalid_audit  bigint references audit (id);
alter table test_result
    drop constraint test_result_artifact_id_test_case_id_size_class_hardware_id_key;
create unique index test_result_valid on test_result (artifact_id, test_case_id, size_class, hardware_id, co_located, generation)
    where invalid_at is null;

create or replace view latest_result as
select distinct on (artifact_id, test_case_id, size_class, hardware_id, co_located)
    id, artifact_id, test_case_id, size_class, hardware_id, co_located, generation, run_id, status, message
from test_result
where invalid_at is null
order by artifact_id, test_case_id, size_class, hardware_id, co_located, generation desc;

create or replace view job_test_case_state as
select jt.job_id, jt.test_case_id, jt.place, exists (
    select from test_result r
    where r.artifact_id = j.artifact_id and r.test_case_id = jt.test_case_id
        and r.size_class = j.size_class and r.generation = j.generation and r.invalid_at is null
        and (exists (select from job_run own where own.job_id = j.id and own.hardware_id = r.hardware_id)
            or exists (select from job_run its where its.id = r.run_id and its.pool = j.pool))
) as done
from job_test_case jt join job_queue j on j.id = jt.job_id;

-- A project whose queue is paused admits nothing and hands nothing out.
create table queue_pause (
    project   text primary key references project (name),
    paused_by text not null,
    paused_at timestamptz not null default now(),
    reason    text not null
);

-- +goose Down
drop table queue_pause;

create or replace view job_test_case_state as
select jt.job_id, jt.test_case_id, jt.place, exists (
    select from test_result r
    where r.artifact_id = j.artifact_id and r.test_case_id = jt.test_case_id
        and r.size_class = j.size_class and r.generation = j.generation
        and (exists (select from job_run own where own.job_id = j.id and own.hardware_id = r.hardware_id)
            or exists (select from job_run its where its.id = r.run_id and its.pool = j.pool))
) as done
from job_test_case jt join job_queue j on j.id = jt.job_id;

create or replace view latest_result as
select distinct on (artifact_id, test_case_id, size_class, hardware_id, co_located)
    id, artifact_id, test_case_id, size_class, hardware_id, co_located, generation, run_id, status, message
from test_result
order by artifact_id, test_case_id, size_class, hardware_id, co_located, generation desc;

-- What was invalid would count again.
delete from test_result where invalid_at is not null;
drop index test_result_valid;
alter table test_result drop column invalid_at, drop column invalid_reason, drop column invalid_audit;
alter table test_result add constraint test_result_artifact_id_test_case_id_size_class_hardware_id_key
    unique (artifact_id, test_case_id, size_class, hardware_id, co_located, generation);
alter table artifact drop column first_generation;
alter table request_job drop column superseded;
alter table benchmark_request drop column reopened_at;
drop table audit;
