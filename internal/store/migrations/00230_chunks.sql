-- Jobs that are divided into chunks as machines ask for work.

-- +goose Up

alter table job_queue add column chunk integer not null default 0; -- number of the part, from 1; 0: it is none
alter table job_queue add column chunk_set text;                   -- shared by the parts of one job until a later one has their place; null: it is none
alter table job_queue add column chunk_of integer not null default 0;  -- how many parts there are at most
alter table job_queue add column chunk_min integer not null default 0; -- and at least
create index job_queue_chunks on job_queue (chunk_set) where chunk_set is not null;
