-- What estimates of durations are made from.

-- +goose Up

-- Which jobs are alike whatever their artifact, without reading their test cases
-- each time: a page that shows estimates is asked for every second.
alter table job_queue
    add column cases_digest text generated always as (md5(test_cases::text || iterations::text || coalesce(command::text, ''))) stored,
    add column case_count integer generated always as (jsonb_array_length(test_cases)) stored;
create index job_queue_history on job_queue (project, completed_at desc) where status = 'success';
create index job_queue_open on job_queue (project) where status in ('queued', 'handed_out', 'in_progress');
create index benchmark_request_expanded on benchmark_request (project, expanded_at desc) where expanded_at is not null and type <> 'adhoc';

-- +goose Down
drop index benchmark_request_expanded, job_queue_open, job_queue_history;
alter table job_queue drop column case_count, drop column cases_digest;
