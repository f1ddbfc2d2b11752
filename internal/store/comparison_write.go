package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/verdict"
)

// BeginComparison records a request's comparison with its rows, once: a request that has
// one keeps it. With a Look of 1 the request's own jobs are its first look. The comparison
// is decided immediately if each row has its verdict. ErrConflict reports that the request
// is completed.
func (s *Store) BeginComparison(ctx context.Context, c Comparison) error {
	return s.inTx(ctx, "recording the comparison of request "+string(c.Request), func(tx pgx.Tx) error {
		r, err := lockRequest(ctx, tx, c.Request)
		if err != nil {
			return err
		}
		if r.Status == bench.Completed {
			return fmt.Errorf("%w: it has ended as %s", ErrConflict, r.Outcome)
		}
		tag, err := artifactOfTag(ctx, tx, r.Project, c.Tag)
		if err != nil {
			return err
		}
		baseline, err := artifactOfTag(ctx, tx, r.Project, c.Baseline)
		if err != nil {
			return err
		}
		id, err := value[int64](ctx, tx, `
			insert into comparison (request_id, artifact_id, baseline_id, mode, rule_version, family_size, pairs, look, budget_seconds)
			values (@request, @artifact, @baseline, @mode, @rule, @family, @pairs, @look, @budget)
			on conflict (request_id) where superseded_at is null do nothing
			returning id`,
			pgx.NamedArgs{
				"request": c.Request, "artifact": tag, "baseline": baseline, "mode": string(c.Mode),
				"rule": c.RuleVersion, "family": c.FamilySize, "pairs": c.Pairs, "look": c.Look, "budget": c.BudgetSeconds,
			})
		if errors.Is(err, ErrNotFound) {
			return nil // recorded before
		} else if err != nil {
			return err
		}
		if err := insertRows(ctx, tx, id, r.Project, c); err != nil {
			return err
		}
		if c.Look > 0 { // its own jobs
			if _, err := tx.Exec(ctx, `
				insert into comparison_look (comparison_id, look, job_id)
				select $1, $2, job_id from request_job where request_id = $3 and stage = 'own'`, id, c.Look, c.Request); err != nil {
				return err
			}
		}
		return settleComparison(ctx, tx, id)
	})
}

// insertRows writes the rows of a comparison. Their test cases are recorded already.
func insertRows(ctx context.Context, tx pgx.Tx, id int64, project string, c Comparison) error {
	rows := c.Rows
	type row struct {
		ID int64
		bench.TestCase
	}
	cases := make([]bench.TestCase, len(rows))
	for i, r := range rows {
		cases[i] = r.TestCase
	}
	known, err := all[row](ctx, tx, `
		select distinct tc.id, tc.benchmark, tc.profile, tc.scenario, tc.backend, tc.target
		from unnest(@benchmarks::text[], @profiles::text[], @scenarios::text[], @backends::text[], @targets::text[])
			as t (benchmark, profile, scenario, backend, target)
		join test_case tc on tc.project = @project and tc.benchmark = t.benchmark and tc.profile = t.profile
			and tc.scenario = t.scenario and tc.backend = t.backend and tc.target = t.target`, testCaseArgs(project, cases))
	if err != nil {
		return err
	}
	ids := make(map[bench.TestCase]int64, len(known))
	for _, k := range known {
		ids[k.TestCase] = k.ID
	}
	artifacts := make(map[string]*int64) // nil: the baseline
	for _, r := range rows {
		if _, ok := ids[r.TestCase]; !ok {
			return fmt.Errorf("%w: test case %s", ErrNotFound, r.TestCase)
		}
		if _, known := artifacts[r.Against]; known || r.Against == "" || r.Against == c.Baseline {
			continue
		}
		against, err := artifactOfTag(ctx, tx, project, r.Against)
		if err != nil {
			return fmt.Errorf("artifact %s: %w", r.Against, err)
		}
		artifacts[r.Against] = &against
	}
	_, err = tx.CopyFrom(ctx, pgx.Identifier{"comparison_verdict"}, []string{
		"comparison_id", "test_case_id", "metric", "size_class", "hardware_id", "co_located",
		"suspected", "measured", "score", "suspicion", "suspected_change", "against_id", "exact", "delta", "sigma_within", "tau", "bimodal",
		"verdict", "change", "low", "high", "confidence", "pairs", "sessions", "disturbed", "p", "level", "sees", "reason", "needs",
	}, pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) {
		r := rows[i]
		v := storedVerdict(r.Verdict)
		return []any{
			id, ids[r.TestCase], string(r.Metric), int(r.SizeClass), r.HardwareID, r.CoLocated,
			r.Suspected, r.Measured, r.Score, cleanText(r.Suspicion), r.SuspectedChange, artifacts[r.Against], r.Exact, r.Delta, r.SigmaWithin, r.Tau, r.Bimodal,
			v.kind, v.Change, v.low, v.high, v.confidence, v.Pairs, v.Sessions, v.Disturbed, v.P, v.Level, v.Sees, cleanText(v.Reason), cleanText(v.Needs),
		}, nil
	}))
	return err
}

// verdictColumns holds a verdict as it is stored.
type verdictColumns struct {
	verdict.Verdict
	kind       *string // nil: there is none
	low, high  *float64
	confidence float64
}

func storedVerdict(v *verdict.Verdict) verdictColumns {
	if v == nil {
		return verdictColumns{Verdict: verdict.Verdict{P: 1}}
	}
	kind := v.Kind.String()
	out := verdictColumns{Verdict: *v, kind: &kind}
	if v.Interval != nil {
		out.low, out.high, out.confidence = &v.Interval.Low, &v.Interval.High, v.Interval.Confidence
	}
	return out
}

// settleComparison marks a comparison as decided once each of its rows has its verdict.
func settleComparison(ctx context.Context, tx pgx.Tx, id int64) error {
	_, err := tx.Exec(ctx, `
		update comparison c set state = 'decided', decided_at = now()
		where c.id = $1 and c.state = 'deciding'
			and not exists (select from comparison_verdict v where v.comparison_id = c.id and v.verdict is null)`, id)
	return err
}

// Settle stores the verdicts of rows, which are given with their test case, metric and
// verdict. A row that has one keeps it: there is one verdict per row, whatever is measured
// afterwards.
func (s *Store) Settle(ctx context.Context, request bench.RequestID, comparison int64, rows []ComparisonRow) error {
	return s.inTx(ctx, "storing the verdicts of request "+string(request), func(tx pgx.Tx) error {
		if _, err := lockRequest(ctx, tx, request); err != nil {
			return err
		}
		for _, r := range rows {
			v := storedVerdict(r.Verdict)
			if _, err := tx.Exec(ctx, `
				update comparison_verdict v set verdict = @verdict, change = @change, low = @low, high = @high, confidence = @confidence,
					pairs = @pairs, sessions = @sessions, disturbed = @disturbed, p = @p, level = @level, sees = @sees, reason = @reason, needs = @needs
				from comparison c join artifact a on a.id = c.artifact_id, test_case tc
				where c.id = @comparison and v.comparison_id = c.id and v.verdict is null and v.metric = @metric and tc.id = v.test_case_id
					and tc.project = a.project and tc.benchmark = @benchmark and tc.profile = @profile and tc.scenario = @scenario
					and tc.backend = @backend and tc.target = @target`,
				pgx.NamedArgs{
					"comparison": comparison, "metric": string(r.Metric), "benchmark": r.TestCase.Benchmark, "profile": r.TestCase.Profile,
					"scenario": r.TestCase.Scenario, "backend": r.TestCase.Backend, "target": string(r.TestCase.Target),
					"verdict": v.kind, "change": v.Change, "low": v.low, "high": v.high, "confidence": v.confidence, "pairs": v.Pairs, "sessions": v.Sessions,
					"disturbed": v.Disturbed, "p": v.P, "level": v.Level, "sees": v.Sees, "reason": cleanText(v.Reason), "needs": cleanText(v.Needs),
				}); err != nil {
				return err
			}
		}
		return settleComparison(ctx, tx, comparison)
	})
}

// BeginLook writes the jobs of a look and links the request to them, once: a look that
// was written before stays as it is. Each job gets a generation above all results of both
// sides. ErrConflict reports that the request is completed, ErrStale that the last look
// is not the one before.
func (s *Store) BeginLook(ctx context.Context, request bench.RequestID, comparison int64, look int, jobs []bench.PlannedJob) error {
	return s.inTx(ctx, fmt.Sprintf("writing look %d of request %s", look, request), func(tx pgx.Tx) error {
		for _, project := range projectsOf(jobs) {
			if err := lockJobWriting(ctx, tx, project); err != nil {
				return err
			}
		}
		r, err := lockRequest(ctx, tx, request)
		if err != nil {
			return err
		}
		if r.Status == bench.Completed {
			return fmt.Errorf("%w: it has ended as %s", ErrConflict, r.Outcome)
		}
		last, err := value[int](ctx, tx, `select look from comparison where id = $1 and request_id = $2 and superseded_at is null`, comparison, request)
		switch {
		case err != nil:
			return err
		case last == look:
			return nil // written before
		case last != look-1:
			return fmt.Errorf("%w: look %d was written last", ErrStale, last)
		}
		if _, err := tx.Exec(ctx, `update comparison set look = $2 where id = $1`, comparison, look); err != nil {
			return err
		}
		if err := recordArtifacts(ctx, tx, jobs); err != nil {
			return err
		}
		var sets placeSets
		for _, j := range jobs {
			if err := insertLook(ctx, tx, request, j, lookOf{comparison, look}, &sets); err != nil {
				return err
			}
		}
		written, err := column[int64](ctx, tx, `select job_id from comparison_look where comparison_id = $1 and look = $2`, comparison, look)
		if err != nil {
			return err
		}
		if err := writeGraph(ctx, tx, request, writtenGraph{reason: bench.GraphVerify, jobs: written}); err != nil {
			return err
		}
		return sets.record(ctx, tx)
	})
}

// lookOf identifies a look.
type lookOf struct {
	comparison int64
	look       int
}

// insertLook writes one job of a look in a generation of its own.
func insertLook(ctx context.Context, tx pgx.Tx, request bench.RequestID, j bench.PlannedJob, of lookOf, sets *placeSets) error {
	own, err := artifactID(ctx, tx, j.Project, j.Tag)
	if err != nil {
		return err
	}
	_, generation, err := openTurns(ctx, tx, j.Job, own)
	if err != nil {
		return err
	}
	j.Job = plan.Later(j.Job, request, generation)
	if err := insertJob(ctx, tx, j, sets); err != nil {
		return fmt.Errorf("job %s: %w", j.Key, err)
	}
	_, err = tx.Exec(ctx, `
		with written as (select id from job_queue where key = @key), linked as (
			insert into request_job (request_id, job_id, stage) select @request, id, 'verify' from written
		)
		insert into comparison_look (comparison_id, look, job_id) select @comparison, @look, id from written`,
		pgx.NamedArgs{"key": j.Key, "request": request, "comparison": of.comparison, "look": of.look})
	return err
}

// LookJobs lists the jobs of a look.
func (s *Store) LookJobs(ctx context.Context, comparison int64, look int) ([]bench.Job, error) {
	jobs, err := all[bench.Job](ctx, s.pool, `
		select `+jobColumns+` from comparison_look l join job_queue j on j.id = l.job_id
		where l.comparison_id = $1 and l.look = $2 order by j.id`, comparison, look)
	return jobs, wrap("listing the jobs of a look", err)
}

// abandonComparison gives each row of a locked request's comparison that has no verdict
// the verdict undecided, with this reason.
func abandonComparison(ctx context.Context, tx pgx.Tx, request bench.RequestID, reason string) error {
	id, err := value[int64](ctx, tx, `select id from comparison where request_id = $1 and superseded_at is null and state = 'deciding'`, request)
	if errors.Is(err, ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `
		update comparison_verdict set verdict = $2, reason = $3 where comparison_id = $1 and verdict is null`,
		id, verdict.Undecided.String(), cleanText(reason)); err != nil {
		return err
	}
	return settleComparison(ctx, tx, id)
}

// supersedeComparison ends the validity of a locked request's comparison: the request is
// opened again, and its results will be compared anew. The jobs of its looks no longer
// count.
func supersedeComparison(ctx context.Context, tx pgx.Tx, request bench.RequestID) error {
	if _, err := tx.Exec(ctx, `update comparison set superseded_at = now() where request_id = $1 and superseded_at is null`, request); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `update request_job set superseded = true where request_id = $1 and stage = 'verify'`, request)
	return err
}
