package store_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

// divided is a request with a job of test cases b0 to b7, each of two scenarios, divided into
// four chunks.
func (r record) divided(least int) (bench.Request, []bench.Job) {
	r.t.Helper()
	request := r.inProgress(release(r.t, "v1"))
	var jobs []bench.PlannedJob
	for i := range 4 {
		j := newJob(request)
		for _, b := range []int{2 * i, 2*i + 1} {
			for _, scenario := range []string{"cold", "warm"} {
				tc := testCase(fmt.Sprint("b", b))
				tc.Scenario = scenario
				j.TestCases = append(j.TestCases, tc)
			}
		}
		j.Chunk = i + 1
		j.Key = bench.JobKey(fmt.Sprintf("chunkchunkchunk%d", i+2))
		planned := storetest.Planned(j)[0]
		planned.ChunkSet, planned.ChunkOf, planned.ChunkMin = "whole", 4, least
		jobs = append(jobs, planned)
	}
	require.NoError(r.t, r.ExpandRequest(r.t.Context(), request.ID, store.Expansion{Stage: bench.StageOwn, Jobs: jobs}))
	return request, r.chunks(request)
}

func (r record) chunks(request bench.Request) []bench.Job {
	r.t.Helper()
	jobs, err := r.RequestJobs(r.t.Context(), request.ID)
	require.NoError(r.t, err)
	return jobs
}

// blocks lists the benchmarks of each chunk that is open or has begun, and checks that each
// test case is in one chunk, with all of its scenarios.
func (r record) blocks(request bench.Request) [][]string {
	r.t.Helper()
	var out [][]string
	seen := make(map[bench.TestCase]bool)
	for _, j := range r.chunks(request) {
		var names []string
		for i, tc := range j.TestCases {
			require.False(r.t, seen[tc])
			seen[tc] = true
			if i%2 == 0 {
				names = append(names, tc.Benchmark)
			} else {
				require.Equal(r.t, j.TestCases[i-1].Benchmark, tc.Benchmark)
			}
		}
		require.Equal(r.t, len(j.TestCases), r.count(`select count(*) from job_test_case where job_id = $1`, j.ID))
		out = append(out, names)
	}
	require.Len(r.t, seen, 16)
	return out
}

func resultsOf(j bench.Job) []bench.TestCaseResult {
	var out []bench.TestCaseResult
	for _, tc := range j.TestCases {
		m := measured(tc.Benchmark, 1)
		m.TestCase = tc
		out = append(out, m)
	}
	return out
}

// A machine that is alone makes the least number of chunks; what another had been given ends
// with nothing to do.
func TestAMachineThatIsAloneMakesFewChunks(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request, jobs := r.divided(2)
	c := r.register("bench-1")
	require.Len(t, r.handedOut(), 4)
	plan := r.start(jobs[1], 1, c)
	require.Len(t, plan.Missing, 8)
	require.Equal(t, plan.Missing, plan.Job.TestCases)
	require.Equal(t, [][]string{{"b4"}, {"b0", "b1", "b2", "b3"}, {"b5"}, {"b6", "b7"}}, r.blocks(request))

	// The run is lost: the chunk stays as it is.
	require.NoError(t, r.CloseLostRuns(t.Context(), jobs[1].Key, 0, "the machine died"))
	_, err := r.NextDispatch(t.Context(), jobs[1].Key, 0, "")
	require.NoError(t, err)
	again := r.start(r.job(jobs[1].Key), 2, c)
	require.Equal(t, plan.Missing, again.Missing)
	r.block(again.Run.ID, resultsOf(again.Job)...)
	require.NoError(t, r.FinishRun(t.Context(), again.Run.ID, bench.RunEnd{Outcome: bench.RunSuccess}))
	require.Equal(t, bench.JobSuccess, r.finish(r.job(jobs[1].Key), "").Status)

	plan = r.start(jobs[2], 1, c)
	require.Len(t, plan.Missing, 8)
	require.Equal(t, [][]string{nil, {"b0", "b1", "b2", "b3"}, {"b4", "b5", "b6", "b7"}, nil}, r.blocks(request))
	for _, empty := range []bench.Job{jobs[0], jobs[3]} {
		j := r.job(empty.Key)
		require.Equal(t, []any{bench.JobSuccess, "other chunks measure what it would have"}, []any{j.Status, j.Message})
		start := r.runStart(runID(empty, 1), c)
		_, err := r.StartRun(t.Context(), start)
		require.ErrorIs(t, err, store.ErrJobClosed)
	}
	progress, err := r.StageProgress(t.Context(), request.ID, bench.StageOwn, false)
	require.NoError(t, err)
	cases, done, err := r.StageTestCases(t.Context(), request.ID, bench.StageOwn)
	require.NoError(t, err)
	require.Equal(t, []int{4, 1, 16, 8}, []int{progress.Total, progress.Open(), cases, done})
}

// Machines that ask at once share the job, up to the most chunks; results say how long a part
// takes.
func TestIdleMachinesShareChunks(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request, jobs := r.divided(1)
	var machines []bench.Collector
	for i := range 3 {
		machines = append(machines, r.register(fmt.Sprint("bench-", i)))
	}
	require.Len(t, r.handedOut(), 4)
	errs := together(3, func(i int) error {
		_, err := r.StartRun(t.Context(), r.runStart(runID(jobs[i], 1), machines[i]))
		return err
	})
	for _, err := range errs {
		require.NoError(t, err)
	}
	began := 0
	for i, names := range r.blocks(request) {
		if r.job(jobs[i].Key).Status == bench.JobInProgress {
			began++
			require.NotEmpty(t, names)
			require.LessOrEqual(t, len(names), 4)
		}
	}
	require.Equal(t, 3, began)

	// Another one has measured b0 for ten times as long as the others.
	r = newRecord(t)
	c := r.register("bench-1")
	request, jobs = r.divided(2)
	require.Len(t, r.handedOut(), 4)
	for range 2 {
		for _, j := range r.chunks(request) {
			if j.Status.Open() && len(j.TestCases) > 0 {
				p := r.start(j, 1, c)
				r.block(p.Run.ID, resultsOf(p.Job)...)
				require.NoError(t, r.FinishRun(t.Context(), p.Run.ID, bench.RunEnd{Outcome: bench.RunSuccess}))
				r.finish(p.Job, "")
				break
			}
		}
	}
	r.execute(`update collection set facts = jsonb_build_object('duration_seconds', case when tc.benchmark = 'b0' then 100 else 10 end)
		from test_result r join test_case tc on tc.id = r.test_case_id where r.id = collection.result_id`)
	other := r.inProgress(release(t, "v2"))
	var next []bench.PlannedJob
	for i, j := range r.chunks(request) {
		j.Tag, j.ID, j.JobState = "v2", 0, bench.JobState{Status: bench.JobQueued}
		j.Key = bench.JobKey(fmt.Sprintf("nextnextnextnex%d", i+2))
		j.TestCases = jobs[i].TestCases
		planned := storetest.Planned(j)[0]
		planned.ChunkSet, planned.ChunkOf, planned.ChunkMin = "next", 4, 2
		next = append(next, planned)
	}
	require.NoError(t, r.ExpandRequest(t.Context(), other.ID, store.Expansion{Stage: bench.StageOwn, Jobs: next}))
	require.Len(t, r.handedOut(), 4)
	r.start(r.chunks(other)[0], 1, c)
	require.Equal(t, []string{"b0"}, r.blocks(other)[0])
}
