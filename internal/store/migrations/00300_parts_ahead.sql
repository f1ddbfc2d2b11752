-- Postgres reads the pages of a table ahead, but not what a row keeps outside of them: what pages of histories show stays inside.

-- +goose Up

alter table strip
    -- The bytes behind those of packed: summaries that pages do not show. Null if packed has all of them, as in parts before this
    -- migration, which stay as they are until they change, and in those with a value that is not finite.
    add column rest bytea;
alter table strip alter column packed set storage main, alter column rest set storage external;
alter table strip set (toast_tuple_target = 8160);
-- Leads to the parts with artifacts of a range.
create index strip_range on strip (series_id, last_artifact, first_artifact);
