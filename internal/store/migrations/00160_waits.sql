-- Waiting times of jobs, apart from the time in which they could not run.

-- +goose Up

-- The time within which a job of the queue should start; null: the default.
alter table queue_config add column wait_objective_seconds integer check (wait_objective_seconds between 1 and 604800);

-- Since when a job is put aside, and when it was before: an array of {why, since, until}.
alter table job_queue add column held_since timestamptz;
alter table job_queue add column holds jsonb not null default '[]';

-- A job that is released by mistake is put aside again by the next hand-out, within ten
-- seconds: it could not run in between. The last hundred times are told apart.
-- +goose StatementBegin
create function note_hold() returns trigger language plpgsql as $$
declare
    last jsonb := new.holds -> -1;
begin
    if old.held <> '' and old.held_since < now() then
        if last ->> 'why' = old.held and old.held_since - (last ->> 'until')::timestamptz < interval '10 seconds' then
            new.holds := jsonb_set(new.holds, array['-1', 'until'], to_jsonb(now()));
        else
            if jsonb_array_length(new.holds) >= 100 then
                new.holds := new.holds - 0;
            end if;
            new.holds := new.holds || jsonb_build_object('why', old.held, 'since', old.held_since, 'until', now());
        end if;
    end if;
    new.held_since := case when new.held <> '' then now() end;
    return new;
end $$;
-- +goose StatementEnd
create trigger note_hold before update of held on job_queue for each row when (old.held is distinct from new.held) execute function note_hold();
-- It is not known since when, or why, at most since they were written.
update job_queue set held_since = now() where status = 'queued' and held <> '';

-- Pauses that have ended.
create table queue_pause_past (
    id      bigint generated always as identity primary key,
    project text not null,
    since   timestamptz not null,
    until   timestamptz not null
);
create index queue_pause_past_by_project on queue_pause_past (project, until);
create index queue_pause_past_old on queue_pause_past (until);

-- +goose StatementBegin
create function note_pause() returns trigger language plpgsql as $$
begin
    delete from queue_pause_past where id in (
        select id from queue_pause_past where until < now() - interval '90 days' order by id for update skip locked);
    insert into queue_pause_past (project, since, until) values (old.project, old.paused_at, now());
    return null;
end $$;
-- +goose StatementEnd
create trigger note_pause after delete on queue_pause for each row execute function note_pause();

-- When an account had as much under way as its limit allows, as hand-outs have found. Of
-- the jobs of its own queue, no hand-out looks at those behind the first that may not go.
create table account_limited (
    id      bigint generated always as identity primary key,
    account text not null,
    since   timestamptz not null default now(),
    until   timestamptz                   -- null: it still has
);
create unique index account_limited_open on account_limited (account) where until is null;
create index account_limited_by_account on account_limited (account, until);
create index account_limited_old on account_limited (until);

-- When collectors could take jobs, and where. A period without an end lasts until the
-- collector's available_at, or still lasts if that is recent.
create table collector_presence (
    id         bigint generated always as identity primary key,
    collector  text not null,
    target     text not null,
    size_class integer not null,
    task_queue text not null,             -- of its pool
    since      timestamptz not null,
    until      timestamptz                -- null: see above
);
create unique index collector_presence_open on collector_presence (collector) where until is null;
create index collector_presence_by_collector on collector_presence (collector, until);
create index collector_presence_by_task_queue on collector_presence (task_queue, until);
create index collector_presence_old on collector_presence (until);

-- +goose StatementBegin
create function note_presence() returns trigger language plpgsql as $$
begin
    if tg_op <> 'INSERT' then
        delete from collector_presence where id in (
            select id from collector_presence where until < now() - interval '90 days' order by id for update skip locked);
        update collector_presence set until = greatest(since, old.available_at) where collector = old.name and until is null;
    end if;
    if tg_op <> 'DELETE' then
        insert into collector_presence (collector, target, size_class, task_queue, since)
        values (new.name, new.target, new.size_class, 'bench/' || new.target || '/' || new.size_class || '/' || new.pool, new.available_at);
    end if;
    return null;
end $$;
-- +goose StatementEnd
create trigger note_presence_insert after insert on collector_config for each row execute function note_presence();
create trigger note_presence_delete after delete on collector_config for each row execute function note_presence();
-- A collector is live for 30 s after it was heard of: only a longer silence is an absence.
create trigger note_presence_update after update on collector_config for each row
    when (new.available_at > old.available_at + interval '30 seconds'
        or (old.name, old.target, old.size_class, old.pool) is distinct from (new.name, new.target, new.size_class, new.pool))
    execute function note_presence();
insert into collector_presence (collector, target, size_class, task_queue, since)
select name, target, size_class, 'bench/' || target || '/' || size_class || '/' || pool, least(registered_at, available_at) from collector_config;

-- How long the job of a run had waited when it began.
create table run_wait (
    run_id            text primary key references job_run (id) on delete cascade,
    project           text not null,
    queue             text not null,
    pool              text not null,      -- the task queue of the pool where it ran
    ready_at          timestamptz not null, -- when the job was written, or its former run ended
    runnable_at       timestamptz not null, -- the first moment at which nothing kept it from running
    waited            double precision not null, -- seconds, without those in which something did
    blocked_turn      double precision not null, -- seconds, by the reason
    blocked_pause     double precision not null,
    blocked_limit     double precision not null,
    blocked_collector double precision not null
);
create index run_wait_by_time on run_wait (runnable_at);
