-- Counts of open jobs that are read without reading the jobs: pages show them beside a
-- hundred thousand.

-- +goose Up

-- The number of open jobs with these properties is the sum over their rows. Rows are only
-- added, one for each change, so that those who change jobs never wait for each other;
-- reconciliation replaces them by their sum.
create table job_tally (
    task_queue text not null,
    queue      text not null,
    submitter  text not null,
    branch     text not null,
    batch      text not null, -- job_queue.submitted_with; '': null
    status     text not null check (status in ('queued', 'handed_out', 'in_progress')),
    jobs       integer not null -- that were added; negative: that are gone
);
create index job_tally_by_task_queue on job_tally (task_queue);
create index job_tally_by_batch on job_tally (batch) where batch <> '';

insert into job_tally
select task_queue, queue, submitter, branch, coalesce(submitted_with, ''), status, count(*) from job_queue
where status in ('queued', 'handed_out', 'in_progress') group by 1, 2, 3, 4, 5, 6;

-- +goose StatementBegin
create function tally_jobs() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then
        insert into job_tally
        select task_queue, queue, submitter, branch, coalesce(submitted_with, ''), status, count(*) from added
        where status in ('queued', 'handed_out', 'in_progress') group by 1, 2, 3, 4, 5, 6;
    elsif tg_op = 'DELETE' then
        insert into job_tally
        select task_queue, queue, submitter, branch, coalesce(submitted_with, ''), status, -count(*) from removed
        where status in ('queued', 'handed_out', 'in_progress') group by 1, 2, 3, 4, 5, 6;
    else
        insert into job_tally
        select task_queue, queue, submitter, branch, batch, status, sum(jobs) from (
            select task_queue, queue, submitter, branch, coalesce(submitted_with, '') as batch, status, 1 as jobs from added
            union all
            select task_queue, queue, submitter, branch, coalesce(submitted_with, ''), status, -1 from removed
        ) c
        where status in ('queued', 'handed_out', 'in_progress') group by 1, 2, 3, 4, 5, 6 having sum(jobs) <> 0;
    end if;
    return null;
end $$;
-- +goose StatementEnd
create trigger job_tally_insert after insert on job_queue referencing new table as added for each statement execute function tally_jobs();
create trigger job_tally_update after update on job_queue referencing old table as removed new table as added for each statement execute function tally_jobs();
create trigger job_tally_delete after delete on job_queue referencing old table as removed for each statement execute function tally_jobs();

-- Since when the oldest waiting job is ready: those that have never begun by their age, and
-- the few others.
create index job_queue_unbegun on job_queue (task_queue, queue, submitter, created_at)
    where started_at is null and status in ('queued', 'handed_out', 'in_progress');
create index job_queue_begun on job_queue (id) where started_at is not null and status in ('queued', 'handed_out', 'in_progress');

-- Jobs that nobody waits for, of which there are few: reconciliation looks for them.
create index request_job_optional on request_job (job_id, request_id) where optional;

-- Where one request has nearly all jobs, Postgres would take every other to have as many,
-- and read them all to find one.
alter table job_queue alter column submitted_with set (n_distinct = -0.1);
alter table request_job alter column request_id set (n_distinct = -0.1);
