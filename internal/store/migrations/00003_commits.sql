-- Where commits come from: the first-parent history of each project's branch as
-- far as it was looked at, its releases, and how the looking goes.

-- +goose Up

create table commit (
    project       text not null references project (name),
    sha           text not null,
    parent        text not null default '',  -- first parent; empty: it has none, or none is known
    position      bigint not null,           -- place along the history: a commit's is its parent's plus 1
    committed_at  timestamptz not null,
    author        text not null default '',
    subject       text not null default '',
    on_branch     boolean not null default true, -- false: the branch was rewritten since
    skipped       boolean not null default false, -- older than what was to be requested when it was first seen
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

create table commit_source (
    project       text primary key references project (name),
    repository    text not null default '',  -- that head and releases belong to
    releases      text not null default '',  -- pattern that the tags were looked at with
    head          text not null default '',  -- newest commit whose requests are all made; empty: none yet
    last_ok_at    timestamptz,
    failing_since timestamptz,               -- null: the last look succeeded
    message       text not null default '',  -- why it fails, or what is remarkable
    every_seconds integer not null default 0 -- pause of the Schedule as it was last confirmed; 0: there is none
);

-- +goose Down
drop table commit_source, release_tag, commit;
