-- The record: what was asked, what ran, every result.
--
-- Temporal is the truth for what is in flight; these tables are enough to resume
-- every unfinished request when Temporal's database is lost.

-- +goose Up

create table suite_bundle (
    hash       text primary key,          -- content hash of the suite's files
    name       text not null,
    archive    bytea not null,            -- tar.gz of the files
    created_at timestamptz not null default now()
);

create table project (
    name       text primary key,
    config     jsonb not null,            -- as applied: artifact source, queue policy, size policy
    suite_hash text references suite_bundle (hash),
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
);

create table access_token (
    hash       bytea primary key,         -- SHA-256 of the secret; the secret itself is stored nowhere
    kind       text not null check (kind in ('user', 'collector')),
    owner      text not null,             -- the user's account, or what the collector is called
    role       text not null check (role in ('reader', 'writer', 'admin', 'collector')),
    created_at timestamptz not null default now(),
    check ((kind = 'collector') = (role = 'collector'))
);

create table artifact (
    id         bigint generated always as identity primary key,
    project    text not null references project (name),
    tag        text not null,
    identity   text not null default '',  -- what the provider found: a module sum, a toolchain's version text
    created_at timestamptz not null default now(),
    unique (project, tag)
);

create table benchmark_request (
    id                  text primary key,
    project             text not null references project (name),
    type                text not null check (type in ('release', 'master', 'try', 'adhoc')),
    tag                 text,             -- null while a try build has none, and for ad-hoc commands
    parent              text,
    pr                  integer,
    commit_date         timestamptz,
    status              text not null check (status in ('waiting_for_artifacts', 'artifacts_ready', 'in_progress', 'completed')),
    outcome             text check (outcome in ('success', 'failure', 'cancelled', 'expired')),
    submitter           text not null,
    selection           jsonb not null default '{}',  -- suite.Selection: what of the suite is measured
    size_class          integer not null default 0,   -- pins an ad-hoc request's jobs; 0: the project's
    command             jsonb,            -- bench command of an ad-hoc request
    idempotency_key     text,
    created_at          timestamptz not null default now(),
    workflow_started_at timestamptz,      -- when the start of its workflow was confirmed
    admitted_at         timestamptz,
    expanded_at         timestamptz,      -- when its jobs were written
    jobs_done_at        timestamptz,      -- when its last job ended: frees its slot
    completed_at        timestamptz,
    baseline            text,             -- tag that it was compared with
    summary             jsonb,            -- comparison with the baseline
    message             text not null default '',     -- why it ended as it did, or what it waits for
    check ((status = 'completed') = (outcome is not null)),
    check ((status = 'completed') = (completed_at is not null)),
    check (type = 'adhoc' or command is null),
    check (command is not null or tag is not null or status in ('waiting_for_artifacts', 'completed'))
);
create unique index benchmark_request_tag on benchmark_request (project, tag) where type <> 'adhoc' and tag is not null;
create unique index benchmark_request_idempotency on benchmark_request (submitter, idempotency_key) where idempotency_key is not null;
create index benchmark_request_open on benchmark_request (project, created_at) where status <> 'completed';
create index benchmark_request_listed on benchmark_request (created_at desc, id desc);
create index benchmark_request_unstarted on benchmark_request (created_at) where workflow_started_at is null and status <> 'completed';

create table job_queue (
    id              bigint generated always as identity primary key,
    project         text not null references project (name),
    key             text not null unique, -- bench.JobKey
    tag             text,
    artifact_id     bigint not null references artifact (id), -- where its results belong; a command's is its own
    kind            text not null check (kind in ('compiletime', 'runtime', 'command')),
    target          text not null,
    backend         text not null default '',
    profile         text not null default '',
    suite_hash      text references suite_bundle (hash),
    test_cases      jsonb not null,       -- array of bench.TestCase
    iterations      integer not null,     -- override of the suite's, 0: the suite's
    command         jsonb,                -- bench command of an ad-hoc job
    size_class      integer not null,
    pool            text not null,
    task_queue      text not null,
    generation      integer not null default 0,
    queue           text not null,        -- fairness key: whose turn it is
    weight          real not null default 1,
    priority        integer not null default 3 check (priority between 1 and 5),
    status          text not null check (status in ('queued', 'handed_out', 'in_progress', 'success', 'failure', 'cancelled')),
    message         text not null default '',
    request_created timestamptz not null, -- older requests go first within a queue
    created_at      timestamptz not null default now(),
    handed_out_at   timestamptz,
    handed_out_to   text references benchmark_request (id) on delete set null, -- whose workflow starts the job's workflow
    started_at      timestamptz,          -- first time past the fence
    completed_at    timestamptz,
    check ((status in ('success', 'failure', 'cancelled')) = (completed_at is not null))
);
create index job_queue_waiting on job_queue (task_queue, queue, request_created, id) where status = 'queued';
create index job_queue_in_temporal on job_queue (task_queue, queue) where status in ('handed_out', 'in_progress');
create index job_queue_handed_out on job_queue (handed_out_to) where status = 'handed_out';
create index job_queue_by_artifact on job_queue (artifact_id);

-- Which requests wait for a job; several may wait for one.
create table request_job (
    request_id text not null references benchmark_request (id) on delete cascade,
    job_id     bigint not null references job_queue (id) on delete cascade,
    own        boolean not null,          -- false: a parent's job, run to have a baseline
    primary key (request_id, job_id)
);
create index request_job_waiters on request_job (job_id);

-- An epoch is never given twice, not even to a name that was removed.
create sequence collector_epoch as bigint;

create table collector_config (
    name           text primary key,
    target         text not null,
    size_class     integer not null,
    pool           text not null,
    machine_id     text not null,         -- which machine and state directory registered the name
    epoch          bigint not null,       -- raised by each registration: an older one is refused at the fence
    version        text not null,
    hardware_id    text not null,
    facts          jsonb not null,        -- CPU, kernel, governor and so on, as read by the collector
    unenforced     jsonb not null default '[]',
    co_located     boolean not null,      -- others run beside it on this machine
    active         boolean not null default true,
    registered_at  timestamptz not null default now(),
    last_heartbeat timestamptz not null default now(),
    current_run    text
);
create index collector_config_pool on collector_config (target, size_class, pool);

-- One attempt at a job; opened at the fence.
create table job_run (
    id           text primary key,        -- bench.RunID
    job_id       bigint not null references job_queue (id) on delete cascade,
    number       integer not null,
    reason       text not null check (reason in ('scheduled', 'retry', 'escalation', 'rerun')),
    size_class   integer not null,
    pool         text not null,
    collector    text not null,
    epoch        bigint not null,
    version      text not null,
    hardware_id  text not null,
    co_located   boolean not null,
    facts        jsonb not null,
    outcome      text not null default '' check (outcome in ('', 'success', 'failure', 'too_small', 'permanent', 'cancelled', 'lost')),
    message      text not null default '',
    output_tail  text not null default '',
    progress     jsonb not null default '{}',
    log_size     bigint not null default 0,    -- bytes of output so far, also those that were not kept
    started_at   timestamptz not null default now(),
    finished_at  timestamptz,
    unique (job_id, number),
    check ((outcome = '') = (finished_at is null))
);
create index job_run_open on job_run (job_id) where outcome = '';
create index job_run_by_collector on job_run (collector, started_at desc);

create table run_log (
    run_id    text not null references job_run (id) on delete cascade,
    at_offset bigint not null,            -- bytes of output before this piece
    data      bytea not null,
    primary key (run_id, at_offset)
);

create table test_case (
    id        bigint generated always as identity primary key,
    project   text not null references project (name),
    benchmark text not null,
    profile   text not null,
    scenario  text not null,
    backend   text not null,
    target    text not null,
    unique (project, benchmark, profile, scenario, backend, target)
);

-- A job's test cases, as rows; place is their order within it.
create table job_test_case (
    job_id       bigint not null references job_queue (id) on delete cascade,
    test_case_id bigint not null references test_case (id),
    place        integer not null,
    primary key (job_id, test_case_id)
);

-- The accepted result of an artifact under a test case: what counts as done. A
-- block brings all collections of a test case at once; a second result for the
-- same place is superseded.
create table test_result (
    id           bigint generated always as identity primary key,
    artifact_id  bigint not null references artifact (id) on delete cascade,
    test_case_id bigint not null references test_case (id),
    size_class   integer not null,
    hardware_id  text not null,
    co_located   boolean not null,
    generation   integer not null,
    run_id       text not null references job_run (id),
    status       text not null check (status in ('ok', 'skipped')),
    message      text not null default '',-- why it was left out
    created_at   timestamptz not null default now(),
    unique (artifact_id, test_case_id, size_class, hardware_id, co_located, generation)
);
create index test_result_by_run on test_result (run_id);

-- Newer generations replace older ones where they were measured alike.
create view latest_result as
select distinct on (artifact_id, test_case_id, size_class, hardware_id, co_located)
    id, artifact_id, test_case_id, size_class, hardware_id, co_located, generation, run_id, status, message
from test_result
order by artifact_id, test_case_id, size_class, hardware_id, co_located, generation desc;

-- Which test cases of a job are done: those with an accepted result on the
-- job's size class and generation, from its pool or from hardware that ran it.
create view job_test_case_state as
select jt.job_id, jt.test_case_id, jt.place, exists (
    select from test_result r
    where r.artifact_id = j.artifact_id and r.test_case_id = jt.test_case_id
        and r.size_class = j.size_class and r.generation = j.generation
        and (exists (select from job_run own where own.job_id = j.id and own.hardware_id = r.hardware_id)
            or exists (select from job_run its where its.id = r.run_id and its.pool = j.pool))
) as done
from job_test_case jt join job_queue j on j.id = jt.job_id;

-- All statistics of one iteration of one test case.
create table collection (
    id           bigint generated always as identity primary key,
    result_id    bigint not null references test_result (id) on delete cascade,
    iteration    integer not null,
    collected_at timestamptz not null,
    facts        jsonb not null default '{}',  -- load and steal while it ran
    unique (result_id, iteration)
);

create table pstat_series (
    id           bigint generated always as identity primary key,
    test_case_id bigint not null references test_case (id),
    metric       text not null,
    unique (test_case_id, metric)
);

create table pstat (
    series_id     bigint not null references pstat_series (id),
    artifact_id   bigint not null references artifact (id) on delete cascade,
    collection_id bigint not null references collection (id) on delete cascade,
    value         double precision not null,
    primary key (series_id, artifact_id, collection_id)
);
create index pstat_by_artifact on pstat (artifact_id);
create index pstat_by_collection on pstat (collection_id);

create table pstat_runtime (
    series_id     bigint not null references pstat_series (id),
    artifact_id   bigint not null references artifact (id) on delete cascade,
    collection_id bigint not null references collection (id) on delete cascade,
    value         double precision not null,
    primary key (series_id, artifact_id, collection_id)
);
create index pstat_runtime_by_artifact on pstat_runtime (artifact_id);
create index pstat_runtime_by_collection on pstat_runtime (collection_id);

-- What went wrong in a run: with one test case, or (no test case) with the job.
create table error (
    id           bigint generated always as identity primary key,
    run_id       text not null references job_run (id) on delete cascade,
    test_case_id bigint references test_case (id),
    context      text not null,           -- the test case in words, or "job"
    kind         text not null,           -- bench.FailureKind
    message      text not null,
    output_tail  text not null default '',
    created_at   timestamptz not null default now()
);
create unique index error_once on error (run_id, coalesce(test_case_id, 0));

-- +goose Down
drop view job_test_case_state, latest_result;
drop table error, pstat_runtime, pstat, pstat_series, collection, test_result, job_test_case, test_case, run_log,
    job_run, collector_config, request_job, job_queue, benchmark_request, artifact, access_token, project, suite_bundle;
drop sequence collector_epoch;
