-- Jobs, and nodes without a machine, that run again as themselves.

-- +goose Up

create sequence rerun_call; -- numbers the calls that ask for nodes again, from 1

alter table job_queue add column rerun integer not null default 0;    -- how often it was asked for again
alter table job_queue add column asked_in bigint not null default 0;  -- the call that last asked for it; 0: its creation
alter table service_node add column rerun integer not null default 0;
alter table service_node add column asked_in bigint not null default 0;

-- What became of a node before it was asked for again.
create table node_end (
    node_id    bigint not null,  -- of job_queue or service_node
    rerun      integer not null, -- as it was then
    asked_in   bigint not null,
    asked_at   timestamptz not null,
    status     text not null check (status in ('success', 'failure', 'cancelled')),
    message    text not null,
    started_at timestamptz,      -- null: no run of it began
    ended_at   timestamptz not null,
    primary key (node_id, rerun)
);

-- Each run belongs to one asking, and its results to the generation of that.
alter table job_run add column rerun integer not null default 0;
alter table job_run add column generation integer not null default 0;
alter table job_run add column asked_by text not null default ''; -- who asked for it; '': nobody did
update job_run n set generation = j.generation, asked_by = case when n.reason = 'rerun' then j.asked_by else '' end
from job_queue j where j.id = n.job_id;

-- Each asking for a job that profiles gives a profile of its own.
alter table code_profile drop constraint code_profile_job_id_key;
create index code_profile_by_job on code_profile (job_id);

create or replace view job_test_case_state as
select jt.job_id, jt.test_case_id, jt.place, case when j.kind = 'profile' then exists (
    select from code_profile p join job_run its on its.id = p.run_id where p.job_id = j.id and its.rerun = j.rerun
) else exists (
    select from test_result r
    where r.artifact_id = jt.artifact_id and r.test_case_id = jt.test_case_id
        and r.size_class = coalesce(jt.done_class, j.size_class) and r.generation = j.generation and r.invalid_at is null
        and (jt.done_class is not null
            or exists (select from job_run own where own.job_id = j.id and own.hardware_id = r.hardware_id)
            or exists (select from job_run its where its.id = r.run_id and its.pool = j.pool))
) end as done, jt.artifact_id, jt.done_class, jt.done_pool
from job_test_case jt join job_queue j on j.id = jt.job_id;

-- Former ends go with their nodes.
-- +goose StatementBegin
create function forget_ends() returns trigger language plpgsql as $$
begin
    delete from node_end where node_id in (select id from removed);
    return null;
end $$;
-- +goose StatementEnd
create trigger forget_ends_of_jobs after delete on job_queue referencing old table as removed for each statement execute function forget_ends();
create trigger forget_ends_of_services after delete on service_node referencing old table as removed for each statement execute function forget_ends();
