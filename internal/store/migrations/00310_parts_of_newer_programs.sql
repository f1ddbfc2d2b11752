-- Programs from before parts of histories had a rest take those that have one for damaged, and would derive them anew again and
-- again. They end instead.

-- +goose Up

update schema_compatibility set oldest_program = greatest(oldest_program, 300);
