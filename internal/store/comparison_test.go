package store_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/stats"
	"github.com/benchloom/benchloom/internal/stats/noise"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
	"github.com/benchloom/benchloom/internal/verdict"
)

// comparing has measured v1 and v2, and compares v2 with it: gin is suspected, lo is not.
func (r record) comparing() (bench.Request, store.Comparison) {
	r.t.Helper()
	r.plain("v1", []float64{1, 1}, "gin", "lo")
	request, job := r.oneJob("v2", "gin", "lo")
	r.start(job, 1, r.register("c1"))
	r.block(runID(job, 1), measured("gin", 2, 2), measured("lo", 1, 1))
	_, err := r.FinishJob(r.t.Context(), job.Key, 0, "")
	require.NoError(r.t, err)
	require.NoError(r.t, r.FinishJobsOf(r.t.Context(), request.ID))
	here := bench.Surrounding{SizeClass: small.SizeClass, HardwareID: "zen4"}
	c := store.Comparison{
		Request: request.ID, Baseline: "v1", Tag: "v2", Mode: bench.VerifySuspects, RuleVersion: verdict.RuleVersion, FamilySize: 1, BudgetSeconds: 600,
		Rows: []store.ComparisonRow{
			{TestCase: testCase("gin"), Metric: bench.WallTime, Surrounding: here, Suspected: true, Score: 4.5, Suspicion: "twice as long", SuspectedChange: 1, Against: "v1", Measured: true, Delta: 0.01, SigmaWithin: 0.02, Tau: 0.3},
			{TestCase: testCase("lo"), Metric: bench.WallTime, Surrounding: here, Against: "v1", Delta: 0.01, Verdict: &verdict.Verdict{Kind: verdict.NoSuspicion, P: 1, Sees: 0.014}},
		},
	}
	twice(r.t, func() error { return r.BeginComparison(r.t.Context(), c) })
	stored, err := r.ComparisonOf(r.t.Context(), request.ID)
	require.NoError(r.t, err)
	require.Equal(r.t, c.Rows, stored.Rows)
	require.Equal(r.t, []any{c.Baseline, c.Tag, c.Mode, 1, false, 0}, []any{stored.Baseline, stored.Tag, stored.Mode, stored.FamilySize, stored.Decided, stored.Look})
	require.Positive(r.t, stored.OwnSeconds)
	require.Zero(r.t, stored.SpentSeconds)
	return request, stored
}

// look writes the next look of a comparison, often, and returns its job.
func (r record) look(request bench.Request, c store.Comparison, n int) bench.Job {
	r.t.Helper()
	job := newJob(request, "gin")
	job.Versus, job.Iterations, job.Queue = "v1", 3, "idle"
	twice(r.t, func() error { return r.BeginLook(r.t.Context(), request.ID, c.ID, n, storetest.Planned(job)) })
	jobs, err := r.LookJobs(r.t.Context(), c.ID, n)
	require.NoError(r.t, err)
	require.Len(r.t, jobs, 1)
	return jobs[0]
}

// measure carries a look out.
func (r record) measureLook(job bench.Job, a, b []float64) {
	r.t.Helper()
	r.start(job, 1, r.register("c1"))
	r.block(runID(job, 1), of("v1", measured("gin", a...)), of("v2", measured("gin", b...)))
	end, err := r.FinishJob(r.t.Context(), job.Key, 0, "")
	require.NoError(r.t, err)
	require.Equal(r.t, bench.JobSuccess, end.Status)
}

func TestAComparisonIsDecidedLookByLook(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request, c := r.comparing()
	first := r.look(request, c, 1)
	require.Equal(t, []any{"idle", 1, 3}, []any{first.Queue, first.Generation, first.Iterations})
	require.ErrorIs(t, r.BeginLook(t.Context(), request.ID, c.ID, 3, nil), store.ErrStale)
	r.measureLook(first, []float64{1, 1.1, 1.2}, []float64{2, 2.1, 2.2})
	second := r.look(request, c, 2)
	require.Equal(t, 2, second.Generation)
	r.measureLook(second, []float64{1.3}, []float64{2.3})

	pairs, err := r.PairsOf(t.Context(), c.ID)
	require.NoError(t, err)
	require.Equal(t, []store.LookPairs{
		{TestCase: testCase("gin"), Metric: bench.WallTime, Look: 1, A: []float64{1, 1.1, 1.2}, B: []float64{2, 2.1, 2.2}, Disturbed: make([]bool, 3)},
		{TestCase: testCase("gin"), Metric: bench.WallTime, Look: 2, A: []float64{1.3}, B: []float64{2.3}, Disturbed: make([]bool, 1)},
	}, pairs, "only of rows that are measured again")
	ofA, ofB, err := r.SamplesInTurns(t.Context(), project, "v1", "v2")
	require.NoError(t, err)
	require.Equal(t, []float64{1, 1.1, 1.2, 1.3}, ofA[1].Values, "all looks together")
	require.Equal(t, []float64{2, 2.1, 2.2, 2.3}, ofB[1].Values)

	for i, session := range r.sessionsOf("v1", "v2") {
		require.Equal(t, []any{c.ID, pairs[i].A, pairs[i].B}, []any{session.Comparison, session.A, session.B})
	}

	found := verdict.Verdict{
		Kind: verdict.Changed, Change: 1, Interval: &stats.Interval{Low: 0.9, High: 1.1, Confidence: 0.98},
		Pairs: 4, Sessions: 2, Disturbed: 1, P: 0.001, Level: 0.002, Sees: 0.05, Reason: "confirmed",
	}
	row := c.Rows[0]
	row.Verdict = &found
	require.NoError(t, r.Settle(t.Context(), request.ID, c.ID, []store.ComparisonRow{row}))
	row.Verdict = &verdict.Verdict{Kind: verdict.NoDifference, P: 1}
	require.NoError(t, r.Settle(t.Context(), request.ID, c.ID, []store.ComparisonRow{row}))
	decided, err := r.ComparisonOf(t.Context(), request.ID)
	require.NoError(t, err)
	require.True(t, decided.Decided)
	require.NotNil(t, decided.DecidedAt)
	require.Equal(t, &found, decided.Rows[0].Verdict, "the first verdict counts")
	require.Equal(t, 2, decided.Look)
	require.Positive(t, decided.SpentSeconds)
}

// What a lost run has measured is no pair, nor is what was found invalid since.
func TestAPairIsOfOneRun(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request, c := r.comparing()
	job := r.look(request, c, 1)
	r.start(job, 1, r.register("c1"))
	r.block(runID(job, 1), of("v1", measured("gin", 7, 7, 7)))
	r.start(job, 2, r.register("c2"))
	r.block(runID(job, 2), of("v1", measured("gin", 1, 1, 1)), of("v2", measured("gin", 2, 2, 2)))
	r.block(runID(job, 1), of("v1", measured("gin", 7, 7, 7)), of("v2", measured("gin", 9, 9, 9)))
	pairs, err := r.PairsOf(t.Context(), c.ID)
	require.NoError(t, err)
	require.Len(t, pairs, 1)
	require.Equal(t, []float64{2, 2, 2}, pairs[0].B)

	_, err = r.InvalidateResults(t.Context(), store.ResultFilter{Project: project, Tag: "v1"}, store.Act{Who: "ada", Reason: "a test"})
	require.NoError(t, err)
	pairs, err = r.PairsOf(t.Context(), c.ID)
	require.NoError(t, err)
	require.Empty(t, pairs)
}

// A request that ends otherwise leaves no row without a verdict, and starts no further
// look.
func TestACancelledRequestLeavesItsSuspectsUndecided(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request, c := r.comparing()
	job := r.look(request, c, 1)
	_, err := r.CancelRequest(t.Context(), request.ID, "ada", "too long")
	require.NoError(t, err)
	require.Equal(t, bench.JobCancelled, r.job(job.Key).Status)
	decided, err := r.ComparisonOf(t.Context(), request.ID)
	require.NoError(t, err)
	require.True(t, decided.Decided)
	require.Equal(t, verdict.Undecided, decided.Rows[0].Verdict.Kind)
	require.Contains(t, decided.Rows[0].Verdict.Reason, "cancelled by ada: too long")
	require.Equal(t, verdict.NoSuspicion, decided.Rows[1].Verdict.Kind)
	tags, err := r.MeasuredTags(t.Context(), project, bench.Release)
	require.NoError(t, err)
	require.Equal(t, []string{"v2"}, tags, "its own jobs had ended; those of v1 have not")
	require.ErrorIs(t, r.BeginLook(t.Context(), request.ID, c.ID, 2, nil), store.ErrConflict)
	require.ErrorIs(t, r.BeginComparison(t.Context(), c), store.ErrConflict)
}

// A request that is opened again is compared anew. Its looks are no jobs to retry.
func TestARequestThatIsOpenedAgainIsComparedAgain(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request, c := r.comparing()
	look := r.look(request, c, 1)
	_, err := r.Reopen(t.Context(), request.ID, store.ReopenOptions{Job: look.Key}, store.Act{Who: "ada", Reason: "a test"})
	require.ErrorIs(t, err, store.ErrConflict, "its looks are being measured")
	r.measureLook(look, []float64{1}, []float64{2})
	require.NoError(t, r.CompleteRequest(t.Context(), request.ID, bench.Success, "v1", nil, ""))
	_, err = r.Reopen(t.Context(), request.ID, store.ReopenOptions{Job: look.Key}, store.Act{Who: "ada", Reason: "a test"})
	require.ErrorIs(t, err, store.ErrNotFound)
	require.ErrorContains(t, err, "has measured a suspicion in turns")

	done, err := r.Reopen(t.Context(), request.ID, store.ReopenOptions{Remeasure: true}, store.Act{Who: "ada", Reason: "a test"})
	require.NoError(t, err)
	require.Equal(t, []int{1, 2}, []int{done.Result.Jobs, done.Result.TestCases}, "its own, once")
	_, err = r.ComparisonOf(t.Context(), request.ID)
	require.ErrorIs(t, err, store.ErrNotFound)
	valid, err := r.Comparisons(t.Context(), project, "v1", "v2")
	require.NoError(t, err)
	require.Empty(t, valid)
	p, err := r.StageProgress(t.Context(), request.ID, bench.StageVerify, false)
	require.NoError(t, err)
	require.Zero(t, p.Total)
	require.NoError(t, r.BeginComparison(t.Context(), c))
	again, err := r.ComparisonOf(t.Context(), request.ID)
	require.NoError(t, err)
	require.NotEqual(t, c.ID, again.ID)
}

// Verdicts about an artifact go with it.
func TestAPurgedBaselineTakesItsComparisons(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request, c := r.comparing()
	r.measureLook(r.look(request, c, 1), []float64{1}, []float64{2})
	require.NoError(t, r.CompleteRequest(t.Context(), request.ID, bench.Success, "v1", nil, ""))
	first, err := r.Requests(t.Context(), store.RequestFilter{Project: project, Tag: "v1", Limit: 1})
	require.NoError(t, err)
	require.NoError(t, r.FinishJobsOf(t.Context(), first[0].ID))
	require.NoError(t, r.CompleteRequest(t.Context(), first[0].ID, bench.Success, "", nil, ""))
	_, err = r.PurgeArtifact(t.Context(), project, "v1", store.Act{Who: "ada", Reason: "a test"})
	require.NoError(t, err)
	valid, err := r.Comparisons(t.Context(), project, "v1", "v2")
	require.NoError(t, err)
	require.Empty(t, valid)
	samples, err := r.SamplesOf(t.Context(), project, "v2")
	require.NoError(t, err)
	require.NotEmpty(t, samples, "what v2 has of its own stays")
}

// The history of a series has a session for each artifact before, in order, and its own
// last; what was measured in turns is no part of it.
func TestSessionsAreTheHistoryOfASeries(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request, c := r.comparing()
	r.measureLook(r.look(request, c, 1), []float64{5, 5, 5}, []float64{6, 6, 6})
	line, err := r.Line(t.Context(), request, 60, func(a, b string) int { return map[bool]int{true: -1, false: 1}[a < b] })
	require.NoError(t, err)
	require.Equal(t, []string{"v2"}, line, "the jobs of v1 have not ended")
	first, err := r.Requests(t.Context(), store.RequestFilter{Project: project, Tag: "v1", Limit: 1})
	require.NoError(t, err)
	require.NoError(t, r.FinishJobsOf(t.Context(), first[0].ID))
	line, err = r.Line(t.Context(), request, 60, func(a, b string) int { return map[bool]int{true: -1, false: 1}[a < b] })
	require.NoError(t, err)
	require.Equal(t, []string{"v1", "v2"}, line)

	sessions, err := r.Sessions(t.Context(), project, target, line)
	require.NoError(t, err)
	require.Len(t, sessions, 2*2*2, "two test cases, two metrics, two artifacts")
	var values [][]float64
	for _, s := range sessions {
		if s.Metric == bench.WallTime && s.TestCase == testCase("gin") {
			require.Equal(t, []any{"c1", bench.Segment(""), small.SizeClass, "zen4"}, []any{s.Collector, s.Segment, s.SizeClass, s.HardwareID})
			require.Equal(t, measuredAt, s.At)
			require.Equal(t, line[s.Index], s.Tag)
			values = append(values, s.Values)
		}
	}
	require.Equal(t, [][]float64{{1, 1}, {2, 2}}, values)

	targets, err := r.MeasuredTargets(t.Context(), project, "v2")
	require.NoError(t, err)
	require.Equal(t, []bench.Target{target}, targets)
	seconds, err := r.IterationSeconds(t.Context(), request.ID)
	require.NoError(t, err)
	require.Len(t, seconds, 2)
	require.Positive(t, seconds[testCase("gin")])
	none, err := r.Sessions(t.Context(), project, target, []string{"v1", "unknown"})
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestTheNoiseOfASeriesIsKept(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.plain("v1", []float64{1, 1}, "gin")
	here := bench.Surrounding{SizeClass: small.SizeClass, HardwareID: "zen4"}
	kept := store.SeriesNoise{TestCase: testCase("gin"), Metric: bench.WallTime, Surrounding: here, Model: noise.Model{Sessions: 3, SigmaWithin: 0.01, Labels: []noise.Label{noise.Skewed}}}
	twice(t, func() error { return r.PutNoise(t.Context(), project, []store.SeriesNoise{kept}) })
	kept.Model.Sessions, kept.Model.Kappa = 4, 0.6
	require.NoError(t, r.PutNoise(t.Context(), project, []store.SeriesNoise{kept}))
	require.NoError(t, r.PutNoise(t.Context(), project, nil))
	models, err := r.Noise(t.Context(), project, target)
	require.NoError(t, err)
	require.Equal(t, []store.SeriesNoise{kept}, models)
}

// Of thousands of models a comparison reads those that it says something about, and what it chooses between.
func TestAComparisonReadsTheNotableNoise(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.plain("v1", []float64{1, 1}, "gin", "lo", "kit")
	here, there := bench.Surrounding{SizeClass: small.SizeClass, HardwareID: "zen4"}, bench.Surrounding{SizeClass: small.SizeClass, HardwareID: "zen5"}
	model := func(name string, metric bench.Metric, where bench.Surrounding, collector string, m noise.Model) store.SeriesNoise {
		return store.SeriesNoise{TestCase: testCase(name), Metric: metric, Surrounding: where, Collector: collector, Model: m}
	}
	plain, skewed, lent := noise.Model{Sessions: 20, SigmaWithin: 0.01}, noise.Model{Labels: []noise.Label{noise.Skewed}}, noise.Model{Lenders: 3}
	all := []store.SeriesNoise{
		model("gin", bench.CPUTime, here, "", plain),
		model("gin", bench.WallTime, here, "", plain), model("gin", bench.WallTime, here, "c1", skewed), model("gin", bench.WallTime, there, "", skewed),
		model("kit", bench.WallTime, here, "", plain), model("kit", bench.WallTime, here, "c1", skewed),
		model("lo", bench.WallTime, here, "", lent),
	}
	require.NoError(t, r.PutNoise(t.Context(), project, all))
	for name, c := range map[string]struct {
		project string
		targets []bench.Target
		of      []bench.TestCase
		want    []store.SeriesNoise
	}{
		"what is notable anywhere":     {project, []bench.Target{target}, nil, []store.SeriesNoise{all[1], all[3], all[6]}},
		"and all of what is asked for": {project, []bench.Target{target}, []bench.TestCase{testCase("kit"), testCase("new")}, []store.SeriesNoise{all[1], all[3], all[4], all[6]}},
		"of another target":            {project, []bench.Target{"aarch64-unknown-linux-gnu"}, []bench.TestCase{testCase("kit")}, nil},
		"of no target":                 {project, nil, nil, nil},
		"of another project":           {"rust", []bench.Target{target}, []bench.TestCase{testCase("kit")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := r.NotableNoise(t.Context(), c.project, c.targets, c.of)
			require.NoError(t, err)
			require.ElementsMatch(t, c.want, found)
		})
	}
}

// Rows that raised no suspicion are read by fewer columns: what one of them has besides must not be lost.
func TestAQuietRowIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.plain("v0", []float64{1, 1}, "gin")
	r.plain("v1", []float64{1, 1}, "gin")
	request, _ := r.oneJob("v2", "gin")
	quiet := func(change func(r *store.ComparisonRow)) store.ComparisonRow {
		row := store.ComparisonRow{
			TestCase: testCase("gin"), Surrounding: bench.Surrounding{SizeClass: small.SizeClass, HardwareID: "zen4", CoLocated: true}, Against: "v1",
			Score: 0.5, SuspectedChange: 0.01, Exact: true, Delta: 0.02, SigmaWithin: 0.03, Tau: 0.3, Bimodal: true,
			Verdict: &verdict.Verdict{Kind: verdict.NoSuspicion, P: 1, Sees: 0.04, Reason: "its history gives no cause"},
		}
		change(&row)
		return row
	}
	rows := []store.ComparisonRow{
		quiet(func(*store.ComparisonRow) {}),
		quiet(func(r *store.ComparisonRow) { r.Suspected = true }),
		quiet(func(r *store.ComparisonRow) { r.Suspicion = "slower" }),
		quiet(func(r *store.ComparisonRow) { r.Against = "v0" }),
		quiet(func(r *store.ComparisonRow) { r.Measured = true }),
		quiet(func(r *store.ComparisonRow) { r.Verdict = nil }),
		quiet(func(r *store.ComparisonRow) { r.Verdict.Kind = verdict.NoDifference }),
		quiet(func(r *store.ComparisonRow) { r.Verdict.Change = 0.01 }),
		quiet(func(r *store.ComparisonRow) {
			r.Verdict.Interval = &stats.Interval{Low: -0.1, High: 0.1, Confidence: 0.95}
		}),
		quiet(func(r *store.ComparisonRow) { r.Verdict.Pairs = 1 }),
		quiet(func(r *store.ComparisonRow) { r.Verdict.Sessions = 1 }),
		quiet(func(r *store.ComparisonRow) { r.Verdict.Disturbed = 1 }),
		quiet(func(r *store.ComparisonRow) { r.Verdict.P = 0.5 }),
		quiet(func(r *store.ComparisonRow) { r.Verdict.Level = 0.01 }),
		quiet(func(r *store.ComparisonRow) { r.Verdict.Needs = "more pairs" }),
	}
	for i := range rows {
		rows[i].Metric = bench.Metric(fmt.Sprintf("metric-%02d", i))
	}
	require.NoError(t, r.BeginComparison(t.Context(), store.Comparison{
		Request: request.ID, Baseline: "v1", Tag: "v2", Mode: bench.VerifySuspects, RuleVersion: verdict.RuleVersion, BudgetSeconds: 600, Rows: rows,
	}))
	stored, err := r.ComparisonOf(t.Context(), request.ID)
	require.NoError(t, err)
	require.Equal(t, rows, stored.Rows)
}
