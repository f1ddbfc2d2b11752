-- Canaries: an artifact measured in turns with itself, on one collector.

-- +goose Up

-- The measurements are ordinary results in turns of its request's jobs: what is known of a
-- collector's noise can be computed again from them.
create table canary (
    id         bigint generated always as identity primary key,
    collector  text not null,             -- its name; a canary stays when the collector is removed
    slot       timestamptz not null,      -- begin of the day (UTC) that it is for; of the hour, while the collector is set aside
    request_id text references benchmark_request (id) on delete set null, -- that measures it; null: purged
    outcome    text not null default '' check (outcome in ('', 'passed', 'changed', 'disturbed', 'unmeasured')), -- bench.CanaryOutcome
    message    text not null default '',
    created_at timestamptz not null default now(),
    ended_at   timestamptz,               -- when its outcome was recorded
    unique (collector, slot),
    constraint canary_ended_check check ((outcome = '') = (ended_at is null))
);
create unique index canary_open on canary (collector) where outcome = '';
create unique index canary_of_request on canary (request_id) where request_id is not null;
create index canary_by_collector on canary (collector, id desc);

-- Whether the collector waits for a canary to pass. If it was set aside, only that, or a
-- person, lets it take jobs again.
alter table collector_config add column canary_failed boolean not null default false;
