package orchestration_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/verdict"
)

// jobsEnded carries a release out up to the end of its own jobs.
func (b *bundle) jobsEnded(tag string, c bench.Collector, seconds float64) protocol.RequestRef {
	b.t.Helper()
	ref := b.running(tag)
	b.handOut(ref)
	for _, j := range b.jobs(ref) {
		b.measure(j, c, seconds)
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
	require.Equal(t, []int{6, 8}, b.decide(ref, c, 1, 1.2), "14 pairs confirm a small family")

	comparison = b.comparison(ref)
	require.True(t, comparison.Decided)
	require.NotEmpty(t, comparison.Rows)
	for _, row := range comparison.Rows {
		require.True(t, row.Suspected && row.Measured)
		require.Equal(t, verdict.Changed, row.Verdict.Kind, row.Verdict.Reason)
		require.InDelta(t, 0.2, row.Verdict.Change, 1e-6)
		require.Equal(t, []int{14, 2}, []int{row.Verdict.Pairs, row.Verdict.Sessions})
	}
	samples, err := b.store.SamplesOf(t.Context(), project, "1.0.0")
	require.NoError(t, err)
	require.Len(t, samples[0].Values, 5, "the baseline's history is as it was")

	out := b.complete(ref, "")
	require.Equal(t, []any{bench.Success, "1.0.0"}, []any{out.Outcome, out.Baseline})
	require.Equal(t, comparison, b.comparison(ref))
}
