-- Jobs that a person asks for several times by one call.

-- +goose Up

alter table job_queue add column again integer not null default 0; -- further times that it runs, one after the other
