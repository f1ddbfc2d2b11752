-- Retries with a changed suite, and pauses because of a suite.

-- +goose Up

-- A superseded job that no other replaces: the test cases that it lacks are planned anew,
-- with the project's present suite, or are not part of that any more.
alter table request_job add column dropped boolean not null default false;

-- The suite because of which a project was paused; null: a person paused it.
alter table queue_pause add column suite_hash text references suite_bundle (hash);

-- The last requests of a project whose jobs have ended.
create index benchmark_request_done on benchmark_request (project, jobs_done_at desc)
    where jobs_done_at is not null and expanded_at is not null and type <> 'adhoc';
