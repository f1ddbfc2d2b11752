-- The noise of a collector beside that of its pool.

-- +goose Up

create index noise_model_by_collector on noise_model (collector, size_class, hardware_id, co_located);
