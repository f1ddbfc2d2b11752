-- Artifacts that cannot be packed no longer keep others from being packed; and values that a
-- person removes mark their artifact as changed ones do.

-- +goose Up

-- Artifacts that could not be packed: others go on, and these wait until they are due again
-- or their results change.
create table pack_failure (
    artifact_id bigint primary key references artifact (id) on delete cascade,
    tries       integer not null,
    failed_at   timestamptz not null default now(),
    retry_at    timestamptz not null,
    reason      text not null
);

-- Whose collections or values are removed or given to another result or artifact. Those that
-- go with their result are not looked at: it has marked already.

-- +goose StatementBegin
create or replace function stale_by_collection() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        perform mark_stale((select array_agg(distinct r.artifact_id) from removed c join test_result r on r.id = c.result_id
            where not r.probe and not r.in_turns));
    else
        perform mark_stale((select array_agg(distinct r.artifact_id) from (
            select result_id from added union all select result_id from removed) c join test_result r on r.id = c.result_id));
    end if;
    return null;
end $$;
-- +goose StatementEnd
drop trigger stale_update on collection;
create trigger stale_update after update on collection referencing old table as removed new table as added for each statement execute function stale_by_collection();
create trigger stale_delete after delete on collection referencing old table as removed for each statement
    when (pg_trigger_depth() = 0) execute function stale_by_collection();

-- +goose StatementBegin
create or replace function stale_by_value() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        perform mark_stale((select array_agg(distinct artifact_id) from removed));
    else
        perform mark_stale((select array_agg(distinct artifact_id) from (
            select artifact_id from added union all select artifact_id from removed) c));
    end if;
    return null;
end $$;
-- +goose StatementEnd
drop trigger stale_update on pstat;
create trigger stale_update after update on pstat referencing old table as removed new table as added for each statement execute function stale_by_value();
create trigger stale_delete after delete on pstat referencing old table as removed for each statement
    when (pg_trigger_depth() = 0) execute function stale_by_value();
drop trigger stale_update on pstat_runtime;
create trigger stale_update after update on pstat_runtime referencing old table as removed new table as added for each statement execute function stale_by_value();
create trigger stale_delete after delete on pstat_runtime referencing old table as removed for each statement
    when (pg_trigger_depth() = 0) execute function stale_by_value();
