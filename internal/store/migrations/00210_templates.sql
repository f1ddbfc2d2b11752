-- Graphs that are made from templates, with nodes that need no machine.

-- +goose Up

alter table benchmark_request add column template jsonb; -- bench.TemplateCall; null: it runs none

alter table benchmark_request drop constraint benchmark_request_tag_check;
alter table benchmark_request add constraint benchmark_request_tag_check
    check (command is not null or deferred or template is not null or tag is not null or status in ('waiting_for_artifacts', 'completed'));

alter table graph_set add column definition text; -- graph.Graph in its canonical form; null: its graphs are made of stages

alter table job_queue add column asked_by text not null default ''; -- account that asked for it in place of a former one; '': nobody did

alter table graph drop constraint graph_reason_check;
alter table graph add constraint graph_reason_check
    check (reason in ('build', 'parent', 'own', 'verify', 'template', 'retry', 'remeasure', 'retrigger'));

-- Nodes that the service carries out itself, and builds that were stored before. Their IDs are of
-- the same sequence as those of jobs, so that nodes and edges of graphs name both alike.
create table service_node (
    id         bigint primary key,
    request_id text not null references benchmark_request (id) on delete cascade,
    key        text not null unique, -- bench.JobKey
    name       text not null,
    definition text not null,        -- graph.Job in its canonical form
    status     text not null check (status in ('waiting', 'success', 'failure', 'skipped', 'cancelled')),
    message    text not null default '',
    superseded boolean not null default false, -- another one has its place
    created_at timestamptz not null default now(),
    ended_at   timestamptz,
    ended_by   text not null default '', -- who answered a sign-off
    constraint service_node_ended check ((status = 'waiting') = (ended_at is null))
);
create index service_node_by_request on service_node (request_id);

-- What a node of a template says beside its job.
alter table graph_node add column name text not null default '';
alter table graph_node add column limit_seconds integer not null default 0; -- graph.Node.LimitSeconds
alter table graph_node add column latest boolean not null default false;
alter table graph_node add column skipped jsonb; -- graph.Reason; null: it was not skipped
