package store_test

import (
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

func TestABlockIsStoredOnce(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, job := r.oneJob("v1", "gin", "zip", "tar")
	run := r.start(job, 1, r.register("one")).Run.ID
	skipped := bench.TestCaseResult{TestCase: testCase("tar"), Skipped: "needs\x00 docker"}
	results := []bench.TestCaseResult{measured("gin", 1, 2, 3), measured("zip", 4), skipped, measured("zip", 5)}
	broken := testCase("zip")
	errs := []bench.RunError{
		{TestCase: &broken, Kind: bench.FailJob, Message: "exit status 1", OutputTail: "boom\x00"},
		{Kind: bench.FailInfrastructure, Message: "disk full"},
	}
	for range 2 {
		receipt, err := r.StoreBlock(t.Context(), run, results, errs)
		require.NoError(t, err)
		require.Equal(t, bench.BlockReceipt{Accepted: 3}, receipt, "the same receipt when repeated")
		require.Equal(t, 3, r.count(`select count(*) from test_result`))
		require.Equal(t, 4, r.count(`select count(*) from collection`), "of two results for one test case the first counts")
		require.Equal(t, 8, r.count(`select count(*) from pstat`))
		require.Equal(t, 4, r.count(`select count(*) from pstat_series`))
		require.Equal(t, 2, r.count(`select count(*) from error`))
	}
	require.Zero(t, r.count(`select count(*) from pstat_runtime`))
	require.Equal(t, 3, r.job(job.Key).Done)

	// Invalid results are refused as a whole.
	for name, bad := range map[string]bench.TestCaseResult{
		"not of this job":        measured("other", 1),
		"no collections":         {TestCase: testCase("gin")},
		"skipped, with a result": {TestCase: testCase("gin"), Skipped: "why", Collections: measured("gin", 1).Collections},
	} {
		_, err := r.StoreBlock(t.Context(), run, []bench.TestCaseResult{bad}, nil)
		require.ErrorIs(t, err, store.ErrConflict, name)
	}
	other := testCase("other")
	_, err := r.StoreBlock(t.Context(), run, nil, []bench.RunError{{TestCase: &other, Kind: bench.FailJob}})
	require.ErrorIs(t, err, store.ErrConflict)
	_, err = r.StoreBlock(t.Context(), runID(job, 9), nil, nil)
	require.ErrorIs(t, err, store.ErrNotFound)
	r.execute(`update job_queue set iterations = 2`)
	_, err = r.StoreBlock(t.Context(), run, []bench.TestCaseResult{measured("gin", 1, 2, 3, 4)}, nil)
	require.ErrorIs(t, err, store.ErrConflict, "more than the job measures")
	require.ErrorContains(t, err, "measures 2 iterations")
	receipt, err := r.StoreBlock(t.Context(), run, nil, nil)
	require.NoError(t, err)
	require.Zero(t, receipt)
}

func TestRuntimeStatisticsHaveTheirOwnTable(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	q := r.inProgress(release(t, "v1"))
	job := newJob(q, "gin")
	job.Kind = bench.KindRuntime
	r.expand(q, job)
	r.block(r.start(job, 1, r.register("one")).Run.ID, measured("gin", math.Inf(1), math.NaN()))
	require.Equal(t, 4, r.count(`select count(*) from pstat_runtime`))
	require.Zero(t, r.count(`select count(*) from pstat`))
	samples, err := r.SamplesOf(t.Context(), project, "v1")
	require.NoError(t, err)
	require.Len(t, samples, 2)
	require.Equal(t, bench.KindRuntime, samples[0].Kind)
	require.True(t, math.IsInf(samples[0].Values[0], 1))
	require.True(t, math.IsNaN(samples[0].Values[1]))
}

func TestALateBlockIsAcceptedWhileItsJobIsOpen(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, job := r.oneJob("v1", "gin", "zip", "tar")
	c := r.register("one")
	late := r.start(job, 1, c).Run.ID
	require.NoError(t, r.CloseLostRuns(t.Context(), job.Key, 0, "silent"))
	now := r.start(job, 2, c).Run.ID

	// The next run has measured one of them already; its result stays.
	require.Equal(t, bench.BlockReceipt{Accepted: 1}, r.block(now, measured("gin", 1)))
	require.Equal(t, bench.BlockReceipt{Accepted: 1, Superseded: 1}, r.block(late, measured("gin", 7), measured("zip", 7)))
	require.Equal(t, bench.BlockReceipt{Superseded: 1}, r.block(now, measured("zip", 1)))
	require.Equal(t, 2, r.count(`select count(*) from collection`))
	require.Equal(t, 1, r.count(`select count(*) from test_result where run_id = $1`, string(late)))

	// Results of a job that has ended are superseded, without an error.
	_, err := r.FinishJob(t.Context(), job.Key, 0, "enough")
	require.NoError(t, err)
	tar := testCase("tar")
	receipt, err := r.StoreBlock(t.Context(), now, []bench.TestCaseResult{measured("tar", 1), measured("gin", 1)}, []bench.RunError{{TestCase: &tar, Kind: bench.FailJob}})
	require.NoError(t, err)
	require.Equal(t, bench.BlockReceipt{Accepted: 1, Superseded: 1}, receipt)
	require.Equal(t, 2, r.count(`select count(*) from test_result`))
	require.Zero(t, r.count(`select count(*) from error`))
}

func TestConcurrentBlocksShareSeries(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	all := names(12)
	var runs []bench.RunID
	for i := range 6 {
		_, job := r.oneJob(fmt.Sprint("v", i), all...)
		runs = append(runs, r.start(job, 1, r.register(fmt.Sprint("c", i))).Run.ID)
	}
	for _, err := range together(len(runs), func(i int) error {
		var results []bench.TestCaseResult
		for at := range all {
			results = append(results, measured(all[(at+i)%len(all)], 1, 2)) // each in another order
		}
		_, err := r.StoreBlock(t.Context(), runs[i], results, nil)
		return err
	}) {
		require.NoError(t, err)
	}
	require.Equal(t, 24, r.count(`select count(*) from pstat_series`))
	require.Equal(t, 6*12*2*2, r.count(`select count(*) from pstat`))
}

// Blocks are repeated in any order, by several runs and goroutines: each test case keeps
// the collections of exactly one upload.
func TestRepetitionsNeverDoubleCollections(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	for seed := range uint64(6) {
		random := mathrand.New(mathrand.NewPCG(seed, 7))
		cases := names(4)
		_, job := r.oneJob(fmt.Sprint("v", seed), cases...)
		c := r.register("one")
		var runs []bench.RunID
		for attempt := range 3 {
			runs = append(runs, r.start(job, attempt, c).Run.ID)
		}
		type upload struct {
			run     bench.RunID
			results []bench.TestCaseResult
		}
		var uploads []upload
		for range 16 {
			run := random.IntN(len(runs))
			u := upload{run: runs[run]}
			for _, b := range cases {
				if random.IntN(2) == 0 {
					// A run always finds the same values; each run finds others.
					u.results = append(u.results, measured(b, float64(run), float64(run), float64(run)))
				}
			}
			uploads = append(uploads, u)
		}
		for _, err := range together(len(uploads), func(i int) error {
			receipt, err := r.StoreBlock(t.Context(), uploads[i].run, uploads[i].results, nil)
			if err == nil && receipt.Accepted+receipt.Superseded != len(uploads[i].results) {
				err = fmt.Errorf("%d results, receipt %v", len(uploads[i].results), receipt)
			}
			return err
		}) {
			require.NoError(t, err, "seed %d", seed)
		}
		samples, err := r.SamplesOf(t.Context(), project, job.Tag)
		require.NoError(t, err)
		for _, s := range samples {
			require.Len(t, s.Values, 3, "seed %d", seed)
			require.Equal(t, s.Values[0], s.Values[1], "values of one run")
			require.Equal(t, s.Values[0], s.Values[2], "values of one run")
		}
		require.Len(t, samples, 2*r.job(job.Key).Done)
	}
}
