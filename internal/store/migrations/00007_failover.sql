-- Jobs that wait at a pool without a live collector move to another pool.

-- +goose Up

-- When the collector could last take jobs: it was active and was heard of. A
-- collector that is drained is heard of all the same.
alter table collector_config add column available_at timestamptz not null default now();
update collector_config set available_at = last_heartbeat;

-- Where a job has moved from: the task queue of its pool before; null for one
-- that is where it was placed.
alter table job_queue add column moved_from text, add column moved_at timestamptz,
    add check ((moved_from is null) = (moved_at is null));
create index job_queue_moved on job_queue (moved_at) where moved_at is not null and status in ('handed_out', 'in_progress');

-- +goose Down
drop index job_queue_moved;
alter table job_queue drop column moved_from, drop column moved_at;
alter table collector_config drop column available_at;
