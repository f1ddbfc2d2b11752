-- Graph templates: the definitions of projects.

-- +goose Up

-- The files of a definitions folder, by its content hash. They never change.
create table definitions (
    hash       text primary key,
    files      jsonb not null, -- texts by name
    created_at timestamptz not null default now()
);

-- Who gave a project which definitions. The newest push counts for branches that use no others.
create table definitions_push (
    id        bigint generated always as identity primary key,
    project   text not null references project (name) on delete cascade,
    hash      text not null references definitions (hash),
    source    text not null default '', -- where they are from, such as repository@revision, as branches name it; empty: not said
    pushed_by text not null,
    pushed_at timestamptz not null default now()
);
create index definitions_push_by_project on definitions_push (project, id desc);
create index definitions_push_by_source on definitions_push (project, source, id desc);
