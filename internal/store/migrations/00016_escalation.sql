-- Size classes in the service: what a run used, what it has taught, test cases that
-- were done before the rest of their job went to a larger class, and probes, whose
-- results count nowhere but for their own job.

-- +goose Up

alter table job_test_case
    add column done_class integer, -- where it was done before the rest of its job escalated; null: it goes where the job goes
    add column done_pool  text,
    add check ((done_class is null) = (done_pool is null));

alter table job_run
    add column measured_seconds double precision not null default 0, -- 0: not known
    add column taught_at        timestamptz;                        -- when the statistics of its shape took notice of its end

alter table job_queue add column min_class integer not null default 0; -- the smallest size class that will do

-- The class where jobs of the shape go, as it was learned; null: nothing is known.
alter table size_statistics add column best integer;

-- A probe's result keeps no other from being accepted.
drop index test_result_valid;
create unique index test_result_valid on test_result (artifact_id, test_case_id, size_class, hardware_id, co_located, generation, probe)
    where invalid_at is null;
-- Where the series of a test case lives: its newest result.
create index test_result_series on test_result (test_case_id, id desc) where status = 'ok' and invalid_at is null and not probe;

create or replace view latest_result as
select distinct on (artifact_id, test_case_id, size_class, hardware_id, co_located)
    id, artifact_id, test_case_id, size_class, hardware_id, co_located, generation, run_id, status, message
from test_result
where invalid_at is null and not probe
order by artifact_id, test_case_id, size_class, hardware_id, co_located, generation desc;

create or replace view job_test_case_state as
select jt.job_id, jt.test_case_id, jt.place, exists (
    select from test_result r
    where r.artifact_id = jt.artifact_id and r.test_case_id = jt.test_case_id
        and r.size_class = coalesce(jt.done_class, j.size_class) and r.generation = j.generation and r.invalid_at is null
        and (jt.done_class is not null
            or exists (select from job_run own where own.job_id = j.id and own.hardware_id = r.hardware_id)
            or exists (select from job_run its where its.id = r.run_id and its.pool = j.pool))
) as done, jt.artifact_id, jt.done_class, jt.done_pool
from job_test_case jt join job_queue j on j.id = jt.job_id;

-- +goose Down

create or replace view latest_result as
select distinct on (artifact_id, test_case_id, size_class, hardware_id, co_located)
    id, artifact_id, test_case_id, size_class, hardware_id, co_located, generation, run_id, status, message
from test_result
where invalid_at is null
order by artifact_id, test_case_id, size_class, hardware_id, co_located, generation desc;
drop index test_result_series, test_result_valid;
-- Where there was nothing but a probe, it counts from now on.
update test_result p set invalid_at = now(), invalid_reason = 'a probe' where p.probe and p.invalid_at is null and exists (
    select from test_result r where r.artifact_id = p.artifact_id and r.test_case_id = p.test_case_id and r.size_class = p.size_class
        and r.hardware_id = p.hardware_id and r.co_located = p.co_located and r.generation = p.generation and r.invalid_at is null and not r.probe);
create unique index test_result_valid on test_result (artifact_id, test_case_id, size_class, hardware_id, co_located, generation)
    where invalid_at is null;
alter table size_statistics drop column best;
alter table job_queue drop column min_class;
drop view job_test_case_state;
alter table job_run drop column taught_at, drop column measured_seconds;
alter table job_test_case drop column done_pool, drop column done_class;
create view job_test_case_state as
select jt.job_id, jt.test_case_id, jt.place, exists (
    select from test_result r
    where r.artifact_id = jt.artifact_id and r.test_case_id = jt.test_case_id
        and r.size_class = j.size_class and r.generation = j.generation and r.invalid_at is null
        and (exists (select from job_run own where own.job_id = j.id and own.hardware_id = r.hardware_id)
            or exists (select from job_run its where its.id = r.run_id and its.pool = j.pool))
) as done, jt.artifact_id
from job_test_case jt join job_queue j on j.id = jt.job_id;
