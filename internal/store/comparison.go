package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/verdict"
)

// Comparison is the record of one comparison of a request's artifact with its baseline:
// what was suspected, how it was measured again, and the verdicts.
type Comparison struct {
	ID      int64
	Request bench.RequestID
	Project string
	// Baseline and Tag name the two artifacts.
	Baseline string
	Tag      string
	Mode     bench.VerifyMode
	// RuleVersion is the [verdict.RuleVersion] that its verdicts follow.
	RuleVersion int
	// FamilySize is the number of rows that are measured again, fixed beforehand.
	FamilySize int
	// Decided reports whether every row has its verdict. Until then the comparison is
	// provisional.
	Decided bool
	// Pairs is the number of pairs of its only look, fixed beforehand; 0: looks follow one
	// another until it is decided.
	Pairs int
	// Look is the number of the last look that was written; 0: none yet.
	Look int
	// BudgetSeconds is the machine time that the looks may take, 0: no limit; SpentSeconds what their
	// runs have taken so far, and OwnSeconds what the request's own jobs took.
	BudgetSeconds float64
	SpentSeconds  float64
	OwnSeconds    float64
	CreatedAt     time.Time
	DecidedAt     *time.Time // nil until it is decided
	// Rows are in the order of test cases, then of metrics.
	Rows []ComparisonRow
}

// ComparisonRow is one deciding metric of one test case in a [Comparison].
type ComparisonRow struct {
	TestCase bench.TestCase
	Metric   bench.Metric
	// Surrounding in which both sides were measured.
	bench.Surrounding
	// Suspected reports that the detection raised a suspicion, with its Score and, in
	// words, the Suspicion.
	Suspected bool
	Score     float64
	Suspicion string
	// SuspectedChange is the relative change that raised the suspicion. It is no estimate
	// to be shown.
	SuspectedChange float64
	// Against is the artifact with which it is measured in turns and to which its verdict
	// refers: the baseline, or an earlier one if several of the newest artifacts differ from
	// those before.
	Against string
	// Measured reports that the row belongs to the family that is measured again.
	Measured bool
	// Exact, Delta and the noise are fixed before anything is measured again; see
	// [verdict.Evidence].
	Exact       bool
	Delta       float64
	SigmaWithin float64
	Tau         float64
	Bimodal     bool
	// Sees is the relative change for which the history would have raised a suspicion; it is
	// stored with the verdict of rows without a suspicion.
	Sees float64
	// Verdict is nil until there is one.
	Verdict *verdict.Verdict
}

const comparisonColumns = `c.id, c.request_id as request, a.project, b.tag as baseline, a.tag, c.mode, c.rule_version, c.family_size,
	c.state = 'decided' as decided, c.pairs, c.look, c.budget_seconds, c.created_at, c.decided_at`

const fromComparisons = ` from comparison c join artifact a on a.id = c.artifact_id join artifact b on b.id = c.baseline_id `

// ComparisonOf reads a request's comparison; ErrNotFound if it has none.
func (s *Store) ComparisonOf(ctx context.Context, id bench.RequestID) (Comparison, error) {
	c, err := s.comparison(ctx, `where c.request_id = $1 and c.superseded_at is null`, id)
	return c, wrap("reading the comparison of request "+string(id), err)
}

func (s *Store) comparison(ctx context.Context, where string, args ...any) (Comparison, error) {
	type header struct {
		ID            int64
		Request       bench.RequestID
		Project       string
		Baseline, Tag string
		Mode          bench.VerifyMode
		RuleVersion   int
		FamilySize    int
		Decided       bool
		Pairs         int
		Look          int
		BudgetSeconds float64
		CreatedAt     time.Time
		DecidedAt     *time.Time
	}
	h, err := one[header](ctx, s.pool, `select `+comparisonColumns+fromComparisons+where, args...)
	if err != nil {
		return Comparison{}, err
	}
	c := Comparison{
		ID: h.ID, Request: h.Request, Project: h.Project, Baseline: h.Baseline, Tag: h.Tag, Mode: h.Mode,
		RuleVersion: h.RuleVersion, FamilySize: h.FamilySize, Decided: h.Decided, Pairs: h.Pairs, Look: h.Look,
		BudgetSeconds: h.BudgetSeconds, CreatedAt: h.CreatedAt, DecidedAt: h.DecidedAt,
	}
	if c.OwnSeconds, err = s.StageSeconds(ctx, c.Request, bench.StageOwn); err != nil {
		return Comparison{}, err
	}
	if c.SpentSeconds, err = value[float64](ctx, s.pool, `
		select coalesce(sum(extract(epoch from coalesce(n.finished_at, now()) - n.started_at)), 0)::float8
		from comparison_look l join job_run n on n.job_id = l.job_id where l.comparison_id = $1`, c.ID); err != nil {
		return Comparison{}, err
	}
	c.Rows, err = s.comparisonRows(ctx, c)
	return c, err
}

// StageSeconds sums the time that the runs of a stage's jobs have taken, those of open
// runs up to now.
func (s *Store) StageSeconds(ctx context.Context, id bench.RequestID, stage bench.Stage) (float64, error) {
	seconds, err := value[float64](ctx, s.pool, `
		select coalesce(sum(extract(epoch from coalesce(n.finished_at, now()) - n.started_at)), 0)::float8
		from request_job rj join job_run n on n.job_id = rj.job_id
		where rj.request_id = $1 and rj.stage = $2 and not rj.superseded`, id, string(stage))
	return seconds, wrap("reading the machine time of request "+string(id), err)
}

// LookPairs holds the pairs of one row of a comparison from one look.
type LookPairs struct {
	TestCase bench.TestCase
	Metric   bench.Metric
	Look     int
	// A and B hold the values of the baseline and of the artifact, by iteration; those of
	// one index were measured one after the other. Disturbed marks the pairs that the
	// machine disturbed.
	A, B      []float64
	Disturbed []bool
}

// PairsOf reads the pairs that the looks of a comparison have measured, by look. Both
// sides of a pair come from the same iteration of the same run; of a test case that was
// measured again within a look, only the newest counts. Results found invalid are left out.
func (s *Store) PairsOf(ctx context.Context, comparison int64) ([]LookPairs, error) {
	pairs, err := all[LookPairs](ctx, s.pool, `
		with pair as (
			select distinct on (l.look, ra.test_case_id, ra.artifact_id) c.id as comparison_id, c.baseline_id, l.look, ra.artifact_id as against_id, ra.test_case_id, ra.id as a, rb.id as b
			from comparison c
			join comparison_look l on l.comparison_id = c.id
			join job_run n on n.job_id = l.job_id
			join test_result ra on ra.run_id = n.id and ra.artifact_id <> c.artifact_id and ra.status = 'ok' and ra.invalid_at is null and not ra.probe
			join test_result rb on rb.run_id = n.id and rb.artifact_id = c.artifact_id and rb.status = 'ok' and rb.invalid_at is null and not rb.probe
				and rb.test_case_id = ra.test_case_id
			where c.id = $1
			order by l.look, ra.test_case_id, ra.artifact_id, ra.generation desc, ra.id desc
		)
		select `+testCaseDocument+` as test_case, se.metric, pair.look,
			array_agg(va.value order by ca.iteration) as a, array_agg(vb.value order by ca.iteration) as b,
			array_agg(`+disturbed("ca")+` or `+disturbed("cb")+` order by ca.iteration) as disturbed
		from pair
		join collection ca on ca.result_id = pair.a
		join collection cb on cb.result_id = pair.b and cb.iteration = ca.iteration
		join `+statistics+` va on va.collection_id = ca.id
		join `+statistics+` vb on vb.collection_id = cb.id and vb.series_id = va.series_id
		join pstat_series se on se.id = va.series_id
		join comparison_verdict v on v.comparison_id = pair.comparison_id and v.test_case_id = pair.test_case_id and v.metric = se.metric and v.measured
			and coalesce(v.against_id, pair.baseline_id) = pair.against_id
		join test_case tc on tc.id = pair.test_case_id
		group by tc.id, se.metric, pair.look
		order by tc.id, se.metric, pair.look`, comparison)
	return pairs, wrap("reading the pairs of a comparison", err)
}

// disturbed matches a collection of the given alias during which something else used the
// machine.
func disturbed(collection string) string {
	return collection + `.disturbed <> ''`
}

// artifactOfTag reads an artifact's ID in a transaction.
func artifactOfTag(ctx context.Context, tx pgx.Tx, project, tag string) (int64, error) {
	return value[int64](ctx, tx, `select id from artifact where project = $1 and tag = $2`, project, tag)
}
