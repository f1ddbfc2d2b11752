-- What the reconciliation found missing in Temporal and started again.

-- +goose Up

create table workflow_repair (
    id          bigint generated always as identity primary key,
    workflow_id text not null,
    project     text not null,
    found       text not null,            -- protocol.WorkflowStatus of what was there
    done        text not null,            -- what was done about it, in words
    at          timestamptz not null default now()
);
create index workflow_repair_of on workflow_repair (workflow_id, at desc);
create index workflow_repair_old on workflow_repair (at);

-- +goose Down
drop table workflow_repair;
