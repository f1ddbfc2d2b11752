-- Parents, try builds, backfill: what a request waits for, and in which stage of
-- it a job runs.

-- +goose Up

alter table benchmark_request
    add column waits_for   text,                     -- tag whose jobs must be done before it may be admitted
    add column parent_note text not null default ''; -- why there is no parent to wait for, or none to compare with
create index benchmark_request_children on benchmark_request (project, waits_for) where status <> 'completed';
create index benchmark_request_by_pr on benchmark_request (project, pr) where type = 'try' and status <> 'completed';

alter table request_job
    add column stage    text not null default 'own' check (stage in ('build', 'parent', 'own')),
    add column optional boolean not null default false; -- blocks nothing: neither the request nor its children
update request_job set stage = 'parent' where not own;
alter table request_job drop column own;
alter table request_job alter column stage drop default;

-- Notifications that artifacts are ready, each once: CI systems repeat them.
create table artifact_notice (
    request_id text not null references benchmark_request (id) on delete cascade,
    tag        text not null,
    parent     text not null default '',
    deliveries integer not null default 1,
    first_at   timestamptz not null default now(),
    last_at    timestamptz not null default now(),
    primary key (request_id, tag, parent)
);

-- What the queue looked like each time a request was admitted, in the format of
-- 'benchloom queue simulate'; the newest of each project are kept.
create table admission (
    id         bigint generated always as identity primary key,
    project    text not null references project (name),
    request_id text not null references benchmark_request (id) on delete cascade,
    policy     text not null,
    state      jsonb not null,
    at         timestamptz not null default now()
);
create index admission_by_project on admission (project, id desc);

-- +goose Down
drop table admission, artifact_notice;
alter table request_job add column own boolean;
update request_job set own = stage = 'own';
alter table request_job alter column own set not null, drop column stage, drop column optional;
alter table benchmark_request drop column waits_for, drop column parent_note;
