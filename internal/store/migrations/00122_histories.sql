-- Histories of long projects are read in time.

-- +goose Up

-- Confirmed changes are few of all rows that were compared, and failed jobs few of all jobs.
create index comparison_verdict_changed on comparison_verdict (comparison_id) where verdict = 'changed';
create index job_queue_failed on job_queue (artifact_id) where status = 'failure';

-- Changes with each change of the strips of a project: what was made of them before is out
-- of date. Only one transaction at a time packs results of a project, so none waits here.
create table packed_version (
    project text primary key references project (name) on delete cascade,
    version bigint not null
);

-- +goose StatementBegin
create function count_packed_version() returns trigger language plpgsql as $$
begin
    insert into packed_version (project, version)
    select distinct tc.project, 1 from changed s join pstat_series se on se.id = s.series_id join test_case tc on tc.id = se.test_case_id
    on conflict (project) do update set version = packed_version.version + 1;
    return null;
end $$;
-- +goose StatementEnd
create trigger version_insert after insert on strip referencing new table as changed for each statement execute function count_packed_version();
create trigger version_update after update on strip referencing new table as changed for each statement execute function count_packed_version();
create trigger version_delete after delete on strip referencing old table as changed for each statement execute function count_packed_version();
