-- Graphs: which jobs of a request need which others.

-- +goose Up

-- All graphs of a request. One that measures suites has a set from its first job on; commands have none.
-- Its row is locked while a graph is added.
create table graph_set (
    request_id text primary key references benchmark_request (id) on delete cascade,
    created_at timestamptz not null default now()
);

-- Jobs that were written together, with those of earlier graphs that they need. It never changes.
create table graph (
    id         bigint generated always as identity primary key,
    request_id text not null references graph_set (request_id) on delete cascade,
    project    text not null references project (name),
    number     integer not null check (number > 0), -- in its set, ascending
    reason     text not null check (reason in ('build', 'parent', 'own', 'verify', 'retry', 'remeasure')),
    follows    integer, -- number of the latest graph of the set with a job that this one needs or replaces; null: none
    created_at timestamptz not null default now(),
    unique (request_id, number)
);
create index graph_by_project on graph (project, id desc);

-- A job as a part of a graph. No foreign key leads to job_queue: it would lock jobs of other requests out of
-- order. A node whose job was purged is not shown; it goes with its request.
create table graph_node (
    graph_id bigint not null references graph (id) on delete cascade,
    job_id   bigint not null,
    input    boolean not null, -- written for an earlier graph of the set, and needed here
    replaces bigint,           -- the job in whose place it was written; null: none
    primary key (graph_id, job_id)
);

-- to_job needs from_job.
create table graph_edge (
    graph_id  bigint not null references graph (id) on delete cascade,
    from_job  bigint not null,
    to_job    bigint not null,
    condition text not null check (condition in ('success', 'resolved', 'any')), -- graph.Condition
    primary key (graph_id, to_job, from_job)
);
