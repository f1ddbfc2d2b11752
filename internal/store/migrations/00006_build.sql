-- Artifacts that are built from revisions: what was built, and what each tag is
-- built as.

-- +goose Up

alter table job_queue drop constraint job_queue_kind_check;
alter table job_queue add constraint job_queue_kind_check check (kind in ('compiletime', 'runtime', 'command', 'build'));
alter table job_queue add column build jsonb; -- bench.BuildSpec of a build job
alter table job_queue add constraint job_queue_build_check check ((kind = 'build') = (build is not null));
create index job_queue_by_build on job_queue ((build ->> 'key')) where kind = 'build';

-- What an artifact is built as, by its tag: found when a request is expanded.
create table build_revision (
    project   text not null references project (name),
    tag       text not null,
    target    text not null,
    recipe    text not null,              -- bench.BuildRecipe.Hash: another recipe is another build
    build_key text not null,              -- bench.BuildKey
    primary key (project, tag, target, recipe)
);
create index build_revision_by_key on build_revision (build_key);

-- What is stored, whole and verified.
create table build (
    key        text primary key,
    project    text not null references project (name),
    tree       text not null,
    target     text not null,
    size       bigint not null,           -- bytes of the archive
    sha256     text not null,             -- of the archive
    run_id     text not null,             -- the run that built it, whose pieces are its content
    created_at timestamptz not null default now(),
    last_used  timestamptz not null default now()
);

-- Pieces of archives, also of uploads under way.
create table build_chunk (
    run_id text not null,
    number integer not null check (number >= 0),
    data   bytea not null,
    primary key (run_id, number)
);
alter table build_chunk alter column data set storage external; -- compressed already

-- +goose Down
drop table build_chunk, build, build_revision;
delete from job_queue where kind = 'build';
alter table job_queue drop constraint job_queue_build_check;
alter table job_queue drop column build;
alter table job_queue drop constraint job_queue_kind_check;
alter table job_queue add constraint job_queue_kind_check check (kind in ('compiletime', 'runtime', 'command'));
