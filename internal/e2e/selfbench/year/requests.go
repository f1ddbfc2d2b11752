package year

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/stats/noise"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/verdict"
)

// requests writes the project, its series, its commits and the request of each.
func (f *filling) requests(ctx context.Context) error {
	var drawn [32]byte
	random := rand.NewChaCha8(drawn)
	ids := make([]bench.RequestID, f.Artifacts)
	for n := range ids {
		id, err := bench.NewRequestID(random)
		if err != nil {
			return err
		}
		ids[n] = id
	}
	if err := f.copy(ctx, "suite_bundle", []string{"hash", "name", "archive"}, func(yield func(...any)) {
		for n := range suites {
			yield(suiteHash(n), Project, []byte{})
		}
	}); err != nil {
		return err
	}
	for _, t := range []struct {
		table   string
		columns []string
		rows    func(yield func(...any))
	}{
		{"project", []string{"name", "config"}, func(yield func(...any)) { yield(Project, "{}") }},
		{"test_case", []string{"id", "project", "benchmark", "profile", "scenario", "backend", "target"}, func(yield func(...any)) {
			for n, c := range f.tests {
				yield(caseID(n), Project, c.Benchmark, c.Profile, c.Scenario, c.Backend, string(c.Target))
			}
		}},
		{"pstat_series", []string{"id", "test_case_id", "metric"}, func(yield func(...any)) {
			for n := range f.tests {
				for m := range metrics {
					yield(seriesID(n, m), caseID(n), string(metrics[m].Metric))
				}
			}
		}},
		{"artifact", []string{"id", "project", "tag", "created_at"}, func(yield func(...any)) {
			for n, tag := range f.tags {
				yield(artifactID(n), Project, tag, f.date(n))
			}
		}},
		{"commit", []string{"project", "sha", "parent", "position", "committed_at", "author", "subject", "first_seen_at"}, func(yield func(...any)) {
			for n, tag := range f.tags {
				yield(Project, tag, f.before(n), n+1, f.date(n), "Ada Lovelace", fmt.Sprintf("Auto merge of #%d: make a part of the compiler better", 100_000+n), f.date(n))
			}
		}},
		{"release_tag", []string{"project", "tag", "sha", "tagged_at", "first_seen_at"}, func(yield func(...any)) {
			for n := releaseEvery - 1; n < f.Artifacts; n += releaseEvery {
				yield(Project, fmt.Sprintf("1.%d.0", n/releaseEvery), f.tags[n], f.date(n), f.date(n))
			}
		}},
		{"benchmark_request", []string{
			"id", "project", "type", "tag", "parent", "commit_date", "status", "outcome", "submitter", "created_at", "workflow_started_at", "admitted_at", "expanded_at",
			"jobs_done_at", "completed_at", "baseline", "summary",
		}, func(yield func(...any)) {
			for n, tag := range f.tags {
				at := f.date(n)
				var summary any
				if n > 0 {
					summary = `{"rows": 3500, "changed": 2, "text": "2 changes"}`
				}
				yield(string(ids[n]), Project, string(bench.Master), tag, none(f.before(n)), at, string(bench.Completed), string(bench.Success), "ada", at, at, at, at,
					at.Add(2*time.Hour), at.Add(3*time.Hour), none(f.before(n)), summary)
			}
		}},
		{"comparison", []string{"id", "request_id", "artifact_id", "baseline_id", "mode", "rule_version", "family_size", "state", "look", "budget_seconds", "created_at", "decided_at"}, func(yield func(...any)) {
			for n := 1; n < f.Artifacts; n++ {
				at := f.date(n).Add(3 * time.Hour)
				yield(int64(n), string(ids[n]), artifactID(n), artifactID(n-1), string(bench.VerifySuspects), verdict.RuleVersion, 2, "decided", 0, 600.0, at, at)
			}
		}},
	} {
		if err := f.copy(ctx, t.table, t.columns, t.rows); err != nil {
			return err
		}
	}
	f.requestIDs = ids
	return nil
}

// before is the tag of the commit before; empty: there is none.
func (y *Year) before(artifact int) string {
	if artifact == 0 {
		return ""
	}
	return y.tags[artifact-1]
}

// none is null for an empty text.
func none(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// jobsOfAll writes the jobs of all artifacts with their runs.
func (f *filling) jobsOfAll(ctx context.Context) error {
	documents := make([]string, f.jobs())
	for job := range documents {
		var cases []bench.TestCase
		for n, end := f.casesOf(job); n < end; n++ {
			cases = append(cases, f.tests[n].TestCase)
		}
		text, err := json.Marshal(cases)
		if err != nil {
			return err
		}
		documents[job] = string(text)
	}
	f.ids = make(map[bench.JobKey]int64)
	type one struct{ artifact, job, generation int }
	var all []one
	for n := range f.Artifacts {
		for job := range f.jobs() {
			all = append(all, one{n, job, 0})
		}
		if of := n - againAfter; of >= 0 {
			if job, measured := f.again(of); measured {
				all = append(all, one{of, job, 1})
			}
		}
	}
	for _, j := range all {
		f.lastJob++
		f.ids[f.jobKey(j.artifact, j.job, j.generation)] = f.lastJob
	}
	if err := f.copy(ctx, "job_queue", []string{
		"id", "project", "key", "tag", "artifact_id", "kind", "target", "suite_hash", "test_cases", "iterations", "size_class", "pool", "task_queue", "generation", "queue",
		"status", "message", "request_created", "created_at", "handed_out_at", "started_at", "completed_at", "submitter",
	}, func(yield func(...any)) {
		for _, j := range all {
			at := f.measuredAt(j.artifact, j.generation)
			key := f.jobKey(j.artifact, j.job, j.generation)
			status, message := bench.JobSuccess, ""
			if f.fails(j.artifact, j.job, j.generation) {
				status, message = bench.JobFailure, "a benchmark failed"
			}
			yield(f.ids[key], Project, string(key), f.tags[j.artifact], artifactID(j.artifact), string(bench.KindCompileTime), string(target), f.suite(j.artifact),
				documents[j.job], f.Values, 1, "main", "bench/"+string(target)+"/1/main", j.generation, bench.ProjectQueue+Project,
				string(status), message, f.date(j.artifact), f.date(j.artifact), at, at, at.Add(time.Hour), "ada")
		}
	}); err != nil {
		return err
	}
	if err := f.copy(ctx, "request_job", []string{"request_id", "job_id", "stage"}, func(yield func(...any)) {
		for _, j := range all {
			yield(string(f.requestIDs[j.artifact]), f.ids[f.jobKey(j.artifact, j.job, j.generation)], string(bench.StageOwn))
		}
	}); err != nil {
		return err
	}
	if err := f.copy(ctx, "job_run", []string{
		"id", "job_id", "number", "reason", "size_class", "pool", "collector", "epoch", "version", "hardware_id", "co_located", "facts", "outcome", "started_at", "finished_at",
		"output_removed_at",
	}, func(yield func(...any)) {
		for _, j := range all {
			at := f.measuredAt(j.artifact, j.generation)
			facts := fmt.Sprintf(`{"kernel": %q, "governor": "performance", "microcode": "0xa0011d1", "boot_options": "none", "turbo": false, "smt": "off", "isolation": "namespaces"}`, f.kernel(j.artifact))
			end := bench.RunSuccess
			if f.fails(j.artifact, j.job, j.generation) {
				end = bench.RunFailure
			}
			yield(string(f.run(j.artifact, j.job, j.generation)), f.ids[f.jobKey(j.artifact, j.job, j.generation)], 1, "scheduled", 1, "main", "c1", int64(1), "v1",
				f.surrounding(j.artifact).HardwareID, false, facts, string(end), at, at.Add(time.Hour), at.Add(time.Hour))
		}
	}); err != nil {
		return err
	}
	return f.readSegments(ctx)
}

// readSegments reads the segments that the record derives from the facts of runs.
func (f *filling) readSegments(ctx context.Context) error {
	rows, err := f.conn.Query(ctx, `select distinct facts ->> 'kernel', segment from job_run`)
	if err != nil {
		return err
	}
	defer rows.Close()
	f.segments = make(map[string]bench.Segment)
	for rows.Next() {
		var kernel, segment string
		if err := rows.Scan(&kernel, &segment); err != nil {
			return err
		}
		f.segments[kernel] = bench.Segment(segment)
	}
	return rows.Err()
}

// verdicts writes what comparisons found: every deciding row of the artifacts whose rows
// are written, and of the others only what has changed.
func (f *filling) verdicts(ctx context.Context) error {
	for n := 1; n < f.Artifacts; n++ {
		whole := n >= f.Artifacts-f.Rows
		where := f.surrounding(n)
		if err := f.copy(ctx, "comparison_verdict", []string{
			"comparison_id", "test_case_id", "metric", "size_class", "hardware_id", "co_located", "suspected", "measured", "score", "suspicion", "exact", "delta", "sigma_within", "tau",
			"verdict", "change", "low", "high", "confidence", "pairs", "sessions", "p", "level", "sees",
		}, func(yield func(...any)) {
			for c, t := range f.tests {
				for m, s := range t.series {
					name := metrics[m].Metric
					if !verdict.Deciding(string(name)) || t.begins >= n {
						continue
					}
					delta, change := verdict.Delta(string(name), name.Exact()), s.changed(n)
					if change > delta || -change > delta {
						yield(int64(n), caseID(c), string(name), int(where.SizeClass), where.HardwareID, where.CoLocated, true, true, 5.0, "it differs from the values before", name.Exact(), delta, s.noise, 0.3,
							verdict.Changed.String(), change, change-s.noise, change+s.noise, 0.95, 24, 2, 0.0001, 0.01, 2*s.noise)
					} else if whole {
						yield(int64(n), caseID(c), string(name), int(where.SizeClass), where.HardwareID, where.CoLocated, false, false, 0.0, "", name.Exact(), delta, s.noise, 0.3,
							verdict.NoSuspicion.String(), 0.0, nil, nil, 0.0, 0, 0, 1.0, 0.0, 2*s.noise)
					}
				}
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// noise writes the noise of deciding series, of the collector and of its pool.
func (f *filling) noise(ctx context.Context) error {
	var models []store.SeriesNoise
	for _, t := range f.tests {
		for m, s := range t.series {
			if !verdict.Deciding(string(metrics[m].Metric)) {
				continue
			}
			for _, collector := range []string{"", "c1"} {
				models = append(models, store.SeriesNoise{
					TestCase: t.TestCase, Metric: metrics[m].Metric, Surrounding: f.surrounding(f.Artifacts - 1), Collector: collector,
					Model: noise.Model{Sessions: 60, Values: 60 * f.Values, Logarithms: true, Level: s.at(f.Artifacts - 1), SigmaSession: 0.7 * s.noise, SigmaWithin: s.noise, Kappa: 0.5, Tau: 0.3},
				})
			}
		}
	}
	return f.record.PutNoise(ctx, Project, models)
}
