-- Verdicts: comparisons of a request's artifact with its baseline, the looks that
-- measured both in turns, and what is known of the noise of each series.

-- +goose Up

-- A result that was measured in turns with another artifact is evidence for one
-- comparison. It stands beside the artifact's own results and replaces none of them.
alter table test_result add column in_turns boolean not null default false;
update test_result r set in_turns = true
from job_run n join job_queue j on j.id = n.job_id
where n.id = r.run_id and j.versus is not null;

create or replace view latest_result as
select distinct on (artifact_id, test_case_id, size_class, hardware_id, co_located)
    id, artifact_id, test_case_id, size_class, hardware_id, co_located, generation, run_id, status, message
from test_result
where invalid_at is null and not probe and not in_turns
order by artifact_id, test_case_id, size_class, hardware_id, co_located, generation desc;

-- A request has one comparison; one that was opened again has another, which supersedes
-- the former.
create table comparison (
    id             bigint generated always as identity primary key,
    request_id     text not null references benchmark_request (id) on delete cascade,
    artifact_id    bigint not null references artifact (id),
    baseline_id    bigint not null references artifact (id),
    mode           text not null check (mode in ('suspects', 'all')), -- bench.VerifyMode
    rule_version   integer not null,      -- verdict.RuleVersion
    family_size    integer not null,      -- number of verdicts that are measured again, fixed beforehand
    state          text not null default 'deciding' check (state in ('deciding', 'decided')),
    pairs          integer not null default 0,  -- of its only look, fixed beforehand; 0: looks follow until it is decided
    look           integer not null default 0,  -- number of the last look that was written; 0: none yet
    budget_seconds double precision not null,   -- machine time that its looks may take; 0: no limit
    created_at     timestamptz not null default now(),
    decided_at     timestamptz,
    superseded_at  timestamptz,
    constraint comparison_decided_check check ((state = 'decided') = (decided_at is not null)),
    constraint comparison_sides_check check (artifact_id <> baseline_id)
);
create unique index comparison_of_request on comparison (request_id) where superseded_at is null;
create index comparison_of_artifacts on comparison (artifact_id, baseline_id, id desc);
create index comparison_by_baseline on comparison (baseline_id);

-- The deciding rows of a comparison: what was suspected, and what was found.
create table comparison_verdict (
    comparison_id bigint not null references comparison (id) on delete cascade,
    test_case_id  bigint not null references test_case (id),
    metric        text not null,
    size_class    integer not null,       -- where both sides were measured
    hardware_id   text not null,
    co_located    boolean not null,
    -- Why it was suspected; fixed before it is measured again.
    suspected     boolean not null,
    measured      boolean not null,       -- it belongs to the family that is measured again
    score         double precision not null default 0,  -- of the detection: T
    suspicion     text not null default '',             -- in words
    suspected_change double precision not null default 0, -- relative change that raised it
    against_id    bigint references artifact (id),      -- the artifact that it is measured in turns with; null: the baseline
    exact         boolean not null default false,
    delta         double precision not null,            -- least relevant relative change
    sigma_within  double precision not null default 0,  -- of the noise model; 0: not known
    tau           double precision not null default 0,  -- of the noise model; 0: not known
    bimodal       boolean not null default false,       -- by session
    -- The verdict; null: none yet.
    verdict       text check (verdict in ('undecided', 'changed', 'no difference', 'no suspicion')),
    change        double precision not null default 0,  -- relative: 0.02 is +2 %
    low           double precision,       -- interval of the change; null: there is none
    high          double precision,
    confidence    double precision not null default 0,  -- of the interval
    pairs         integer not null default 0,
    sessions      integer not null default 0,
    disturbed     integer not null default 0,           -- of the pairs
    p             double precision not null default 1,
    level         double precision not null default 0,  -- below which p had to be
    sees          double precision not null default 0,  -- relative change that would have been seen
    reason        text not null default '',
    needs         text not null default '',
    primary key (comparison_id, test_case_id, metric),
    constraint comparison_verdict_interval_check check ((low is null) = (high is null))
);
create index comparison_verdict_against on comparison_verdict (against_id) where against_id is not null;
create index comparison_verdict_open on comparison_verdict (comparison_id) where verdict is null;

-- The jobs of each look: one session in turns. The first look of an ad-hoc request that
-- measures in turns are its own jobs.
create table comparison_look (
    comparison_id bigint not null references comparison (id) on delete cascade,
    look          integer not null check (look > 0),
    job_id        bigint not null references job_queue (id) on delete cascade,
    primary key (comparison_id, look, job_id)
);
create index comparison_look_of_job on comparison_look (job_id);

-- The noise of a series on one collector, from its newest sessions; it can be computed
-- again from the results at any time.
create table noise_model (
    test_case_id bigint not null references test_case (id),
    metric       text not null,
    size_class   integer not null,
    hardware_id  text not null,
    co_located   boolean not null,
    collector    text not null,           -- '': all collectors of the surrounding together
    sessions     integer not null,
    model        jsonb not null,          -- noise.Model
    updated_at   timestamptz not null default now(),
    primary key (test_case_id, metric, size_class, hardware_id, co_located, collector)
);
