-- The whole schema of Benchloom as first released: what was asked, what ran, and
-- every result.
--
-- Temporal is the truth for what is in flight. These tables suffice to resume every
-- unfinished request when Temporal's database is lost.
--
-- Conventions: times are the database's; an empty text and a zero mean "none" or
-- "not known" where the column says so; jsonb columns hold the Go type that they name.
-- Versions below 100 belonged to development versions and are refused (migrate.go).

-- +goose Up

-- Projects and access ------------------------------------------------------------

create table suite_bundle (
    hash       text primary key,          -- content hash of the suite's files
    name       text not null,
    archive    bytea not null,            -- tar.gz of the files
    created_at timestamptz not null default now()
);

create table project (
    name       text primary key,
    config     jsonb not null,            -- as applied: artifact source, admission policy, size policy
    suite_hash text references suite_bundle (hash),
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
);

create table access_token (
    hash       bytea primary key,         -- SHA-256 of the secret; the secret itself is stored nowhere
    kind       text not null check (kind in ('user', 'collector')),
    owner      text not null,             -- the user's account, or the collector's name
    role       text not null check (role in ('reader', 'writer', 'admin', 'collector')),
    created_at timestamptz not null default now(),
    collector  text,                      -- the only collector that it opens anything for; null: any
    constraint access_token_check check ((kind = 'collector') = (role = 'collector')),
    constraint access_token_check1 check (collector is null or kind = 'collector')
);
create index access_token_collector on access_token (collector) where collector is not null;

-- Who did what, why and when. Entries stay when what they are about is purged.
create table audit (
    id              bigint generated always as identity primary key,
    at              timestamptz not null default now(),
    who             text not null,
    action          text not null,        -- the command, for example "request cancel"
    project         text not null,        -- empty: it is about several
    subject         text not null,        -- what the command named: a request's ID, a job's key, an artifact
    reason          text not null default '',
    idempotency_key text,
    detail          jsonb not null default '{}',  -- further arguments of the command
    result          jsonb not null default '{}'   -- its effect: the answer to a repetition
);
create unique index audit_idempotency on audit (who, idempotency_key) where idempotency_key is not null;
create index audit_by_project on audit (project, id desc);

-- Artifacts and where they come from ---------------------------------------------

create table artifact (
    id               bigint generated always as identity primary key,
    project          text not null references project (name),
    tag              text not null,
    identity         text not null default '',  -- found by the provider: a module sum, a toolchain's version text
    created_at       timestamptz not null default now(),
    -- A purge removes the artifact's jobs, but their workflow IDs stay used: later jobs
    -- begin with this generation.
    first_generation integer not null default 0,
    unique (project, tag)
);

-- First-parent history of each project's branch, as far as it was read.
create table commit (
    project       text not null references project (name),
    sha           text not null,
    parent        text not null default '',  -- first parent; empty: it has none, or none is known
    position      bigint not null,           -- along the history: a commit's is its parent's plus 1
    committed_at  timestamptz not null,
    author        text not null default '',
    subject       text not null default '',
    on_branch     boolean not null default true,  -- false: the branch was rewritten since
    skipped       boolean not null default false, -- too old to be requested when it was first seen
    first_seen_at timestamptz not null default now(),
    primary key (project, sha)
);
create index commit_by_position on commit (project, position desc);

create table release_tag (
    project       text not null references project (name),
    tag           text not null,             -- as in git: the artifact's tag
    sha           text not null,
    tagged_at     timestamptz not null,
    first_seen_at timestamptz not null default now(),
    primary key (project, tag)
);

-- Progress and health of reading a project's repository.
create table commit_source (
    project       text primary key references project (name),
    repository    text not null default '',  -- to which head and releases belong
    releases      text not null default '',  -- pattern by which release tags were read
    head          text not null default '',  -- newest commit whose requests are all made; empty: none yet
    last_ok_at    timestamptz,
    failing_since timestamptz,               -- null: the last poll succeeded
    message       text not null default '',  -- why it fails, or what is remarkable
    every_seconds integer not null default 0 -- interval of the Schedule as last confirmed; 0: there is none
);

-- What an artifact is built as, by its tag: looked up when a request is expanded.
create table build_revision (
    project   text not null references project (name),
    tag       text not null,
    target    text not null,
    recipe    text not null,              -- bench.BuildRecipe.Hash: another recipe is another build
    build_key text not null,              -- bench.BuildKey
    primary key (project, tag, target, recipe)
);
create index build_revision_by_key on build_revision (build_key);

-- Stored builds, whole and verified.
create table build (
    key        text primary key,          -- bench.BuildKey
    project    text not null references project (name),
    tree       text not null,
    target     text not null,
    size       bigint not null,           -- bytes of the archive
    sha256     text not null,             -- of the archive
    run_id     text not null,             -- the run that built it, whose chunks are its content
    created_at timestamptz not null default now(),
    last_used  timestamptz not null default now()
);

-- Chunks of archives, also of uploads under way.
create table build_chunk (
    run_id text not null,
    number integer not null check (number >= 0),
    data   bytea not null,
    primary key (run_id, number)
);
alter table build_chunk alter column data set storage external; -- compressed already

-- Requests -----------------------------------------------------------------------

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
    selection           jsonb not null default '{}',  -- suite.Selection: the part of the suite that is measured
    size_class          integer not null default 0,   -- pins an ad-hoc request's jobs; 0: the project's
    command             jsonb,            -- bench.Command of an ad-hoc request
    idempotency_key     text,
    created_at          timestamptz not null default now(),
    workflow_started_at timestamptz,      -- when the start of its workflow was confirmed
    admitted_at         timestamptz,
    expanded_at         timestamptz,      -- when its jobs were written
    jobs_done_at        timestamptz,      -- when its last job ended: frees its slot
    completed_at        timestamptz,
    baseline            text,             -- tag with which it was compared
    summary             jsonb,            -- comparison with the baseline
    message             text not null default '', -- why it ended as it did, or what it waits for
    waits_for           text,             -- tag whose jobs must be done before it may be admitted
    parent_note         text not null default '', -- why there is no parent to wait for, or none to compare with
    reopened_at         timestamptz,      -- when it was last opened again after its end
    versus              text,             -- tag that its artifact is measured in turns with; null: none
    queue               text not null default '', -- as named by the submitter; '': the default one
    branch              text not null default '',
    constraints         jsonb,            -- bench.Constraints; null: none
    -- Its jobs were written with it; its workflow starts with the first that is handed out.
    deferred            boolean not null default false,
    batch               integer not null default 0, -- number of jobs submitted with it; 0: it is no batch
    digest              text not null default '',   -- of a batch's jobs: the same key means the same jobs
    constraint benchmark_request_check check ((status = 'completed') = (outcome is not null)),
    constraint benchmark_request_check1 check ((status = 'completed') = (completed_at is not null)),
    constraint benchmark_request_check2 check (type = 'adhoc' or command is null),
    constraint benchmark_request_tag_check
        check (command is not null or deferred or tag is not null or status in ('waiting_for_artifacts', 'completed')),
    constraint benchmark_request_versus_check
        check (versus is null or (type = 'adhoc' and command is null and versus <> tag))
);
create unique index benchmark_request_tag on benchmark_request (project, tag) where type <> 'adhoc' and tag is not null;
create unique index benchmark_request_idempotency on benchmark_request (submitter, idempotency_key) where idempotency_key is not null;
create index benchmark_request_open on benchmark_request (project, created_at) where status <> 'completed';
create index benchmark_request_listed on benchmark_request (created_at desc, id desc);
create index benchmark_request_unstarted on benchmark_request (created_at) where workflow_started_at is null and status <> 'completed';
create index benchmark_request_children on benchmark_request (project, waits_for) where status <> 'completed';
create index benchmark_request_by_pr on benchmark_request (project, pr) where type = 'try' and status <> 'completed';
-- Estimates read the newest expanded requests.
create index benchmark_request_expanded on benchmark_request (project, expanded_at desc) where expanded_at is not null and type <> 'adhoc';
-- Requests whose jobs are still to be written: each counts as one waiting job.
create index benchmark_request_unexpanded on benchmark_request (submitter) where status <> 'completed' and expanded_at is null;

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

-- Admission of each request, with the state that it was decided from, in the format
-- of 'benchloom queue simulate'; the newest of each project are kept.
create table admission (
    id         bigint generated always as identity primary key,
    project    text not null references project (name),
    request_id text not null references benchmark_request (id) on delete cascade,
    policy     text not null,
    state      jsonb not null,
    at         timestamptz not null default now()
);
create index admission_by_project on admission (project, id desc);

-- A project that is paused admits nothing and hands nothing out.
create table queue_pause (
    project   text primary key references project (name),
    paused_by text not null,
    paused_at timestamptz not null default now(),
    reason    text not null
);

-- What the reconciliation found missing in Temporal and started again.
create table workflow_repair (
    id          bigint generated always as identity primary key,
    workflow_id text not null,
    project     text not null,
    found       text not null,            -- protocol.WorkflowStatus found in Temporal
    done        text not null,            -- the repair, in words
    at          timestamptz not null default now()
);
create index workflow_repair_of on workflow_repair (workflow_id, at desc);
create index workflow_repair_old on workflow_repair (at);

-- Queues and accounts ------------------------------------------------------------

-- Queues as configured; one without a row is weighted, with weight 1.
create table queue_config (
    name       text primary key,          -- fairness key: user:<account>, project:<name>, or a name of its own
    class      text not null check (class in ('weighted', 'strict')),
    weight     double precision not null default 1 check (weight between 0.1 and 1000), -- relative to the other weighted queues
    level      integer not null default 3 check (level between 1 and 5),    -- 1 goes first; the weighted queues are 3
    updated_by text not null,
    updated_at timestamptz not null default now(),
    constraint queue_config_check check ((class = 'weighted') = (level = 3))
);

-- How many jobs an account may have at once, and the level that none of its jobs precedes.
create table account_limit (
    account     text not null,            -- '*': every account without a row of its own
    branch      text not null default '*',
    max_running integer check (max_running > 0),
    max_queued  integer check (max_queued > 0),
    first_level integer not null default 1 check (first_level between 1 and 5), -- no job of it gets a level before this one
    updated_by  text not null,
    updated_at  timestamptz not null default now(),
    primary key (account, branch)
);

-- Jobs ---------------------------------------------------------------------------

create table job_queue (
    id                 bigint generated always as identity primary key,
    project            text not null references project (name),
    key                text not null unique, -- bench.JobKey
    tag                text,
    artifact_id        bigint not null references artifact (id), -- where its results belong; a command's is its own
    kind               text not null check (kind in ('compiletime', 'runtime', 'command', 'build')),
    target             text not null,
    backend            text not null default '',
    profile            text not null default '',
    suite_hash         text references suite_bundle (hash),
    test_cases         jsonb not null,       -- array of bench.TestCase
    iterations         integer not null,     -- overrides the suite's; 0: the suite's
    command            jsonb,                -- bench.Command of an ad-hoc job
    size_class         integer not null,
    pool               text not null,
    task_queue         text not null,
    generation         integer not null default 0,
    queue              text not null,        -- fairness key
    weight             double precision not null default 1, -- as configured: 0.3 reads as 0.3
    priority           integer not null default 3 check (priority between 1 and 5),
    status             text not null check (status in ('queued', 'handed_out', 'in_progress', 'success', 'failure', 'cancelled')),
    message            text not null default '',
    request_created    timestamptz not null, -- older requests go first within a queue
    created_at         timestamptz not null default now(),
    handed_out_at      timestamptz,
    handed_out_to      text references benchmark_request (id) on delete set null, -- whose workflow starts the job's workflow
    started_at         timestamptz,          -- first time past the fence
    completed_at       timestamptz,
    build              jsonb,                -- bench.BuildSpec of a build job
    moved_from         text,                 -- task queue where it waited before; null: it waits where it was placed
    moved_at           timestamptz,
    versus             text,                 -- tag of the other artifact that it measures in turns with its own
    versus_artifact_id bigint references artifact (id), -- where the results of that one belong
    -- Which jobs are alike whatever their artifact, without reading their test cases each
    -- time: a page that shows estimates is asked for every second. A job that measures two
    -- artifacts takes twice as long as others, and is like none of them.
    cases_digest       text generated always as (md5(test_cases::text || iterations::text || coalesce(command::text, '')
        || case when versus is null then '' else 'in turns' end)) stored,
    case_count         integer generated always as (jsonb_array_length(test_cases) * case when versus is null then 1 else 2 end) stored,
    submitter          text not null default '', -- whose limits count for it
    branch             text not null default '',
    constraints        jsonb,                -- bench.Constraints; null: none
    shape              text not null default '', -- shared by jobs that are alike whatever their artifact; '': its class is fixed
    selected_at        timestamptz,          -- when its size class was selected, at hand-out
    probe              boolean not null default false, -- it runs on its class to learn from it
    timeout_seconds    double precision not null default 0, -- of the whole job, by its size class; 0: none
    affinity_until     timestamptz,          -- until then it waits for a collector that has its caches
    -- A job that was considered and may not go yet is put aside, so that no hand-out
    -- considers it again: '' when it is not; turn: no request that waits for it has its
    -- turn; pause: its project is paused; cap: its submitter has as much under way as the
    -- limit allows. Whatever ends the reason takes it back, and a sweep finds what that missed.
    held               text not null default '' check (held in ('', 'turn', 'pause', 'cap')),
    place              integer not null default 0, -- in its batch, from 1; 0: it belongs to none
    name               text not null default '', -- given by its submitter
    -- The request that it was written with, to which it belongs; null: it is found by request_job alone.
    submitted_with     text references benchmark_request (id) on delete set null,
    min_class          integer not null default 0, -- the smallest size class that will do
    turn               integer not null default 0, -- numbers the fairness keys of its queue in its task queue
    selected_why       text not null default '', -- why its size class was selected, in a sentence
    constraint job_queue_check check ((status in ('success', 'failure', 'cancelled')) = (completed_at is not null)),
    constraint job_queue_check1 check ((moved_from is null) = (moved_at is null)),
    constraint job_queue_build_check check ((kind = 'build') = (build is not null)),
    constraint job_queue_versus_check check ((versus is null) = (versus_artifact_id is null) and versus_artifact_id <> artifact_id)
);

-- Hand-out. Order within a queue: jobs that have begun before, then those of the older
-- request. Each queue of a task queue is read by itself, however much waits.
create index job_queue_waiting on job_queue (task_queue, held, queue, (started_at is null), request_created, id) where status = 'queued';
create index job_queue_in_temporal on job_queue (task_queue, queue) where status in ('handed_out', 'in_progress');
create index job_queue_handed_out on job_queue (handed_out_to) where status = 'handed_out';
-- Jobs that wait in the queue of another account than their submitter's; hardly any.
create index job_queue_foreign on job_queue (task_queue, queue)
    where status = 'queued' and held = '' and queue like 'user:%' and queue <> 'user:' || submitter;
-- A job that is cancelled while it waits in Temporal leaves a debt: Temporal has charged
-- its queue for it, so the queue's next jobs go by another fairness key (turn).
create index job_queue_wasted on job_queue (task_queue, queue)
    where status = 'cancelled' and handed_out_at is not null and started_at is null;

-- Jobs that were put aside, by what they wait for.
create index job_queue_held on job_queue (held, submitter, task_queue, queue, (started_at is null), request_created, id)
    where status = 'queued' and held <> '';
create index job_queue_paused on job_queue (project, id) where status = 'queued' and held = 'pause';
create index job_queue_without_turn on job_queue (id) where status = 'queued' and held = 'turn';

-- Limits: waiting and running jobs of an account.
create index job_queue_by_submitter on job_queue (submitter, status, task_queue) where status in ('queued', 'handed_out', 'in_progress');

-- Placement: sets of collectors with constrained jobs, task queues with commands that
-- every collector of their class may run, and jobs that have moved.
create index job_queue_constrained on job_queue (task_queue, request_created)
    where constraints is not null and status in ('queued', 'handed_out', 'in_progress');
create index job_queue_unconstrained on job_queue (task_queue, request_created)
    where kind = 'command' and constraints is null and status in ('queued', 'handed_out', 'in_progress');
create index job_queue_moved on job_queue (moved_at) where moved_at is not null and status in ('handed_out', 'in_progress');

-- Lookups by artifact, build and shape.
create index job_queue_by_artifact on job_queue (artifact_id);
create index job_queue_by_versus on job_queue (versus_artifact_id) where versus_artifact_id is not null;
create index job_queue_by_build on job_queue ((build ->> 'key')) where kind = 'build';
create index job_queue_by_shape on job_queue (shape) where shape <> '' and status in ('queued', 'handed_out', 'in_progress');

-- Views and estimates: a batch by status and by its latest ends, open jobs in the order
-- in which they are foreseen however many have ended, and past durations.
create index job_queue_by_batch on job_queue (submitted_with, status, completed_at, id) where submitted_with is not null;
create index job_queue_foreseen on job_queue (request_created, id) where status in ('queued', 'handed_out', 'in_progress');
create index job_queue_open on job_queue (project) where status in ('queued', 'handed_out', 'in_progress');
create index job_queue_history on job_queue (project, completed_at desc) where status = 'success';

-- Which requests wait for a job; several may wait for one.
create table request_job (
    request_id text not null references benchmark_request (id) on delete cascade,
    job_id     bigint not null references job_queue (id) on delete cascade,
    stage      text not null check (stage in ('build', 'parent', 'own', 'verify')),
    optional   boolean not null default false, -- blocks nothing: neither the request nor its children
    -- A job that was replaced by one of a later generation no longer counts for the
    -- request; the link stays as a record.
    superseded boolean not null default false,
    primary key (request_id, job_id)
);
create index request_job_waiters on request_job (job_id);

-- What is known of the jobs of a shape.
create table size_statistics (
    project    text not null references project (name),
    shape      text not null,
    version    bigint not null,           -- raised by each change: compare and set
    statistics jsonb not null,            -- sizeclass.Statistics
    about      jsonb not null default '{}', -- the shape in words
    updated_at timestamptz not null default now(),
    best       integer,                   -- learned size class for jobs of the shape; null: nothing is known
    primary key (project, shape)
);

-- Collectors ---------------------------------------------------------------------

-- An epoch is never given twice, not even to a name that was removed.
create sequence collector_epoch as bigint;

create table collector_config (
    name           text primary key,
    target         text not null,
    size_class     integer not null,
    pool           text not null,
    machine_id     text not null,         -- the machine and state directory that registered the name
    epoch          bigint not null,       -- raised by each registration: an older one is refused at the fence
    version        text not null,
    hardware_id    text not null,
    facts          jsonb not null,        -- CPU, kernel, governor and so on, as read by the collector
    unenforced     jsonb not null default '[]',
    co_located     boolean not null,      -- others run beside it on this machine
    active         boolean not null default true,
    registered_at  timestamptz not null default now(),
    last_heartbeat timestamptz not null default now(),
    current_run    text,
    labels         jsonb not null default '{}',
    benchmark_sets text[] not null default '{}',
    -- When the collector could last take jobs: it was active and was heard of. A collector
    -- that is drained is heard of all the same.
    available_at   timestamptz not null default now(),
    machine_type   text not null default 'hw' check (machine_type in ('hw', 'vm', 'dc')),
    machine_group  text not null default '',
    devices        text[] not null default '{}',
    memory_bytes   bigint not null default 0,    -- available to a job; 0: not known
    cpus           integer not null default 0,   -- 0: not known
    cache_dirs     text[] not null default '{}', -- as it last reported
    host           text not null default ''      -- the shared host that it is a slot of; '': none
);
create index collector_config_pool on collector_config (target, size_class, pool);

-- Configuration of a collector's name. The invitation's token is exchanged once for the
-- collector's own one.
create table collector_invitation (
    name           text primary key,
    target         text not null,
    size_class     integer not null,
    pool           text not null,
    labels         jsonb not null default '{}',
    benchmark_sets text[] not null default '{}',
    token_hash     bytea not null unique, -- SHA-256 of the enrolment token
    invited_by     text not null,
    invited_at     timestamptz not null default now(),
    expires_at     timestamptz not null,
    enrolled_at    timestamptz,           -- when the enrolment token was used
    secret_hash    bytea,                 -- SHA-256 of the collector's own token
    machine_type   text not null default 'hw' check (machine_type in ('hw', 'vm', 'dc')),
    machine_group  text not null default '',
    devices        text[] not null default '{}',
    constraint collector_invitation_check check (enrolled_at is null or secret_hash is not null)
);

-- Task queues of jobs that only some collectors of a class can run, and their members.
create table collector_set (
    task_queue text primary key,
    target     text not null,
    size_class integer not null,
    collectors text[] not null,
    created_at timestamptz not null default now()
);

create table wanted_version (
    pool    text primary key,             -- '': all pools that name none of their own
    version text not null,
    set_by  text not null,
    set_at  timestamptz not null default now()
);

-- Runs ---------------------------------------------------------------------------

-- One attempt at a job; opened at the fence.
create table job_run (
    id               text primary key,    -- bench.RunID
    job_id           bigint not null references job_queue (id) on delete cascade,
    number           integer not null,
    reason           text not null check (reason in ('scheduled', 'retry', 'escalation', 'rerun')),
    size_class       integer not null,
    pool             text not null,
    collector        text not null,
    epoch            bigint not null,
    version          text not null,
    hardware_id      text not null,
    co_located       boolean not null,
    facts            jsonb not null,
    outcome          text not null default ''
        check (outcome in ('', 'success', 'failure', 'too_small', 'timeout', 'oom', 'permanent', 'cancelled', 'lost')),
    message          text not null default '',
    output_tail      text not null default '',
    progress         jsonb not null default '{}',
    log_size         bigint not null default 0,  -- bytes of output so far, also those that were not kept
    started_at       timestamptz not null default now(),
    finished_at      timestamptz,
    timeout_seconds  double precision not null default 0, -- of the size class; 0: none
    probe            boolean not null default false,
    peak_memory      bigint not null default 0,           -- bytes; 0: not known
    cpu_seconds      double precision not null default 0, -- 0: not known
    measured_seconds double precision not null default 0, -- 0: not known
    taught_at        timestamptz,         -- when the statistics of its shape learned of its end
    unique (job_id, number),
    constraint job_run_check check ((outcome = '') = (finished_at is null))
);
create index job_run_open on job_run (job_id) where outcome = '';
create index job_run_by_collector on job_run (collector, started_at desc);

create table run_log (
    run_id    text not null references job_run (id) on delete cascade,
    at_offset bigint not null,            -- bytes of output before this piece
    data      bytea not null,
    primary key (run_id, at_offset)
);

-- Results ------------------------------------------------------------------------

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

-- A job's test cases, as rows, once for each artifact that the job measures.
create table job_test_case (
    job_id       bigint not null references job_queue (id) on delete cascade,
    test_case_id bigint not null references test_case (id),
    place        integer not null,        -- order within the job
    artifact_id  bigint not null references artifact (id),
    done_class   integer,                 -- where it was done before the rest of its job escalated; null: it goes where the job goes
    done_pool    text,
    primary key (job_id, artifact_id, test_case_id),
    constraint job_test_case_check check ((done_class is null) = (done_pool is null))
);

-- The accepted result of an artifact under a test case: it counts as done. A block
-- brings all collections of a test case at once; a second result under the same key is
-- superseded. An invalid result stays, but counts nowhere; its test case may be measured
-- again. A probe's result keeps no other from being accepted and enters no comparison.
create table test_result (
    id             bigint generated always as identity primary key,
    artifact_id    bigint not null references artifact (id) on delete cascade,
    test_case_id   bigint not null references test_case (id),
    size_class     integer not null,
    hardware_id    text not null,
    co_located     boolean not null,
    generation     integer not null,
    run_id         text not null references job_run (id),
    status         text not null check (status in ('ok', 'skipped')),
    message        text not null default '', -- why it was left out
    created_at     timestamptz not null default now(),
    invalid_at     timestamptz,
    invalid_reason text not null default '',
    invalid_audit  bigint references audit (id),
    probe          boolean not null default false
);
create unique index test_result_valid on test_result (artifact_id, test_case_id, size_class, hardware_id, co_located, generation, probe)
    where invalid_at is null;
create index test_result_by_run on test_result (run_id);
-- Where the series of a test case lives: its newest result.
create index test_result_series on test_result (test_case_id, id desc) where status = 'ok' and invalid_at is null and not probe;

-- Newer generations replace older ones where they were measured alike.
create view latest_result as
select distinct on (artifact_id, test_case_id, size_class, hardware_id, co_located)
    id, artifact_id, test_case_id, size_class, hardware_id, co_located, generation, run_id, status, message
from test_result
where invalid_at is null and not probe
order by artifact_id, test_case_id, size_class, hardware_id, co_located, generation desc;

-- Which test cases of a job are done: those with an accepted result on the job's size
-- class (or where they were done before it escalated) and generation, from its pool or
-- from hardware that ran it.
create view job_test_case_state as
select jt.job_id, jt.test_case_id, jt.place, exists (
    select from test_result r
    where r.artifact_id = jt.artifact_id and r.test_case_id = jt.test_case_id
        and r.size_class = coalesce(jt.done_class, j.size_class) and r.generation = j.generation and r.invalid_at is null
        and (jt.done_class is not null
            or exists (select from job_run own where own.job_id = j.id and own.hardware_id = r.hardware_id)
            or exists (select from job_run its where its.id = r.run_id and its.pool = j.pool))
) as done, jt.artifact_id, jt.done_class, jt.done_pool
from job_test_case jt join job_queue j on j.id = jt.job_id;

-- All statistics of one iteration of one test case.
create table collection (
    id           bigint generated always as identity primary key,
    result_id    bigint not null references test_result (id) on delete cascade,
    iteration    integer not null,
    collected_at timestamptz not null,    -- the collector's clock
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

-- Failures in a run: of one test case, or (no test case) of the job.
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
