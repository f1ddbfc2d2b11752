-- What a comparison of two artifacts reads of thousands of rows, it finds in few.

-- +goose Up

-- Series whose noise is notable.
create index noise_model_notable on noise_model (test_case_id) where collector = '' and model ?| array['labels', 'lenders'];

-- Rows that say more than that nothing was suspected; see quietRow.
create index comparison_verdict_told on comparison_verdict (comparison_id)
    where (verdict = 'no suspicion' and not suspected and not measured and against_id is null and suspicion = '' and needs = ''
        and change = 0 and low is null and confidence = 0 and pairs = 0 and sessions = 0 and disturbed = 0 and p = 1 and level = 0) is not true;

-- The collections of a result, so that they need not be read; null for results before this
-- migration.
alter table test_result
    add column iterations integer,
    add column first_collected_at timestamptz,
    add column last_collected_at timestamptz;

create or replace view latest_result as
select distinct on (artifact_id, test_case_id, size_class, hardware_id, co_located)
    id, artifact_id, test_case_id, size_class, hardware_id, co_located, generation, run_id, status, message,
    iterations, first_collected_at, last_collected_at
from test_result
where invalid_at is null and not probe and not in_turns
order by artifact_id, test_case_id, size_class, hardware_id, co_located, generation desc;
