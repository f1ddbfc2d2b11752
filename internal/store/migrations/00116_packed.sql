-- Results once more, packed for pages (package packed). They are derived from the rows of
-- results, which stay the truth, and can be derived again at any time: decision 17.

-- +goose Up

-- The values of an artifact: its latest results, without probes, what was measured in
-- turns, and commands.
create table sheet (
    artifact_id bigint not null references artifact (id) on delete cascade,
    metric      text not null,            -- without the line that it belongs to
    size_class  integer not null,
    hardware_id text not null,
    co_located  boolean not null,
    series      integer not null,         -- number of series, by pstat_series
    n_values    integer not null,         -- number of their values
    packed      bytea not null,           -- packed.Sheet
    primary key (artifact_id, metric, size_class, hardware_id, co_located)
);
-- Floating-point numbers hardly shrink.
alter table sheet alter column packed set storage external;

-- The history of a series in a surrounding, in parts: each has the points of some
-- artifacts that follow each other by their IDs.
create table strip (
    series_id      bigint not null references pstat_series (id),
    size_class     integer not null,
    hardware_id    text not null,
    co_located     boolean not null,
    first_artifact bigint not null,       -- IDs of its first and its last point
    last_artifact  bigint not null,
    packed         bytea not null,        -- packed.Strip
    primary key (series_id, size_class, hardware_id, co_located, first_artifact)
);
alter table strip alter column packed set storage external;
-- Each new artifact replaces the last part of each of its histories, a few of a hundred
-- rows: by default, many times that would be dead before it is used again.
alter table strip set (autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);

-- Artifacts whose sheets and points are not those of their results: these are read instead.
-- Rows are only added, so that those who change results never wait for each other; packing
-- removes those that it has seen.
create table stale_result (
    artifact_id bigint not null references artifact (id) on delete cascade,
    at          timestamptz not null default now()
);
create index stale_result_by_artifact on stale_result (artifact_id);

-- +goose StatementBegin
create function mark_stale(artifacts bigint[]) returns void language sql as $$
    insert into stale_result (artifact_id)
    select a.id from artifact a
    where a.id = any(artifacts) and not exists (select from job_queue j where j.artifact_id = a.id and j.kind = 'command')
$$;
-- +goose StatementEnd

-- +goose StatementBegin
create function stale_by_result() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then
        perform mark_stale((select array_agg(distinct artifact_id) from added where not probe and not in_turns));
    elsif tg_op = 'DELETE' then
        perform mark_stale((select array_agg(distinct artifact_id) from removed where not probe and not in_turns));
    else
        perform mark_stale((select array_agg(distinct artifact_id) from (
            select artifact_id, probe, in_turns from added union all select artifact_id, probe, in_turns from removed) c where not probe and not in_turns));
    end if;
    return null;
end $$;
-- +goose StatementEnd
create trigger stale_insert after insert on test_result referencing new table as added for each statement execute function stale_by_result();
create trigger stale_update after update on test_result referencing old table as removed new table as added for each statement execute function stale_by_result();
create trigger stale_delete after delete on test_result referencing old table as removed for each statement execute function stale_by_result();

-- Collections and values are written and removed with their result. Nothing changes them
-- later, nor what a sheet says of their run and job; if something does, it marks, too.

-- +goose StatementBegin
create function stale_by_collection() returns trigger language plpgsql as $$
begin
    perform mark_stale((select array_agg(distinct r.artifact_id) from added c join test_result r on r.id = c.result_id));
    return null;
end $$;
-- +goose StatementEnd
create trigger stale_update after update on collection referencing new table as added for each statement execute function stale_by_collection();

-- +goose StatementBegin
create function stale_by_value() returns trigger language plpgsql as $$
begin
    perform mark_stale((select array_agg(distinct artifact_id) from added));
    return null;
end $$;
-- +goose StatementEnd
create trigger stale_update after update on pstat referencing new table as added for each statement execute function stale_by_value();
create trigger stale_update after update on pstat_runtime referencing new table as added for each statement execute function stale_by_value();

-- +goose StatementBegin
create function stale_by_run() returns trigger language plpgsql as $$
begin
    perform mark_stale((select array_agg(distinct r.artifact_id) from test_result r where r.run_id = new.id));
    return null;
end $$;
-- +goose StatementEnd
create trigger stale_update after update on job_run for each row when (old.segment is distinct from new.segment) execute function stale_by_run();

-- +goose StatementBegin
create function stale_by_job() returns trigger language plpgsql as $$
begin
    perform mark_stale((select array_agg(distinct r.artifact_id) from job_run n join test_result r on r.run_id = n.id where n.job_id = new.id));
    return null;
end $$;
-- +goose StatementEnd
create trigger stale_update after update on job_queue for each row
    when ((old.kind, old.suite_hash) is distinct from (new.kind, new.suite_hash)) execute function stale_by_job();

-- Nothing is packed yet.
select mark_stale((select array_agg(distinct artifact_id) from test_result where not probe and not in_turns));
