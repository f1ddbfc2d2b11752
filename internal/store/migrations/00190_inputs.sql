-- Jobs that wait for the end of others, and graphs of what is retriggered.

-- +goose Up

alter table job_queue drop constraint job_queue_held_check;
alter table job_queue add constraint job_queue_held_check check (held in ('', 'turn', 'input', 'pause', 'cap'));
create index job_queue_without_input on job_queue (id) where status = 'queued' and held = 'input';
create index graph_edge_by_job on graph_edge (to_job);
create index graph_edge_by_input on graph_edge (from_job);

alter table run_wait add column blocked_input double precision not null default 0; -- seconds

alter table graph drop constraint graph_reason_check;
alter table graph add constraint graph_reason_check
    check (reason in ('build', 'parent', 'own', 'verify', 'retry', 'remeasure', 'retrigger'));
