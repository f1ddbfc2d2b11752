-- Files that the commands of graphs keep.

-- +goose Up

create table run_file (
    run_id     text not null references job_run (id) on delete cascade,
    path       text not null,   -- relative to the job's directory, with slashes
    digest     text not null,   -- SHA-256 of the content, in hexadecimal: the name of the file in the blob store
    size       bigint not null, -- bytes
    created_at timestamptz not null default now(),
    primary key (run_id, path)
);
create index run_file_by_digest on run_file (digest);
