-- Measuring in turns: a job may measure two artifacts, iteration by iteration, in
-- the same run.

-- +goose Up

alter table benchmark_request
    add column versus text, -- tag that the artifact is measured in turns with; null: with none
    add constraint benchmark_request_versus_check check (versus is null or (type = 'adhoc' and command is null and versus <> tag));

alter table job_queue
    add column versus             text,
    add column versus_artifact_id bigint references artifact (id), -- where the results of its other side belong
    add constraint job_queue_versus_check check ((versus is null) = (versus_artifact_id is null) and versus_artifact_id <> artifact_id);
create index job_queue_by_versus on job_queue (versus_artifact_id) where versus_artifact_id is not null;

-- Such a job takes twice as long as others, and is like none of them.
alter table job_queue
    drop column cases_digest,
    drop column case_count,
    add column cases_digest text generated always as (md5(test_cases::text || iterations::text || coalesce(command::text, '')
        || case when versus is null then '' else 'in turns' end)) stored,
    add column case_count integer generated always as (jsonb_array_length(test_cases) * case when versus is null then 1 else 2 end) stored;

alter table request_job
    drop constraint request_job_stage_check,
    add constraint request_job_stage_check check (stage in ('build', 'parent', 'own', 'verify'));

-- A test case of a job counts once for each artifact that the job measures.
alter table job_test_case add column artifact_id bigint references artifact (id);
update job_test_case t set artifact_id = j.artifact_id from job_queue j where j.id = t.job_id;
alter table job_test_case
    alter column artifact_id set not null,
    drop constraint job_test_case_pkey,
    add primary key (job_id, artifact_id, test_case_id);

create or replace view job_test_case_state as
select jt.job_id, jt.test_case_id, jt.place, exists (
    select from test_result r
    where r.artifact_id = jt.artifact_id and r.test_case_id = jt.test_case_id
        and r.size_class = j.size_class and r.generation = j.generation and r.invalid_at is null
        and (exists (select from job_run own where own.job_id = j.id and own.hardware_id = r.hardware_id)
            or exists (select from job_run its where its.id = r.run_id and its.pool = j.pool))
) as done, jt.artifact_id
from job_test_case jt join job_queue j on j.id = jt.job_id;

-- +goose Down

-- Results stay: they are results of their artifacts like all others.
drop view job_test_case_state;
delete from job_test_case t using job_queue j where j.id = t.job_id and t.artifact_id <> j.artifact_id;
alter table job_test_case
    drop column artifact_id, -- and the primary key with it
    add primary key (job_id, test_case_id);
create view job_test_case_state as
select jt.job_id, jt.test_case_id, jt.place, exists (
    select from test_result r
    where r.artifact_id = j.artifact_id and r.test_case_id = jt.test_case_id
        and r.size_class = j.size_class and r.generation = j.generation and r.invalid_at is null
        and (exists (select from job_run own where own.job_id = j.id and own.hardware_id = r.hardware_id)
            or exists (select from job_run its where its.id = r.run_id and its.pool = j.pool))
) as done
from job_test_case jt join job_queue j on j.id = jt.job_id;
delete from request_job where stage = 'verify';
alter table request_job
    drop constraint request_job_stage_check,
    add constraint request_job_stage_check check (stage in ('build', 'parent', 'own'));
alter table job_queue
    drop column cases_digest,
    drop column case_count,
    add column cases_digest text generated always as (md5(test_cases::text || iterations::text || coalesce(command::text, ''))) stored,
    add column case_count integer generated always as (jsonb_array_length(test_cases)) stored;
alter table job_queue drop column versus, drop column versus_artifact_id;
alter table benchmark_request drop column versus;
