package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// Expansion holds the jobs of one stage of a request.
type Expansion struct {
	Stage bench.Stage
	// Jobs are written unless they exist; Shared exist already. The request waits for
	// both.
	Jobs   []bench.PlannedJob
	Shared []bench.JobKey
	// OnlyMissing requires that Jobs cover only test cases that are neither measured nor
	// being measured, and that Shared are open; otherwise the expansion fails with
	// ErrStale.
	OnlyMissing bool
	// Queue is the queue of the request's jobs. Existing jobs at a later level move to
	// it; empty: none moves.
	Queue string
	// Optional targets block neither the request nor its children.
	Optional map[bench.Target]bool
	// Template says to which nodes the jobs belong; nil: to a stage.
	Template *TemplateGraph
}

// ExpandRequest writes the jobs of a request's stage and links the request to them. An
// existing job is shared whatever its status: a job that has ended does not run again.
// The stage [bench.StageOwn] marks the request as expanded. New links are a graph of the
// request's set. ErrConflict reports that the request is completed, or that another
// project has a job with the same key; a graph.SizeError that the stage has too many.
func (s *Store) ExpandRequest(ctx context.Context, id bench.RequestID, e Expansion) error {
	return s.inTx(ctx, "writing the jobs of request "+string(id), func(tx pgx.Tx) error {
		for _, project := range projectsOf(e.Jobs) {
			if err := lockJobWriting(ctx, tx, project); err != nil {
				return err
			}
		}
		r, err := lockRequest(ctx, tx, id)
		if err != nil {
			return err
		}
		if r.Status == bench.Completed {
			return fmt.Errorf("%w: it has ended as %s", ErrConflict, r.Outcome)
		}
		if e.OnlyMissing {
			if err := checkFresh(ctx, tx, id, e); err != nil {
				return err
			}
		}
		keys, wanted := slices.Clone(e.Shared), slices.Clone(e.Jobs)
		if e.Template != nil {
			written, err := templateWritten(ctx, tx, id)
			if err != nil || written {
				return err
			}
			if wanted, err = writeCommands(ctx, tx, r, e.Jobs); err != nil {
				return err
			}
		}
		now := make(map[bench.JobKey]bench.JobKey, len(wanted)) // keys as planned to keys as written
		for i, j := range wanted {
			if wanted[i].Job, err = renewed(ctx, tx, id, j.Job); err != nil {
				return err
			}
			now[j.Key] = wanted[i].Key
		}
		for _, j := range e.Jobs {
			keys = append(keys, cmp.Or(now[j.Key], j.Key))
		}
		// Artifacts before jobs, existing jobs before new ones.
		if err := recordArtifacts(ctx, tx, wanted); err != nil {
			return err
		}
		if _, err := column[int64](ctx, tx, `select id from job_queue where key = any($1) order by id for update`, keys); err != nil {
			return err
		}
		var sets placeSets
		for _, j := range wanted {
			if err := insertJob(ctx, tx, j, &sets); err != nil {
				return fmt.Errorf("job %s: %w", j.Key, err)
			}
		}
		// Locked before they are linked: a transaction that ends one of them either sees
		// the new waiter, or has ended the job visibly.
		type locked struct {
			ID     int64
			Key    bench.JobKey
			Target bench.Target
			Status bench.JobStatus
		}
		jobs, err := all[locked](ctx, tx, `select id, key, target, status from job_queue where key = any($1) order by id for update`, keys)
		if err != nil {
			return err
		}
		ids, optional, byKey := make([]int64, len(jobs)), make([]bool, len(jobs)), make(map[bench.JobKey]int64, len(jobs))
		for i, j := range jobs {
			byKey[j.Key] = j.ID
			if e.OnlyMissing && !j.Status.Open() && slices.Contains(e.Shared, j.Key) {
				return fmt.Errorf("%w: job %s has ended", ErrStale, j.Key) // perhaps as cancelled
			}
			ids[i], optional[i] = j.ID, e.Optional[j.Target]
		}
		// A job that is the request's own stays so when it is also met as a parent's.
		if _, err := tx.Exec(ctx, `
			insert into request_job (request_id, job_id, stage, optional)
			select $1, t.job_id, $3, t.optional from unnest($2::bigint[], $4::boolean[]) as t (job_id, optional)
			on conflict (request_id, job_id) do update set
				stage = case when request_job.stage = 'own' then 'own' else excluded.stage end,
				optional = request_job.optional and excluded.optional`, id, ids, e.Stage, optional); err != nil {
			return err
		}
		if e.Template != nil {
			err = writeTemplate(ctx, tx, id, *e.Template, func(planned bench.JobKey) int64 { return byKey[cmp.Or(now[planned], planned)] })
		} else {
			err = writeGraph(ctx, tx, id, writtenGraph{reason: bench.GraphReason(e.Stage), jobs: ids})
		}
		if err != nil {
			return err
		}
		if err := advance(ctx, tx, r, e.Queue, ids); err != nil {
			return err
		}
		// A shared job may have had no waiter before. Those of other stages have
		// been taken back before; they are not locked.
		if err := releaseHeld(ctx, tx, `j.held = 'turn' and j.id = any($1)`, ids); err != nil {
			return err
		}
		if err := sets.record(ctx, tx); err != nil {
			return err
		}
		if e.Stage == bench.StageOwn {
			_, err = tx.Exec(ctx, `update benchmark_request set expanded_at = coalesce(expanded_at, now()) where id = $1`, id)
		}
		return err
	})
}

func projectsOf(jobs []bench.PlannedJob) []string {
	var names []string
	for _, j := range jobs {
		names = append(names, j.Project)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// lockJobWriting prevents concurrent writes and purges of a project's suite jobs.
func lockJobWriting(ctx context.Context, tx pgx.Tx, project string) error {
	return lock(ctx, tx, "jobs of project "+project)
}

// artifactOf returns the tag of the artifact to which a job's results belong.
func artifactOf(j bench.Job) string {
	if j.Kind.OwnResults() {
		return string(j.Key)
	}
	return j.Tag
}

// recordArtifacts writes the artifacts of jobs unless they exist, in order.
func recordArtifacts(ctx context.Context, tx pgx.Tx, jobs []bench.PlannedJob) error {
	type artifact struct{ project, tag string }
	var wanted []artifact
	for _, j := range jobs {
		wanted = append(wanted, artifact{j.Project, artifactOf(j.Job)})
		if j.Versus != "" {
			wanted = append(wanted, artifact{j.Project, j.Versus})
		}
	}
	slices.SortFunc(wanted, func(a, b artifact) int { return cmp.Or(cmp.Compare(a.project, b.project), cmp.Compare(a.tag, b.tag)) })
	for _, a := range slices.Compact(wanted) {
		if _, err := artifactID(ctx, tx, a.project, a.tag); err != nil {
			return err
		}
	}
	return nil
}

// insertJob writes a job with its test cases unless it exists. The caller holds
// [lockJobWriting] and records the sets at the end.
func insertJob(ctx context.Context, tx pgx.Tx, j bench.PlannedJob, sets *placeSets) error {
	artifactID, err := artifactID(ctx, tx, j.Project, artifactOf(j.Job))
	if err != nil {
		return err
	}
	sides := []int64{artifactID}
	if j.Versus != "" {
		if sides, j.Generation, err = openTurns(ctx, tx, j.Job, artifactID); err != nil {
			return err
		}
	}
	if j, err = withSet(ctx, tx, j); err != nil {
		return err
	}
	if err := j.Validate(); err != nil {
		return err
	}
	sets.add(j.At())
	tag, err := tx.Exec(ctx, `
		insert into job_queue (project, key, tag, artifact_id, versus, versus_artifact_id, kind, target, backend, profile, suite_hash, test_cases, iterations,
			command, build, size_class, pool, task_queue, generation, queue, weight, priority, status, request_created,
			submitter, branch, constraints, shape, min_class, place, name, asked_by, profiler, chunk, chunk_set, chunk_of, chunk_min, again, affinity_until)
		values (@project, @key, nullif(@tag, ''), @artifact_id, nullif(@versus, ''), (@sides::bigint[])[2], @kind, @target, @backend, @profile, nullif(@suite_hash, ''),
			@test_cases, @iterations, @command, @build, @size_class, @pool, @task_queue, @generation, @queue, @weight, @priority,
			'queued', @request_created, @submitter, @branch, @constraints, @shape, @min_class, @line, @name, @asked_by, @profiler, @chunk, nullif(@chunk_set, ''), @chunk_of, @chunk_min, @again,
			case when @affinity > 0 then now() + make_interval(secs => @affinity) end)
		on conflict (key) do nothing`,
		pgx.NamedArgs{
			"project": j.Project, "key": j.Key, "tag": j.Tag, "artifact_id": artifactID,
			"versus": j.Versus, "sides": sides, "kind": j.Kind, "target": j.Target,
			"backend": j.Backend, "profile": j.Profile, "suite_hash": j.SuiteHash, "test_cases": j.TestCases,
			"iterations": j.Iterations, "command": j.Command, "build": j.Build, "size_class": j.SizeClass, "pool": j.Pool,
			"task_queue": j.TaskQueue, "generation": j.Generation, "queue": j.Queue, "weight": j.Weight,
			"priority": j.Priority, "request_created": j.RequestCreated,
			"submitter": j.Submitter, "branch": j.Branch, "constraints": j.Constraints, "shape": j.Shape, "min_class": j.MinClass,
			"line": j.Line, "name": j.Name, "asked_by": j.AskedBy, "profiler": j.Profiler, "chunk": j.Chunk, "chunk_set": j.ChunkSet, "chunk_of": j.ChunkOf, "chunk_min": j.ChunkMin, "again": j.Again, "affinity": j.AffinityFor.Seconds(),
		})
	if err != nil {
		return unknownReference(err)
	}
	type row struct {
		ID      int64
		Project string
	}
	stored, err := one[row](ctx, tx, `select id, project from job_queue where key = $1`, j.Key)
	if err != nil {
		return err
	}
	if stored.Project != j.Project {
		return fmt.Errorf("%w: project %s has a job of the same key", ErrConflict, stored.Project)
	}
	if tag.RowsAffected() == 0 {
		return nil
	}
	return insertTestCases(ctx, tx, stored.ID, j.Job, sides)
}

// insertTestCases writes the test cases of a job, once for each artifact measured.
func insertTestCases(ctx context.Context, tx pgx.Tx, jobID int64, j bench.Job, sides []int64) error {
	if err := recordTestCases(ctx, tx, j.Project, j.TestCases); err != nil {
		return err
	}
	args := testCaseArgs(j.Project, j.TestCases)
	args["job"], args["sides"] = jobID, sides
	_, err := tx.Exec(ctx, `
		insert into job_test_case (job_id, artifact_id, test_case_id, place)
		select @job, side.artifact_id, tc.id, t.place
		from unnest(@benchmarks::text[], @profiles::text[], @scenarios::text[], @backends::text[], @targets::text[]) with ordinality
			as t (benchmark, profile, scenario, backend, target, place)
		join test_case tc on tc.project = @project and tc.benchmark = t.benchmark and tc.profile = t.profile
			and tc.scenario = t.scenario and tc.backend = t.backend and tc.target = t.target
		cross join unnest(@sides::bigint[]) as side (artifact_id)
		order by t.place
		on conflict (job_id, artifact_id, test_case_id) do nothing`,
		args)
	return err
}

// recordTestCases writes test cases unless they exist. New ones wait until concurrent
// transactions have written theirs.
func recordTestCases(ctx context.Context, tx pgx.Tx, project string, cases []bench.TestCase) error {
	args := testCaseArgs(project, cases)
	lacking, err := value[bool](ctx, tx, `
		select exists (
			select from unnest(@benchmarks::text[], @profiles::text[], @scenarios::text[], @backends::text[], @targets::text[])
				as t (benchmark, profile, scenario, backend, target)
			where not exists (select from test_case tc where tc.project = @project and tc.benchmark = t.benchmark and tc.profile = t.profile
				and tc.scenario = t.scenario and tc.backend = t.backend and tc.target = t.target))`, args)
	if err != nil || !lacking {
		return err
	}
	if err := lock(ctx, tx, "test cases of project "+project); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		insert into test_case (project, benchmark, profile, scenario, backend, target)
		select @project, benchmark, profile, scenario, backend, target
		from unnest(@benchmarks::text[], @profiles::text[], @scenarios::text[], @backends::text[], @targets::text[]) as t (benchmark, profile, scenario, backend, target)
		on conflict (project, benchmark, profile, scenario, backend, target) do nothing`, args)
	return err
}

// testCaseArgs returns the arguments of a statement about test cases of a project:
// project, and the parallel arrays benchmarks, profiles, scenarios, backends, targets.
func testCaseArgs(project string, cases []bench.TestCase) pgx.NamedArgs {
	n := len(cases)
	benchmarks, profiles, scenarios, backends, targets := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	for i, tc := range cases {
		benchmarks[i], profiles[i], scenarios[i], backends[i], targets[i] = tc.Benchmark, tc.Profile, tc.Scenario, tc.Backend, string(tc.Target)
	}
	return pgx.NamedArgs{
		"project": project, "benchmarks": benchmarks, "profiles": profiles, "scenarios": scenarios, "backends": backends, "targets": targets,
	}
}
