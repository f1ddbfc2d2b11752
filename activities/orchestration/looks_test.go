package orchestration_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/verdict"
)

// jobsEnded carries a release out up to the end of its own jobs.
func (b *bundle) jobsEnded(tag string, c bench.Collector, seconds float64) protocol.RequestRef {
	b.t.Helper()
	return b.jobsMeasured(tag, func(j bench.Job) { b.measure(j, c, seconds) })
}

func (b *bundle) jobsMeasured(tag string, measure func(bench.Job)) protocol.RequestRef {
	b.t.Helper()
	ref := b.running(tag)
	b.handOut(ref)
	for _, j := range b.jobs(ref) {
		measure(j)
		require.Equal(b.t, bench.JobSuccess, b.recordEnd(j.Key, "").Status)
	}
	require.NoError(b.t, b.JobsDone(b.t.Context(), ref))
	return ref
}

// nextLook asks for the next look, often.
func (b *bundle) nextLook(ref protocol.RequestRef) protocol.LookResult {
	b.t.Helper()
	var first protocol.LookResult
	for i := range 3 {
		look, err := b.NextLook(b.t.Context(), ref)
		require.NoError(b.t, err)
		if i == 0 {
			first = look
			continue
		}
		require.Equal(b.t, first.Look, look.Look, "asking again changes nothing")
		require.Equal(b.t, first.Counts, look.Counts)
		require.Equal(b.t, first.Decided, look.Decided)
	}
	return first
}

// comparison reads the comparison of a request.
func (b *bundle) comparison(ref protocol.RequestRef) store.Comparison {
	b.t.Helper()
	c, err := b.store.ComparisonOf(b.t.Context(), ref.ID)
	require.NoError(b.t, err)
	return c
}

// lookJobs lists the jobs of the last look.
func (b *bundle) lookJobs(c store.Comparison) []bench.Job {
	b.t.Helper()
	jobs, err := b.store.LookJobs(b.t.Context(), c.ID, c.Look)
	require.NoError(b.t, err)
	require.NotEmpty(b.t, jobs)
	return jobs
}

// decide measures look after look until there is a verdict for each row, and returns the
// number of pairs of each look.
func (b *bundle) decide(ref protocol.RequestRef, c bench.Collector, versus, own float64) (pairs []int) {
	b.t.Helper()
	for look := b.nextLook(ref); !look.Decided; look = b.nextLook(ref) {
		require.Positive(b.t, look.Counts.Open)
		jobs := b.lookJobs(b.comparison(ref))
		for _, j := range jobs {
			b.measureBoth(j, c, versus, own)
			require.Equal(b.t, bench.JobSuccess, b.recordEnd(j.Key, "").Status)
		}
		pairs = append(pairs, jobs[0].Iterations)
	}
	return pairs
}

// A release that is slower, and stays so beside its baseline, has changed. Its slot is
// free and its history is written while that is decided.
func TestASuspicionIsMeasuredInTurnsUntilItIsDecided(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	c := b.register("c1")
	b.released("1.0.0", c, 1)
	ref := b.jobsEnded("1.1.0", c, 1.2)

	look := b.nextLook(ref)
	require.Equal(t, []any{false, 1, 5, "1.0.0"}, []any{look.Decided, look.Look, look.Looks, look.Baseline})
	require.Len(t, look.HandedOut, look.Counts.Open)
	comparison := b.comparison(ref)
	require.False(t, comparison.Decided)
	require.Equal(t, look.Rows, comparison.FamilySize)
	for _, j := range b.lookJobs(comparison) {
		require.Equal(t, []string{"1.1.0", "1.0.0", "idle"}, []string{j.Tag, j.Versus, j.Queue})
		require.Equal(t, 6, j.Iterations)
	}
	require.Equal(t, []int{6, 8, 8, 12}, b.decide(ref, c, 1, 1.2), "14 pairs confirm a small family, but a young series needs four sessions")

	comparison = b.comparison(ref)
	require.True(t, comparison.Decided)
	require.NotEmpty(t, comparison.Rows)
	for _, row := range comparison.Rows {
		require.True(t, row.Suspected && row.Measured)
		require.Equal(t, verdict.Changed, row.Verdict.Kind, row.Verdict.Reason)
		require.InDelta(t, 0.2, row.Verdict.Change, 1e-6)
		require.Equal(t, []int{34, 4}, []int{row.Verdict.Pairs, row.Verdict.Sessions})
	}
	samples, err := b.store.SamplesOf(t.Context(), project, "1.0.0")
	require.NoError(t, err)
	require.Len(t, samples[0].Values, 5, "the baseline's history is as it was")

	out := b.complete(ref, "")
	require.Equal(t, []any{bench.Success, "1.0.0"}, []any{out.Outcome, out.Baseline})
	require.Equal(t, comparison, b.comparison(ref))
}

// The pairs of a suspect also decide its other metrics. What they leave open there is
// without suspicion, as before.
func TestMetricsBesideASuspectAreJudgedByItsPairs(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	c := b.register("c1")
	measured := func(tag string, seconds float64) protocol.RequestRef {
		return b.jobsMeasured(tag, func(j bench.Job) {
			b.measureValues(j, c, func(i int) map[bench.Metric]float64 {
				noisy := 1 + float64(i)/50
				return map[bench.Metric]float64{bench.WallTime: seconds * (1 + float64(i)/1000), bench.CPUTime: noisy, bench.MaxRSS: 1e6 * noisy}
			})
		})
	}
	first := measured("1.0.0", 1)
	require.True(t, b.nextLook(first).Decided)
	b.complete(first, "")
	ref := measured("1.1.0", 1.2)
	for look := b.nextLook(ref); !look.Decided; look = b.nextLook(ref) {
		for _, j := range b.lookJobs(b.comparison(ref)) {
			run := b.start(j.Key, c, 1)
			b.storePairsOf(run, j, func(tag string, i int) map[bench.Metric]float64 {
				shared, slower := 1+float64(i%5)/1000, 1.0
				if tag == "1.1.0" {
					slower = 1.2
				}
				apart := 1 + 0.5*float64(i%2)
				if tag == "1.1.0" {
					apart = 2.5 - apart
				}
				return map[bench.Metric]float64{bench.WallTime: slower * shared, bench.CPUTime: slower * shared, bench.MaxRSS: 1e6 * apart}
			})
			require.NoError(t, b.store.FinishRun(t.Context(), run, bench.RunEnd{Outcome: bench.RunSuccess}))
			require.Equal(t, bench.JobSuccess, b.recordEnd(j.Key, "").Status)
		}
	}
	comparison := b.comparison(ref)
	require.Equal(t, len(comparison.Rows), comparison.FamilySize)
	for _, row := range comparison.Rows {
		want := map[bench.Metric][]any{
			bench.WallTime: {true, verdict.Changed}, bench.CPUTime: {false, verdict.Changed}, bench.MaxRSS: {false, verdict.NoSuspicion},
		}[row.Metric]
		require.True(t, row.Measured)
		require.Equal(t, want, []any{row.Suspected, row.Verdict.Kind}, "%s: %s", row.Metric, row.Verdict.Reason)
	}
}

// A metric that the suite declares exact has changed by any difference, and is not measured
// again.
func TestADeclaredExactMetricIsDecidedByStoredValues(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	b.applySuite(smallSuite + "metrics: {exact: [wall-time]}\n")
	c := b.register("c1")
	measured := func(tag string, seconds float64) protocol.RequestRef {
		ref := b.running(tag)
		b.handOut(ref)
		b.measureSteadily(ref, c, map[string]float64{"": seconds})
		return ref
	}
	b.complete(measured("1.0.0", 1), "")
	ref := measured("1.1.0", 1.0005)
	require.True(t, b.nextLook(ref).Decided)
	rows := b.comparison(ref).Rows
	require.NotEmpty(t, rows)
	for _, row := range rows {
		require.True(t, row.Exact)
		require.False(t, row.Measured)
		require.Zero(t, row.Delta)
		require.Equal(t, verdict.Changed, row.Verdict.Kind, row.Verdict.Reason)
		require.InDelta(t, 0.0005, row.Verdict.Change, 1e-9)
	}
}

// In turns, one look is enough for it.
func TestADeclaredExactMetricIsDecidedByOneLook(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"verify": "off"}`)
	b.applySuite(smallSuite + "metrics: {exact: [wall-time]}\n")
	c := b.register("c1")
	ref := b.inTurns("1.1.0", "1.0.0")
	b.handOut(ref)
	b.measureSteadily(ref, c, map[string]float64{"1.0.0": 1, "1.1.0": 1.0005})
	require.True(t, b.nextLook(ref).Decided)
	for _, row := range b.comparison(ref).Rows {
		require.True(t, row.Exact)
		require.Equal(t, verdict.Changed, row.Verdict.Kind, row.Verdict.Reason)
	}
}

// measureSteadily carries out the jobs of a request with values that do not vary, by tag.
func (b *bundle) measureSteadily(ref protocol.RequestRef, c bench.Collector, seconds map[string]float64) {
	b.t.Helper()
	for _, j := range b.jobs(ref) {
		run := b.start(j.Key, c, 1)
		var results []bench.TestCaseResult
		for _, tc := range j.TestCases {
			for tag, value := range seconds {
				r := bench.TestCaseResult{TestCase: tc, Tag: tag}
				for i := range 2 {
					r.Collections = append(r.Collections, bench.Collection{
						Iteration: i + 1, CollectedAt: time.Date(2026, 1, 2, 3, 4, i, 0, time.UTC), Values: map[bench.Metric]float64{bench.WallTime: value},
					})
				}
				results = append(results, r)
			}
		}
		_, err := b.store.StoreBlock(b.t.Context(), run, results, nil)
		require.NoError(b.t, err)
		require.NoError(b.t, b.store.FinishRun(b.t.Context(), run, bench.RunEnd{Outcome: bench.RunSuccess}))
		require.Equal(b.t, bench.JobSuccess, b.recordEnd(j.Key, "").Status)
	}
	require.NoError(b.t, b.JobsDone(b.t.Context(), ref))
}

// What a person asks for with a baseline is measured the same way, in the person's queue:
// its own jobs are the first look.
func TestAnAdHocRequestIsMeasuredUntilItIsDecided(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"verify": "off"}`)
	c := b.register("c1")
	ref := b.inTurns("1.1.0", "1.0.0")
	b.handOut(ref)
	own := b.jobs(ref)
	for _, j := range own {
		require.Equal(t, 6, j.Iterations)
		b.measureBoth(j, c, 1, 1.2)
		require.Equal(t, bench.JobSuccess, b.recordEnd(j.Key, "").Status)
	}
	require.NoError(t, b.JobsDone(t.Context(), ref))
	look := b.nextLook(ref)
	require.Equal(t, []any{false, 2, 5}, []any{look.Decided, look.Look, look.Looks})
	require.Equal(t, look.Text(), b.request(ref).Message)
	for _, j := range b.lookJobs(b.comparison(ref)) {
		require.Equal(t, "user:ada", j.Queue)
	}
	require.Equal(t, []int{8}, b.decide(ref, c, 1, 1.2))
	for _, row := range b.comparison(ref).Rows {
		require.Equal(t, verdict.Changed, row.Verdict.Kind, row.Verdict.Reason)
		require.Equal(t, []any{14, 2}, []any{row.Verdict.Pairs, row.Verdict.Sessions})
	}
	require.Equal(t, "1.0.0", b.complete(ref, "").Baseline)
}

// With a number of iterations there is one look of as many pairs.
func TestAFixedNumberOfPairsIsOneLook(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	c := b.register("c1")
	ref := b.create(bench.AdHoc, "1.1.0", 1)
	b.execute(`update benchmark_request set versus = '1.0.0', selection = '{"iterations": 20}' where id = $1`, ref.ID)
	b.handOut(ref)
	for _, j := range b.jobs(ref) {
		require.Equal(t, 20, j.Iterations)
		b.measureBoth(j, c, 1, 1)
		b.recordEnd(j.Key, "")
	}
	require.NoError(t, b.JobsDone(t.Context(), ref))
	require.True(t, b.nextLook(ref).Decided)
	comparison := b.comparison(ref)
	require.Equal(t, []any{20, 1}, []any{comparison.Pairs, comparison.Look})
	for _, row := range comparison.Rows {
		require.Equal(t, verdict.NoDifference, row.Verdict.Kind, row.Verdict.Reason)
	}
}

// A look that fails, or that somebody cancels, leaves its rows undecided with the reason;
// nothing is measured for them again.
func TestALookThatFailsLeavesItsRowsUndecided(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   protocol.JobEndInput
		want string
	}{
		"fails":     {protocol.JobEndInput{GaveUp: "exit status 3"}, "look 1 failed: "},
		"cancelled": {protocol.JobEndInput{Cancelled: true, GaveUp: "cancelled by ada"}, "look 1 was cancelled: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, `{}`)
			collector := b.register("c1")
			b.released("1.0.0", collector, 1)
			ref := b.jobsEnded("1.1.0", collector, 1.2)
			require.False(t, b.nextLook(ref).Decided)
			for _, j := range b.lookJobs(b.comparison(ref)) {
				end := c.in
				end.Project, end.Key, end.TaskQueue = project, j.Key, pool.TaskQueue()
				_, err := b.RecordJobEnd(t.Context(), end)
				require.NoError(t, err)
			}
			require.True(t, b.nextLook(ref).Decided)
			for _, row := range b.comparison(ref).Rows {
				require.Equal(t, verdict.Undecided, row.Verdict.Kind)
				require.Contains(t, row.Verdict.Reason, c.want)
				require.NotEmpty(t, row.Verdict.Needs)
			}
			require.Equal(t, bench.Success, b.complete(ref, "").Outcome)
		})
	}
}

// What the suite no longer has, and what no collector can run any more, stays undecided.
func TestWhatCannotBeMeasuredAgainIsUndecided(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	c := b.register("c1")
	b.released("1.0.0", c, 1)
	ref := b.jobsEnded("1.1.0", c, 1.2)
	b.execute(`delete from collector_config`)
	require.True(t, b.nextLook(ref).Decided)
	for _, row := range b.comparison(ref).Rows {
		require.Equal(t, verdict.Undecided, row.Verdict.Kind)
		require.Contains(t, row.Verdict.Reason, "it cannot be measured again: ")
	}
}

// The budget bounds what is measured again: what is left over is undecided, and says so.
func TestTheBudgetBoundsTheLooks(t *testing.T) {
	t.Parallel()
	for config, budget := range map[string]time.Duration{`{}`: bench.VerifyAtLeast, `{"verify_at_least": "4m"}`: 4 * time.Minute} {
		b := setup(t, config)
		c := b.register("c1")
		b.released("1.0.0", c, 1)
		ref := b.jobsEnded("1.1.0", c, 1.2)
		// Each iteration takes a minute: 14 pairs of one test case are over ten minutes.
		b.execute(`update collection set facts = '{"duration_seconds": 60}'`)
		require.True(t, b.nextLook(ref).Decided)
		comparison := b.comparison(ref)
		require.Zero(t, comparison.FamilySize)
		require.InDelta(t, budget.Seconds(), comparison.BudgetSeconds, 1e-9)
		for _, row := range comparison.Rows {
			require.True(t, row.Suspected)
			require.False(t, row.Measured)
			require.Equal(t, verdict.Undecided, row.Verdict.Kind)
			require.Contains(t, row.Verdict.Reason, verdict.Budget)
			require.Equal(t, "a larger verify_budget or verify_at_least", row.Verdict.Needs)
		}
	}
}

// A person who reads that a look is being measured learns of what.
func TestALookNamesItsSuspects(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"verify_at_least": "30m"}`)
	c := b.register("c1")
	b.released("1.0.0", c, 1)
	ref := b.jobsEnded("1.1.0", c, 1.2)
	require.Equal(t, "look 1 of at most 5 at gin, sort, in turns with 1.0.0", b.nextLook(ref).Text())
	// The time suffices for 14 pairs of one of them.
	b = setup(t, `{"verify_at_least": "30m"}`)
	c = b.register("c1")
	b.released("1.0.0", c, 1)
	ref = b.jobsEnded("1.1.0", c, 1.2)
	b.execute(`update collection set facts = '{"duration_seconds": 60}'`)
	require.Regexp(t, "^look 1 of at most 5 at (gin|sort), in turns with 1.0.0$", b.nextLook(ref).Text())
}

// Sizes have no noise: stored values decide, so that nothing is measured again, and no pairs are told of.
func TestStoredValuesDecideAboutSizes(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	c := b.register("c1")
	built := func(tag string, size float64) protocol.RequestRef {
		return b.jobsMeasured(tag, func(j bench.Job) {
			b.measureValues(j, c, func(int) map[bench.Metric]float64 { return map[bench.Metric]float64{"size:binary": size} })
		})
	}
	b.complete(built("1.0.0", 1000), "")
	ref := built("1.1.0", 1001)
	require.True(t, b.nextLook(ref).Decided)
	rows := b.comparison(ref).Rows
	require.NotEmpty(t, rows)
	for _, row := range rows {
		require.Equal(t, verdict.Changed, row.Verdict.Kind)
		require.InDelta(t, 0.001, row.Verdict.Change, 1e-12)
		require.Equal(t, []int{0, 0}, []int{row.Verdict.Pairs, row.Verdict.Sessions})
		require.False(t, row.Measured)
	}
}

// A project may measure nothing again, or everything.
func TestWhatIsMeasuredAgainIsConfigured(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config  string
		seconds float64
		rows    bool // whether there is a comparison with rows
		again   bool
	}{
		"off":            {`{"verify": "off"}`, 1.2, false, false},
		"false":          {`{"verify": false}`, 1.2, false, false},
		"true, the same": {`{"verify": true}`, 1, true, false},
		"all":            {`{"verify": "all"}`, 1, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, c.config)
			collector := b.register("c1")
			first := b.jobsEnded("1.0.0", collector, 1)
			require.True(t, b.nextLook(first).Decided, "there is nothing to compare the first with")
			b.complete(first, "")
			ref := b.jobsEnded("1.1.0", collector, c.seconds)
			require.Equal(t, !c.again, b.nextLook(ref).Decided)
			_, err := b.store.ComparisonOf(t.Context(), ref.ID)
			require.Equal(t, c.rows, err == nil, err)
		})
	}
}

// What changed is history: the next release is compared with what came after it.
func TestAHistoryBeginsWithTheLastConfirmedChange(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	c := b.register("c1")
	b.released("1.0.0", c, 1)
	changed := b.jobsEnded("1.1.0", c, 1.2)
	b.decide(changed, c, 1, 1.2)
	b.complete(changed, "")
	past, err := b.store.PastSuspicions(t.Context(), project, []string{"1.0.0", "1.1.0"})
	require.NoError(t, err)
	require.NotEmpty(t, past)
	for _, p := range past {
		require.Equal(t, []any{"1.1.0", true, true}, []any{p.Tag, p.Changed, p.Up})
	}
	same := b.jobsEnded("1.2.0", c, 1.2)
	require.True(t, b.nextLook(same).Decided)
	for _, row := range b.comparison(same).Rows {
		require.Equal(t, verdict.NoSuspicion, row.Verdict.Kind)
		require.Equal(t, "1.1.0", row.Against)
	}
	models, err := b.store.Noise(t.Context(), project, target)
	require.NoError(t, err)
	require.NotEmpty(t, models)
	for _, m := range models {
		require.Equal(t, 2, m.Model.Sessions, "1.1.0 and 1.2.0")
	}

	b.execute(`insert into canary (collector, slot, request_id) values ($1, now(), $2)`, c.Name, changed.ID)
	past, err = b.store.PastSuspicions(t.Context(), project, []string{"1.0.0", "1.1.0"})
	require.NoError(t, err)
	require.Empty(t, past, "a canary's change is the collector's")
}

// A change too small to be seen at once is seen over several releases. It is measured in
// turns with the last release before them, for the parent has it, too.
func TestAChangeSeenOverSeveralReleasesIsMeasuredAgainstTheOneBeforeThem(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	c := b.register("c1")
	noise := []float64{0.01, -0.01, 0, 0.01, -0.01, 0.005, -0.005, 0.01, -0.01, 0, 0.01, -0.01}
	for i, n := range noise {
		ref := b.jobsEnded(fmt.Sprintf("1.%d.0", i), c, 1+n)
		b.decide(ref, c, 1, 1) // until its spread is known, much is suspected
		b.complete(ref, "")
	}
	last := len(noise) - 1
	var ref protocol.RequestRef
	suspected := false
	for i := last + 1; !suspected && i < last+9; i++ {
		ref = b.jobsEnded(fmt.Sprintf("1.%d.0", i), c, 1.019)
		look := b.nextLook(ref)
		if suspected = !look.Decided; !suspected {
			b.complete(ref, "")
		}
	}
	require.True(t, suspected)
	comparison := b.comparison(ref)
	before := fmt.Sprintf("1.%d.0", last)
	require.NotEqual(t, before, comparison.Baseline)
	require.Contains(t, b.nextLook(ref).Text(), "in turns with "+before)
	for _, j := range b.lookJobs(comparison) {
		require.Equal(t, before, j.Versus)
	}
	b.decide(ref, c, 1, 1.019)
	changed := 0
	for _, row := range b.comparison(ref).Rows {
		if row.Measured {
			require.Equal(t, before, row.Against)
			require.Equal(t, verdict.Changed, row.Verdict.Kind, row.Verdict.Reason)
			changed++
		}
	}
	require.Positive(t, changed)
}

// Looks that wait for an idle collector in vain for hours take part in their project's
// share: their request would never be decided.
func TestLooksThatWaitForLongLeaveTheQueueIdle(t *testing.T) {
	t.Parallel()
	for config, queue := range map[string]string{`{}`: "project:go", `{"queue": {"queue": "nightly"}}`: "nightly", `{"queue": {"queue": "idle"}}`: "idle"} {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			b := setup(t, config)
			c := b.register("c1")
			b.released("1.0.0", c, 1)
			ref := b.jobsEnded("1.1.0", c, 1.2)
			require.NotEmpty(t, b.nextLook(ref).HandedOut)
			queues := func() []string {
				var out []string
				for _, j := range b.lookJobs(b.comparison(ref)) {
					out = append(out, j.Queue)
				}
				return slices.Compact(out)
			}
			b.pass(t)
			require.Equal(t, []string{"idle"}, queues())
			b.execute(`update job_queue set created_at = created_at - interval '5 hours'`)
			for range 2 {
				b.pass(t)
				require.Equal(t, []string{queue}, queues())
			}
			for _, j := range b.lookJobs(b.comparison(ref)) {
				require.Equal(t, bench.JobHandedOut, j.Status)
				level := 3
				if queue == "idle" {
					level = 5
				}
				require.Equal(t, level, j.Priority, "also in Temporal, and after vip")
			}
		})
	}
}

// Where several collectors measure a series, the record has its noise on each of them.
func TestTheNoiseOfEachCollectorIsKept(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	one, two := b.register("c1"), b.register("c2")
	for i, c := range []bench.Collector{one, one, two, one} {
		ref := b.jobsEnded(fmt.Sprintf("1.%d.0", i), c, 1)
		b.decide(ref, c, 1, 1)
		b.complete(ref, "")
	}
	models, err := b.store.Noise(t.Context(), project, target)
	require.NoError(t, err)
	sessions := make(map[string]int)
	for _, m := range models {
		sessions[m.Collector] = m.Model.Sessions
	}
	require.Equal(t, map[string]int{"": 4, "c1": 3, "c2": 1}, sessions)
}
