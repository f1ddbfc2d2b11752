-- Tokens that commands create, list, rotate and revoke.

-- +goose Up

-- A token has an ID that is no secret. Rotating it adds a row with the same ID for the new
-- secret; the row of the former one is 'replaced' and ends with its overlap.
alter table access_token
    add column id          text not null default ('t' || substr(replace(gen_random_uuid()::text, '-', ''), 1, 10)), -- bench.TokenID
    add column project     text references project (name), -- the only project that it may change; null: any
    add column created_by  text not null default '',       -- the account of the command; '': a token file, or an enrolment
    add column expires_at  timestamptz,                    -- null: never
    add column replaced_at timestamptz,                    -- null: the newest secret of its ID
    add column revoked_at  timestamptz,
    add constraint access_token_project_check check (project is null or role in ('writer', 'admin'));
create unique index access_token_id on access_token (id) where replaced_at is null;
create index access_token_by_id on access_token (id);
