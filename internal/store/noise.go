package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/stats/noise"
)

// SeriesNoise is the noise of a series in a surrounding.
type SeriesNoise struct {
	TestCase bench.TestCase
	Metric   bench.Metric
	bench.Surrounding
	// Collector is empty for the model of all collectors of the surrounding together.
	Collector string
	Model     noise.Model
}

// PutNoise stores the models of series of a project, in place of former ones. Their test
// cases are recorded already.
func (s *Store) PutNoise(ctx context.Context, project string, models []SeriesNoise) error {
	if len(models) == 0 {
		return nil
	}
	cases := make([]bench.TestCase, len(models))
	metrics, hardware, collectors, documents := make([]string, len(models)), make([]string, len(models)), make([]string, len(models)), make([]string, len(models))
	classes, sessions, coLocated := make([]int, len(models)), make([]int, len(models)), make([]bool, len(models))
	for i, m := range models {
		text, err := json.Marshal(m.Model)
		if err != nil {
			return fmt.Errorf("encoding the noise of %s: %w", m.TestCase, err)
		}
		cases[i], metrics[i], hardware[i], collectors[i], documents[i] = m.TestCase, string(m.Metric), m.HardwareID, m.Collector, string(text)
		classes[i], sessions[i], coLocated[i] = int(m.SizeClass), m.Model.Sessions, m.CoLocated
	}
	args := testCaseArgs(project, cases)
	for name, v := range map[string]any{
		"metrics": metrics, "hardware": hardware, "collectors": collectors, "models": documents, "classes": classes, "sessions": sessions, "co_located": coLocated,
	} {
		args[name] = v
	}
	return s.inTx(ctx, "storing the noise of the series of project "+project, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			insert into noise_model as n (test_case_id, metric, size_class, hardware_id, co_located, collector, sessions, model)
			select tc.id, t.metric, t.size_class, t.hardware_id, t.co_located, t.collector, t.sessions, t.model::jsonb
			from unnest(@benchmarks::text[], @profiles::text[], @scenarios::text[], @backends::text[], @targets::text[],
				@metrics::text[], @classes::int[], @hardware::text[], @co_located::boolean[], @collectors::text[], @sessions::int[], @models::text[])
				as t (benchmark, profile, scenario, backend, target, metric, size_class, hardware_id, co_located, collector, sessions, model)
			join test_case tc on tc.project = @project and tc.benchmark = t.benchmark and tc.profile = t.profile
				and tc.scenario = t.scenario and tc.backend = t.backend and tc.target = t.target
			order by tc.id, t.metric, t.size_class, t.hardware_id, t.co_located, t.collector -- so that two never wait for each other
			on conflict (test_case_id, metric, size_class, hardware_id, co_located, collector) do update set
				sessions = excluded.sessions, model = excluded.model, updated_at = now()`, args)
		return err
	})
}

// Noise reads the models of a project's series on a target.
func (s *Store) Noise(ctx context.Context, project string, target bench.Target) ([]SeriesNoise, error) {
	models, err := all[SeriesNoise](ctx, s.reports, `
		select `+testCaseDocument+` as test_case, n.metric, n.size_class, n.hardware_id, n.co_located, n.collector, n.model
		from noise_model n join test_case tc on tc.id = n.test_case_id
		where tc.project = $1 and tc.target = $2
		order by tc.id, n.metric, n.size_class, n.hardware_id, n.co_located, n.collector`, project, target)
	return models, wrap("reading the noise of the series of project "+project, err)
}

// NotableNoise reads, of a project's series on targets, the models of all collectors together
// about which a comparison says something: those with labels or a lent spread, and all of some
// test cases; each with those of the same series in other surroundings.
func (s *Store) NotableNoise(ctx context.Context, project string, targets []bench.Target, of []bench.TestCase) ([]SeriesNoise, error) {
	args := testCaseArgs(project, of)
	args["of_targets"] = texts(targets)
	models, err := all[SeriesNoise](ctx, s.reports, `
		with asked as (
			select tc.id from unnest(@benchmarks::text[], @profiles::text[], @scenarios::text[], @backends::text[], @targets::text[])
				as t (benchmark, profile, scenario, backend, target)
			join test_case tc on tc.project = @project and tc.benchmark = t.benchmark and tc.profile = t.profile
				and tc.scenario = t.scenario and tc.backend = t.backend and tc.target = t.target
			where tc.target = any(@of_targets::text[])
		), notable as materialized (
			select n.test_case_id, n.metric from noise_model n join test_case tc on tc.id = n.test_case_id
			where tc.project = @project and tc.target = any(@of_targets::text[]) and n.collector = '' and n.model ?| array['labels', 'lenders']
			union
			select n.test_case_id, n.metric from asked join noise_model n on n.test_case_id = asked.id and n.collector = ''
		)
		select `+testCaseDocument+` as test_case, n.metric, n.size_class, n.hardware_id, n.co_located, n.collector, n.model
		from notable k join noise_model n on n.test_case_id = k.test_case_id and n.metric = k.metric and n.collector = ''
		join test_case tc on tc.id = n.test_case_id
		order by tc.id, n.metric, n.size_class, n.hardware_id, n.co_located`, args)
	return models, wrap("reading the noise of the series of project "+project, err)
}
