-- Full parts of a history are put together into longer ones, and pages read only the summaries that they show.

-- +goose Up

alter table strip
    -- The number of its points; null for parts before this migration, which stay as they are until they change.
    add column points integer,
    -- The number of its points whose values differ; null if a value is not finite. See packed.Fields.
    add column spread integer;
