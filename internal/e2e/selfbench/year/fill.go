package year

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

const (
	// packedTogether is the number of artifacts that are packed together, as by a service
	// that was behind; one after the other would take five times as long.
	packedTogether = 16
	// inProgress is the number of artifacts whose jobs are measured at the same time.
	inProgress = 4
	// toldEvery is the number of artifacts after which progress is told.
	toldEvery = 160
)

// Fill writes the year into a migrated record without projects, whose account may do
// everything. A record that was not filled to the end is of no use.
func (y *Year) Fill(ctx context.Context, url string, progress func(string, ...any)) (err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connecting to the record of the year: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	record, err := store.Open(ctx, url)
	if err != nil {
		return err
	}
	defer record.Close()
	f := &filling{Year: y, conn: conn, record: record, progress: progress, begun: time.Now()}
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"the project and its requests", f.requests},
		{"jobs", f.jobsOfAll},
		{"verdicts", f.verdicts},
		{"noise", f.noise},
		{"sheets and histories", f.packed},
		{"rows of results", f.rows},
		{"numbers of rows", f.sequences},
		{"statistics of tables", f.vacuum},
	} {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("making a year: writing %s: %w", step.what, err)
		}
		progress("a year: %s are written after %s", step.what, time.Since(f.begun).Round(time.Second))
	}
	return nil
}

// filling is a year that is being written.
type filling struct {
	*Year
	conn     *pgx.Conn
	record   *store.Store
	progress func(string, ...any)
	begun    time.Time
	// segments by kernel, as the record derives them from runs.
	segments   map[string]bench.Segment
	requestIDs []bench.RequestID // by artifact
	// ids leads from jobs to their rows.
	ids                                 map[bench.JobKey]int64
	lastJob, lastResult, lastCollection int64
}

// copy writes rows into a table.
func (f *filling) copy(ctx context.Context, table string, columns []string, rows func(yield func(...any))) error {
	var all [][]any
	rows(func(row ...any) { all = append(all, row) })
	_, err := f.conn.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromRows(all))
	if err != nil {
		return fmt.Errorf("table %s: %w", table, err)
	}
	return nil
}

// packed packs the artifacts of which nothing else is kept, a few at once. What is measured
// again is packed alone, as in a service that is not behind.
func (f *filling) packed(ctx context.Context) error {
	last := f.Artifacts - f.Rows
	for from := 0; from < last; from += packedTogether {
		to := min(last, from+packedTogether)
		var some []store.ArtifactSheets
		for n := from; n < to; n++ {
			some = append(some, f.sheets(n, f.segment(n), f.latest(n, false)))
		}
		if err := f.record.PackSheets(ctx, Project, some); err != nil {
			return err
		}
		due := to - againAfter
		if to == last {
			due = min(last, f.Artifacts-againAfter)
		}
		for n := max(0, from-againAfter); n < due; n++ {
			if _, measured := f.again(n); !measured {
				continue
			}
			if err := f.record.PackSheets(ctx, Project, []store.ArtifactSheets{f.sheets(n, f.segment(n), f.latest(n, true))}); err != nil {
				return err
			}
		}
		if to/toldEvery > from/toldEvery {
			f.progress("a year: %d of %d artifacts after %s", to, f.Artifacts, time.Since(f.begun).Round(time.Second))
		}
	}
	return nil
}

func (f *filling) segment(artifact int) bench.Segment { return f.segments[f.kernel(artifact)] }

// rows writes the rows of the newest artifacts, and has them packed as a service does.
func (f *filling) rows(ctx context.Context) error {
	for from := f.Artifacts - f.Rows; from < f.Artifacts; from += inProgress {
		to := min(f.Artifacts, from+inProgress)
		for job := range f.jobs() {
			if err := f.results(ctx, job, 0, from, to); err != nil {
				return err
			}
		}
		for n := max(f.Artifacts-f.Rows, from-againAfter); n < to-againAfter; n++ {
			if job, measured := f.again(n); measured {
				if err := f.results(ctx, job, 1, n, n+1); err != nil {
					return err
				}
			}
		}
		if done := to - (f.Artifacts - f.Rows); to == f.Artifacts || done%packedTogether == 0 {
			if err := f.pack(ctx); err != nil {
				return err
			}
		}
		if to/toldEvery > from/toldEvery {
			f.progress("a year: %d of %d artifacts after %s", to, f.Artifacts, time.Since(f.begun).Round(time.Second))
		}
	}
	return nil
}

// pack packs what is due.
func (f *filling) pack(ctx context.Context) error {
	for {
		n, err := f.record.PackResults(ctx, Project)
		if err != nil || n == 0 {
			return err
		}
	}
}

// results writes the rows of a job of several artifacts that are measured at the same time:
// one test case of each after the other.
func (f *filling) results(ctx context.Context, job, generation, from, to int) error {
	outcomes := make([][]outcome, to-from)
	for i := range outcomes {
		outcomes[i] = f.measure(from+i, generation)
	}
	var measured, results, collections, values, failures [][]any
	first, last := f.casesOf(job)
	for n := first; n < last; n++ {
		for i := range outcomes {
			artifact, o := from+i, outcomes[i][n]
			if !o.there {
				continue
			}
			key, run := f.jobKey(artifact, job, generation), f.run(artifact, job, generation)
			measured = append(measured, []any{f.ids[key], caseID(n), n - first, artifactID(artifact)})
			if o.failed {
				failures = append(failures, []any{string(run), caseID(n), f.tests[n].String(), string(bench.FailJob), "exit status 101", f.measuredAt(artifact, generation)})
				continue
			}
			f.lastResult++
			at, disturbances, cause := f.measuredAt(artifact, generation).Add(time.Duration(n)*time.Second), 0, ""
			if o.disturbed {
				disturbances, cause = 1, disturbedCause
			}
			where := f.surrounding(artifact)
			results = append(results, []any{f.lastResult, artifactID(artifact), caseID(n), int(where.SizeClass), where.HardwareID, where.CoLocated, generation, string(run), "ok", at, disturbances, cause, f.Values, at, at})
			for v, iteration := range f.iterations() {
				text := ""
				if o.disturbed && iteration == disturbedIteration {
					text = disturbedText
				}
				f.lastCollection++
				collections = append(collections, []any{f.lastCollection, f.lastResult, iteration, at, text, `{"load": 0.1, "steal": 0, "duration_seconds": 1.25}`})
				for m := range metrics {
					values = append(values, []any{seriesID(n, m), artifactID(artifact), f.lastCollection, o.of(m)[v]})
				}
			}
		}
	}
	return pgx.BeginFunc(ctx, f.conn, func(pgx.Tx) error {
		for _, t := range []struct {
			table   string
			columns []string
			rows    [][]any
		}{
			{"job_test_case", []string{"job_id", "test_case_id", "place", "artifact_id"}, measured},
			{"test_result", []string{"id", "artifact_id", "test_case_id", "size_class", "hardware_id", "co_located", "generation", "run_id", "status", "created_at", "disturbed", "disturbed_by", "iterations", "first_collected_at", "last_collected_at"}, results},
			{"collection", []string{"id", "result_id", "iteration", "collected_at", "disturbed", "facts"}, collections},
			{"pstat", []string{"series_id", "artifact_id", "collection_id", "value"}, values},
			{"error", []string{"run_id", "test_case_id", "context", "kind", "message", "created_at"}, failures},
		} {
			if err := f.copy(ctx, t.table, t.columns, func(yield func(...any)) {
				for _, row := range t.rows {
					yield(row...)
				}
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// measuredAt is when a job of an artifact began.
func (f *filling) measuredAt(artifact, generation int) time.Time {
	return f.date(artifact).Add(time.Hour + time.Duration(generation)*24*time.Hour)
}

// sequences continues the numbers of rows behind those that were written.
func (f *filling) sequences(ctx context.Context) error {
	for _, table := range []string{"artifact", "job_queue", "test_case", "pstat_series", "test_result", "collection", "comparison"} {
		if _, err := f.conn.Exec(ctx, `select setval(pg_get_serial_sequence('`+table+`', 'id'), greatest(1, coalesce(max(id), 1))) from `+table); err != nil {
			return err
		}
	}
	return nil
}

// vacuum leaves the tables as in a service that had a quiet night.
func (f *filling) vacuum(ctx context.Context) error {
	_, err := f.conn.Exec(ctx, `vacuum (analyze)`)
	return err
}
