package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/admission"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

func TestAdmissionSnapshotHoldsWhatEstimatesNeed(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("c1")

	// Done: a job in two runs of ten and five minutes, between which nothing ran.
	done, past := r.oneJob("v1", "gin")
	r.handOut()
	first := r.start(past, 1, c)
	require.NoError(t, r.FinishRun(t.Context(), first.Run.ID, bench.RunEnd{Outcome: bench.RunLost}))
	second := r.start(past, 2, c)
	r.block(second.Run.ID, measured("gin", 1))
	require.NoError(t, r.FinishRun(t.Context(), second.Run.ID, bench.RunEnd{Outcome: bench.RunSuccess}))
	_, err := r.FinishJob(t.Context(), past.Key, 0, "")
	require.NoError(t, err)
	require.NoError(t, r.FinishJobsOf(t.Context(), done.ID))
	require.NoError(t, r.CompleteRequest(t.Context(), done.ID, bench.Success, "", nil, ""))
	r.execute(`update job_run set started_at = finished_at - make_interval(mins => case number when 1 then 10 else 5 end)`)
	r.execute(`update benchmark_request set admitted_at = jobs_done_at - interval '1 hour' where id = $1`, done.ID)

	// Running for two minutes; the request does not wait for its optional job.
	going, running := r.oneJob("v2", "gin")
	optional := newJob(going, "kit")
	require.NoError(t, r.ExpandRequest(t.Context(), going.ID, store.Expansion{Stage: bench.StageOwn, Jobs: storetest.Planned(optional), Optional: map[bench.Target]bool{target: true}}))
	r.handOut()
	r.start(running, 1, c)
	r.execute(`update job_run set started_at = now() - interval '2 minutes' where finished_at is null`)

	// Waiting.
	waiting := release(t, "v3")
	waiting.Selection = bench.Selection{Benchmarks: []string{"gin"}}
	waiting = r.create(waiting)
	child := release(t, "c2")
	child.Type, child.Parent, child.WaitsFor = bench.Master, "v1", "v1"
	child = r.create(child)

	q, err := r.AdmissionSnapshot(t.Context(), project, offline)
	require.NoError(t, err)
	var open []bench.RequestID
	for _, request := range q.Open {
		open = append(open, request.ID)
	}
	require.Equal(t, []bench.RequestID{going.ID, waiting.ID, child.ID}, open)
	require.Equal(t, map[string]bool{"v1": true}, q.Done)

	require.Len(t, q.Past, 1)
	require.InDelta(t, 900, q.Past[0].Seconds, 0.001)
	shape := admission.JobShape{
		Project: project, Kind: bench.KindCompileTime, Target: target, Profile: "build", CasesDigest: q.Past[0].CasesDigest, CaseCount: 1,
		SizeClass: small.SizeClass, Pool: small.Name, TaskQueue: small.TaskQueue(),
	}
	require.Equal(t, shape, q.Past[0].JobShape)

	require.Len(t, q.Jobs, 2)
	require.Equal(t, shape, q.Jobs[0].JobShape, "the same job for another artifact has the same shape")
	require.Equal(t, bench.JobInProgress, q.Jobs[0].Status)
	require.InDelta(t, 120, q.Jobs[0].Seconds, 30)
	require.Equal(t, []bench.RequestID{going.ID}, q.Jobs[0].Waiters)
	require.NotEqual(t, shape.CasesDigest, q.Jobs[1].CasesDigest)
	require.Empty(t, q.Jobs[1].Waiters, "nobody waits for an optional job")
	require.Zero(t, q.Jobs[1].Seconds)

	// The latest expanded request of each kind and selection is an example.
	require.Equal(t, []admission.Example{{Request: going.ID, Type: bench.Release, Tag: "v2", Jobs: []admission.JobShape{shape}}}, q.Examples)
	require.Len(t, q.Pools, 1)
	require.Equal(t, 1, q.Pools[0].Live)

	other, err := r.AdmissionSnapshot(t.Context(), "nobody", time.Hour)
	require.NoError(t, err)
	require.Empty(t, other.Open)
	require.Empty(t, other.Examples)
	require.Len(t, other.Jobs, 2, "all projects share the collectors")
	require.Len(t, other.Past, 1, "and how long their jobs take is of interest")
}

func TestEndedRequestsAreExamplesOfDuration(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	done, _ := r.oneJob("v1", "gin")
	require.NoError(t, r.FinishJobsOf(t.Context(), done.ID))
	r.execute(`update benchmark_request set admitted_at = jobs_done_at - interval '1 hour' where id = $1`, done.ID)
	q, err := r.AdmissionSnapshot(t.Context(), project, offline)
	require.NoError(t, err)
	require.Len(t, q.Examples, 1)
	require.InDelta(t, 3600, q.Examples[0].Seconds, 0.001)
	require.Empty(t, q.Open)
}
