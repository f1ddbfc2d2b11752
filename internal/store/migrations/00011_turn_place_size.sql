-- Turn, place, size: configured queues and limits, where a job may run, and what
-- is known of how large a machine it needs.

-- +goose Up

-- Queues as configured; one without a row is weighted, with weight 1.
create table queue_config (
    name       text primary key,          -- fairness key: user:<account>, project:<name>, or a name of its own
    class      text not null check (class in ('weighted', 'strict')),
    weight     real not null default 1 check (weight between 0.1 and 1000), -- relative to the other weighted queues
    level      integer not null default 3 check (level between 1 and 5),    -- 1 goes first; the weighted queues are 3
    updated_by text not null,
    updated_at timestamptz not null default now(),
    check ((class = 'weighted') = (level = 3))
);

-- What an account may have at once, and how far forward its jobs may go.
create table account_limit (
    account     text not null,            -- '*': whoever has no row of one's own
    branch      text not null default '*',
    max_running integer check (max_running > 0),
    max_queued  integer check (max_queued > 0),
    first_level integer not null default 1 check (first_level between 1 and 5), -- no job of it gets a level before this one
    updated_by  text not null,
    updated_at  timestamptz not null default now(),
    primary key (account, branch)
);

alter table benchmark_request
    add column queue       text not null default '',  -- as named by the submitter; '': the default one
    add column branch      text not null default '',
    add column constraints jsonb,                     -- bench.Constraints; null: none
    -- Its jobs were written with it; its workflow starts with the first that is handed out.
    add column deferred    boolean not null default false;
alter table benchmark_request drop constraint benchmark_request_check3;
alter table benchmark_request add constraint benchmark_request_tag_check
    check (command is not null or deferred or tag is not null or status in ('waiting_for_artifacts', 'completed'));

alter table job_queue
    add column submitter       text not null default '', -- whose limits count for it
    add column branch          text not null default '',
    add column constraints     jsonb,                    -- bench.Constraints; null: none
    add column shape           text not null default '', -- what makes jobs alike whatever their artifact; '': its class is fixed
    add column selected_at     timestamptz,              -- when its size class was selected, at hand-out
    add column probe           boolean not null default false, -- it runs where it runs to learn from it
    add column timeout_seconds double precision not null default 0, -- of the whole job, by its size class; 0: none
    add column affinity_until  timestamptz;              -- until then it waits for a collector that has its caches
create index job_queue_by_shape on job_queue (shape) where shape <> '' and status in ('queued', 'handed_out', 'in_progress');

alter table job_run drop constraint job_run_outcome_check;
alter table job_run
    add constraint job_run_outcome_check check (outcome in ('', 'success', 'failure', 'too_small', 'timeout', 'oom', 'permanent', 'cancelled', 'lost')),
    add column timeout_seconds double precision not null default 0, -- of the selector; 0: none
    add column probe           boolean not null default false,
    add column peak_memory     bigint not null default 0,           -- bytes; 0: not known
    add column cpu_seconds     double precision not null default 0; -- 0: not known

alter table test_result add column probe boolean not null default false; -- it enters no comparison

-- What is known of the jobs of a shape: sizeclass.Statistics.
create table size_statistics (
    project    text not null references project (name),
    shape      text not null,
    version    bigint not null,           -- raised by each change: compare and set
    statistics jsonb not null,
    about      jsonb not null default '{}', -- what the shape is, in words
    updated_at timestamptz not null default now(),
    primary key (project, shape)
);

alter table collector_config
    add column machine_type  text not null default 'hw' check (machine_type in ('hw', 'vm', 'dc')),
    add column machine_group text not null default '',
    add column devices       text[] not null default '{}',
    add column memory_bytes  bigint not null default 0,     -- what a job may use; 0: not known
    add column cpus          integer not null default 0,    -- 0: not known
    add column cache_dirs    text[] not null default '{}',  -- as it last reported
    add column host          text not null default '';      -- the shared host that it is a slot of; '': none
alter table collector_invitation
    add column machine_type  text not null default 'hw' check (machine_type in ('hw', 'vm', 'dc')),
    add column machine_group text not null default '',
    add column devices       text[] not null default '{}';

-- Task queues of jobs that only some collectors of a class can run, and who they are.
create table collector_set (
    task_queue text primary key,
    target     text not null,
    size_class integer not null,
    collectors text[] not null,
    created_at timestamptz not null default now()
);

-- Whose turn it is within a queue: what has begun before goes first, then the older
-- request. Each queue of a task queue is looked at by itself, however much waits.
drop index job_queue_waiting;
create index job_queue_waiting on job_queue (task_queue, queue, (started_at is null), request_created, id) where status = 'queued';
create index job_queue_by_submitter on job_queue (submitter, task_queue) where status in ('queued', 'handed_out', 'in_progress');

-- +goose Down
drop index job_queue_by_submitter, job_queue_waiting;
create index job_queue_waiting on job_queue (task_queue, queue, request_created, id) where status = 'queued';
drop table collector_set;
alter table collector_invitation drop column devices, drop column machine_group, drop column machine_type;
alter table collector_config drop column host, drop column cache_dirs, drop column cpus, drop column memory_bytes, drop column devices,
    drop column machine_group, drop column machine_type;
drop table size_statistics;
alter table test_result drop column probe;
alter table job_run drop constraint job_run_outcome_check;
update job_run set outcome = 'too_small' where outcome in ('timeout', 'oom');
alter table job_run
    drop column cpu_seconds, drop column peak_memory, drop column probe, drop column timeout_seconds,
    add constraint job_run_outcome_check check (outcome in ('', 'success', 'failure', 'too_small', 'permanent', 'cancelled', 'lost'));
drop index job_queue_by_shape;
alter table job_queue drop column affinity_until, drop column timeout_seconds, drop column probe, drop column selected_at, drop column shape,
    drop column constraints, drop column branch, drop column submitter;
delete from benchmark_request where deferred;
alter table benchmark_request drop constraint benchmark_request_tag_check;
alter table benchmark_request add constraint benchmark_request_check3
    check (command is not null or tag is not null or status in ('waiting_for_artifacts', 'completed'));
alter table benchmark_request drop column deferred, drop column constraints, drop column branch, drop column queue;
drop table account_limit, queue_config;
