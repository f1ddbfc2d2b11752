-- A comparison of two artifacts looks for the few series whose noise is notable.

-- +goose Up

create index noise_model_notable on noise_model (test_case_id) where collector = '' and model ?| array['labels', 'lenders'];
