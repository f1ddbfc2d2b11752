-- Why a job has its size class is what was known when the class was selected, not what
-- is known when somebody asks.

-- +goose Up

alter table job_queue add column selected_why text not null default ''; -- why that class was selected, in a sentence

-- +goose Down

alter table job_queue drop column selected_why;
