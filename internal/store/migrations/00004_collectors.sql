-- Collectors that are invited, enrolled and kept up to date.

-- +goose Up

alter table collector_config
    add column labels         jsonb not null default '{}',
    add column benchmark_sets text[] not null default '{}';

-- What is configured for a collector's name. The invitation's token is exchanged
-- once for the collector's own one.
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
    check (enrolled_at is null or secret_hash is not null)
);

alter table access_token
    add column collector text,            -- the only collector that it opens anything for; null: any
    add check (collector is null or kind = 'collector');
create index access_token_collector on access_token (collector) where collector is not null;

create table wanted_version (
    pool    text primary key,             -- '': all pools that name none of their own
    version text not null,
    set_by  text not null,
    set_at  timestamptz not null default now()
);

-- +goose Down
drop table wanted_version;
alter table access_token drop column collector;
drop table collector_invitation;
alter table collector_config drop column labels, drop column benchmark_sets;
