package store

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// CreateCommands records an ad-hoc request for commands together with its jobs, all or
// nothing. The request needs no admission and depends on nothing stored, so its jobs
// wait from the start. Its workflow starts with the first job handed out. The database
// sets the times.
//
// Jobs are read one by one within the transaction, so that memory use does not grow with
// their number; the iterator must not call the store. Their keys are new, as they contain
// the request's ID. An error from the iterator is returned unchanged, and nothing is
// recorded.
//
// If the submitter has used the idempotency key before, that request is returned and no
// job is read; if it differs, the error is ErrConflict. ErrNotFound reports an unknown
// project.
func (s *Store) CreateCommands(ctx context.Context, r bench.Request, jobs iter.Seq2[bench.PlannedJob, error]) (stored bench.Request, created bool, err error) {
	r.Status, r.Deferred = bench.InProgress, true
	err = s.inTx(ctx, "creating request "+string(r.ID), func(tx pgx.Tx) error {
		if stored, created, err = createRequest(ctx, tx, r); err != nil || !created {
			return err
		}
		w := commandWriter{tx: tx, request: stored, cases: make(map[bench.TestCase]bool)}
		for j, err := range jobs {
			if err != nil {
				return err
			}
			if err := w.add(ctx, j); err != nil {
				return err
			}
		}
		if err := w.flush(ctx); err != nil {
			return err
		}
		if err := w.sets.record(ctx, tx); err != nil {
			return err
		}
		if err := countWaiting(ctx, tx, w.written); err != nil {
			return err
		}
		return mayWait(ctx, tx, r.Submitter, w.written)
	})
	return stored, created && err == nil, err
}

// countWaiting updates Postgres's statistics after many jobs were written. Left alone,
// Postgres would notice within a minute, and until then read all jobs for each job.
func countWaiting(ctx context.Context, tx pgx.Tx, written int) error {
	if written < commandsAtOnce {
		return nil
	}
	_, err := tx.Exec(ctx, `analyze job_queue (id, project, task_queue, queue, status, kind, constraints, submitter, submitted_with, request_created), request_job, job_test_case`)
	return err
}

// commandsAtOnce is the number of jobs written by one statement.
const commandsAtOnce = 1000

// commandWriter writes the jobs of a request for commands, many per statement.
type commandWriter struct {
	tx      pgx.Tx
	request bench.Request
	waiting []bench.PlannedJob
	written int
	cases   map[bench.TestCase]bool // recorded already
	sets    placeSets
}

func (w *commandWriter) add(ctx context.Context, j bench.PlannedJob) error {
	if err := j.Validate(); err != nil {
		return fmt.Errorf("job %s: %w", j.Key, err)
	}
	if j.Kind != bench.KindCommand || j.Project != w.request.Project {
		return fmt.Errorf("job %s is not a command of project %s", j.Key, w.request.Project)
	}
	w.sets.add(j.At())
	if w.waiting = append(w.waiting, j); len(w.waiting) < commandsAtOnce {
		return nil
	}
	return w.flush(ctx)
}

func (w *commandWriter) flush(ctx context.Context) error {
	if len(w.waiting) == 0 {
		return nil
	}
	if err := w.recordCases(ctx); err != nil {
		return err
	}
	rows, err := w.columns()
	if err != nil {
		return err
	}
	tag, err := w.tx.Exec(ctx, `
		with line as (
			select * from unnest(@keys::text[], @targets::text[], @commands::jsonb[], @cases::jsonb[], @iterations::integer[], @classes::integer[],
				@pools::text[], @task_queues::text[], @queues::text[], @weights::real[], @priorities::integer[], @branches::text[], @constraints::jsonb[],
				@shapes::text[], @lines::integer[], @names::text[], @affinities::float8[]) as t (key, target, command, test_cases, iterations, size_class,
				pool, task_queue, queue, weight, priority, branch, constraints, shape, place, name, affinity)
		), own as (
			insert into artifact (project, tag) select @project, key from line returning id, tag
		), job as (
			insert into job_queue (project, key, artifact_id, kind, target, test_cases, iterations, command, size_class, pool, task_queue,
				queue, weight, priority, status, request_created, submitter, branch, constraints, shape, place, name, submitted_with, affinity_until)
			select @project, l.key, own.id, 'command', l.target, l.test_cases, l.iterations, l.command, l.size_class, l.pool, l.task_queue,
				l.queue, l.weight, l.priority, 'queued', @created, @submitter, l.branch, l.constraints, l.shape, l.place, l.name, @request,
				case when l.affinity > 0 then now() + make_interval(secs => l.affinity) end
			from line l join own on own.tag = l.key order by l.place
			returning id, artifact_id, test_cases, target
		), waits as (
			insert into request_job (request_id, job_id, stage, optional) select @request, id, 'own', false from job
		)
		insert into job_test_case (job_id, artifact_id, test_case_id, place)
		select j.id, j.artifact_id, tc.id, 1
		from job j join test_case tc on tc.project = @project and tc.target = j.target and tc.benchmark = j.test_cases #>> '{0,benchmark}'
			and tc.profile = '' and tc.scenario = '' and tc.backend = ''`, rows)
	if err != nil {
		return unknownReference(err)
	}
	if tag.RowsAffected() != int64(len(w.waiting)) {
		return fmt.Errorf("%d of %d jobs were written", tag.RowsAffected(), len(w.waiting))
	}
	w.written += len(w.waiting)
	w.waiting = w.waiting[:0]
	return nil
}

// recordCases records the test cases of the jobs to be written, one per target.
func (w *commandWriter) recordCases(ctx context.Context) error {
	var missing []bench.TestCase
	for _, j := range w.waiting {
		tc := j.TestCases[0]
		if !w.cases[tc] {
			w.cases[tc] = true
			missing = append(missing, tc)
		}
	}
	return recordTestCases(ctx, w.tx, w.request.Project, missing)
}

// columns returns the jobs to be written as parallel arrays.
func (w *commandWriter) columns() (pgx.NamedArgs, error) {
	n := len(w.waiting)
	texts := make(map[string][]string)
	numbers := make(map[string][]int)
	weights, affinities := make([]float64, n), make([]float64, n)
	documents := map[string][]*string{"commands": make([]*string, n), "cases": make([]*string, n), "constraints": make([]*string, n)}
	for i, j := range w.waiting {
		for name, value := range map[string]string{
			"keys": string(j.Key), "targets": string(j.Target), "pools": j.Pool, "task_queues": j.TaskQueue, "queues": j.Queue,
			"branches": j.Branch, "shapes": j.Shape, "names": j.Name,
		} {
			texts[name] = append(texts[name], value)
		}
		for name, value := range map[string]int{
			"iterations": j.Iterations, "classes": int(j.SizeClass), "priorities": j.Priority, "lines": j.Line,
		} {
			numbers[name] = append(numbers[name], value)
		}
		weights[i], affinities[i] = j.Weight, j.AffinityFor.Seconds()
		var err error
		if documents["commands"][i], err = jsonText(j.Command); err != nil {
			return nil, err
		}
		if documents["cases"][i], err = jsonText(j.TestCases); err != nil {
			return nil, err
		}
		if j.Constraints == nil {
			continue
		}
		if documents["constraints"][i], err = jsonText(j.Constraints); err != nil {
			return nil, err
		}
	}
	out := pgx.NamedArgs{
		"project": w.request.Project, "request": w.request.ID, "created": w.request.CreatedAt, "submitter": w.request.Submitter, "weights": weights, "affinities": affinities,
	}
	for name, values := range texts {
		out[name] = values
	}
	for name, values := range numbers {
		out[name] = values
	}
	for name, values := range documents {
		out[name] = values
	}
	return out, nil
}

func jsonText(value any) (*string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encoding a job: %w", err)
	}
	out := string(text)
	return &out, nil
}
