-- The marks of a history are found in indexes alone: its failures and changes lie scattered in large tables.
-- The commits before another one are found without sorting all.

-- +goose Up

drop index job_queue_failed;
create index job_queue_failed on job_queue (artifact_id) include (id) where status = 'failure';
drop index comparison_verdict_changed;
create index comparison_verdict_changed on comparison_verdict (metric, comparison_id) include (test_case_id, change, against_id) where verdict = 'changed';

create index benchmark_request_line on benchmark_request (project, (coalesce(commit_date, created_at)) desc, created_at desc, id)
    where type = 'master' and jobs_done_at is not null;
