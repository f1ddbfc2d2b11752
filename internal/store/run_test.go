package store_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

func TestTheFenceReturnsTheRunsPlan(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, job := r.oneJob("v1", "zip", "gin", "tar")
	c := r.register("one")
	r.handOut()
	plan := r.start(job, 1, c)

	require.Equal(t, job.TestCases, plan.Missing, "in the job's order")
	require.JSONEq(t, `{"targets":[]}`, string(plan.Config))
	require.Equal(t, bench.JobInProgress, plan.Job.Status)
	require.NotNil(t, plan.Job.StartedAt)
	want := bench.Run{
		ID: runID(job, 1), Project: project, Job: job.Key, Number: 1, Reason: bench.Scheduled, Progress: json.RawMessage(`{}`), StartedAt: plan.Run.StartedAt,
		Setting: bench.Setting{SizeClass: 2, Pool: "small", Collector: "one", Epoch: c.Epoch, Version: "1", HardwareID: "zen4", Facts: plan.Run.Facts},
	}
	require.Equal(t, want, plan.Run)
	require.JSONEq(t, `{"cpu":"zen4"}`, string(plan.Run.Facts))
	require.Equal(t, want.ID, r.collector("one").CurrentRun)

	// Repeating the call after a lost answer returns the same plan; the wait was told before.
	require.NotNil(t, plan.Wait)
	plan.Wait = nil
	require.Equal(t, plan, r.start(job, 1, c))

	// A later run gets what is still missing.
	r.block(plan.Run.ID, measured("gin", 1, 2))
	again := r.start(job, 2, c)
	require.Equal(t, testCases("zip", "tar"), again.Missing)
	require.Equal(t, 2, again.Run.Number)
	require.Equal(t, plan.Job.StartedAt, again.Job.StartedAt, "the first time counts")
	require.Equal(t, 1, again.Job.Done)

	// The former run is replaced and cannot return.
	replaced := r.run(plan.Run.ID)
	require.Equal(t, bench.RunLost, replaced.Outcome)
	require.Equal(t, "replaced by run "+string(again.Run.ID), replaced.Message)
	require.NotNil(t, replaced.FinishedAt)
	_, err := r.StartRun(t.Context(), r.runStart(plan.Run.ID, c))
	require.ErrorIs(t, err, store.ErrRunClosed)

	// Results belong to their hardware: another machine starts from the beginning.
	other := collector("other")
	other.HardwareID = "zen5"
	o, err := r.RegisterCollector(t.Context(), other, offline)
	require.NoError(t, err)
	require.Equal(t, job.TestCases, r.start(job, 3, o).Missing)
	require.Empty(t, r.collector("one").CurrentRun)
	runs, err := r.JobRuns(t.Context(), job.Key)
	require.NoError(t, err)
	require.Len(t, runs, 3)
	require.Equal(t, []int{1, 2, 3}, []int{runs[0].Number, runs[1].Number, runs[2].Number})
}

func (r record) collector(name string) bench.Collector {
	r.t.Helper()
	cs, err := r.Collectors(r.t.Context())
	require.NoError(r.t, err)
	for _, c := range cs {
		if c.Name == name {
			return c
		}
	}
	require.FailNow(r.t, "no such collector", name)
	return bench.Collector{}
}

func TestTheFenceRefuses(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	q, job := r.oneJob("v1", "gin")
	c := r.register("one")
	start := func(attempt int, name string, epoch int64) error {
		_, err := r.StartRun(t.Context(), r.runStart(runID(job, attempt), bench.Collector{Name: name, Epoch: epoch}))
		return err
	}
	require.ErrorIs(t, start(1, "two", 1), store.ErrFenced, "nobody knows it")
	require.ErrorIs(t, start(1, "one", c.Epoch-1), store.ErrFenced)
	require.ErrorIs(t, start(1, "one", c.Epoch+1), store.ErrFenced)

	// A draining collector begins nothing and a refusal creates no run, but it finishes
	// what it has begun. So does an outdated one.
	require.NoError(t, r.SetActive(t.Context(), "one", false))
	require.ErrorIs(t, start(1, "one", c.Epoch), store.ErrDraining)
	require.NoError(t, r.SetActive(t.Context(), "one", true))
	require.NoError(t, r.WantVersion(t.Context(), c.Pool, "newer", "ada"))
	require.ErrorIs(t, start(1, "one", c.Epoch), store.ErrOutdated)
	require.NoError(t, r.WantVersion(t.Context(), c.Pool, "", "ada"))
	require.Zero(t, r.count(`select count(*) from job_run`))
	require.NoError(t, start(1, "one", c.Epoch))
	require.NoError(t, r.SetActive(t.Context(), "one", false))
	require.NoError(t, r.WantVersion(t.Context(), c.Pool, "newer", "ada"))
	require.NoError(t, start(1, "one", c.Epoch))
	require.NoError(t, r.SetActive(t.Context(), "one", true))
	require.NoError(t, r.WantVersion(t.Context(), c.Pool, "", "ada"))

	// After another registration the older process is refused, and its run does not
	// belong to the new one.
	newer := r.register("one")
	require.ErrorIs(t, start(2, "one", c.Epoch), store.ErrFenced)
	require.ErrorIs(t, start(1, "one", newer.Epoch), store.ErrFenced)
	require.NoError(t, start(2, "one", newer.Epoch))

	// All waiting requests have ended, the job has not.
	require.NoError(t, r.CompleteRequest(t.Context(), q.ID, bench.Expired, "", nil, ""))
	require.ErrorIs(t, start(3, "one", newer.Epoch), store.ErrNobodyWaits)
	_, err := r.FinishJob(t.Context(), job.Key, 0, "")
	require.NoError(t, err)
	require.ErrorIs(t, start(3, "one", newer.Epoch), store.ErrJobClosed)

	_, err = r.StartRun(t.Context(), r.runStart(runID(newJob(q, "unknown"), 1), newer))
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestOnlyOneRunPassesTheFence(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, job := r.oneJob("v1", "gin")
	var cs []bench.Collector
	for _, n := range names(8) {
		cs = append(cs, r.register(n))
	}
	var starts []store.RunStart
	for i, c := range cs {
		starts = append(starts, r.runStart(runID(job, i), c))
	}
	present := starts[len(starts)-1].Dispatch
	for i := range starts {
		starts[i].Dispatch = present
	}
	passed := 0
	for i, err := range together(len(cs), func(i int) error {
		_, err := r.StartRun(t.Context(), starts[i])
		return err
	}) {
		if err == nil {
			passed++
			continue
		}
		require.ErrorIs(t, err, store.ErrUnderWay, i)
	}
	require.Equal(t, 1, passed, "of one dispatch")
	runs, err := r.JobRuns(t.Context(), job.Key)
	require.NoError(t, err)
	require.Len(t, runs, 1)
	require.Equal(t, bench.RunRunning, runs[0].Outcome)
	require.Equal(t, 1, r.count(`select count(*) from collector_config where current_run is not null`))
	require.Equal(t, runs[0].ID, r.collector(runs[0].Collector).CurrentRun)
}

func TestARunEndsOnce(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, job := r.oneJob("v1", "gin")
	c := r.register("one")
	run := r.start(job, 1, c).Run.ID

	failed := bench.RunEnd{Outcome: bench.RunFailure, Message: "exit\x00 status 1", OutputTail: "panic: \xff"}
	twice(t, func() error { return r.FinishRun(t.Context(), run, failed) })
	require.NoError(t, r.FinishRun(t.Context(), run, bench.RunEnd{Outcome: bench.RunSuccess}), "the first end stays")
	require.NoError(t, r.CloseLostRuns(t.Context(), job.Key, 0, "silent"))
	ended := r.run(run)
	require.Equal(t, bench.RunFailure, ended.Outcome)
	require.Equal(t, "exit\uFFFD status 1", ended.Message)
	require.Equal(t, "panic: \uFFFD", ended.OutputTail)
	require.Empty(t, r.collector("one").CurrentRun)

	// The collector may correct the end of its lost run while the job is open.
	run = r.start(job, 2, c).Run.ID
	twice(t, func() error { return r.CloseLostRuns(t.Context(), job.Key, 0, "heartbeat timeout") })
	require.Equal(t, bench.RunLost, r.run(run).Outcome)
	require.Equal(t, "heartbeat timeout", r.run(run).Message)
	require.Empty(t, r.collector("one").CurrentRun)
	require.NoError(t, r.FinishRun(t.Context(), run, bench.RunEnd{Outcome: bench.RunTooSmall}))
	require.Equal(t, bench.RunTooSmall, r.run(run).Outcome)

	run = r.start(job, 3, c).Run.ID
	_, err := r.FinishJob(t.Context(), job.Key, 0, "too often")
	require.NoError(t, err)
	require.Equal(t, bench.RunLost, r.run(run).Outcome)
	require.NoError(t, r.FinishRun(t.Context(), run, bench.RunEnd{Outcome: bench.RunSuccess}))
	require.Equal(t, bench.RunLost, r.run(run).Outcome)

	require.Error(t, r.FinishRun(t.Context(), run, bench.RunEnd{}))
	require.ErrorIs(t, r.FinishRun(t.Context(), runID(job, 9), failed), store.ErrNotFound)
	require.ErrorIs(t, r.CloseLostRuns(t.Context(), "nothing", 0, ""), store.ErrNotFound)
	_, err = r.Run(t.Context(), runID(job, 9))
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestOnlyAnOpenRunsProgressChanges(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, job := r.oneJob("v1", "gin")
	run := r.start(job, 1, r.register("one")).Run.ID
	// Output may hold any text.
	require.NoError(t, r.SetProgress(t.Context(), "one", run, json.RawMessage(`{"line": "a\u0000b\ud800", "n": 12345678901234567890, "\u0000": [null]}`)))
	require.JSONEq(t, `{"line": "a\ufffdb\ufffd", "n": 12345678901234567890, "\ufffd": [null]}`, string(r.run(run).Progress))
	require.ErrorIs(t, r.SetProgress(t.Context(), "two", run, json.RawMessage(`{"forged": true}`)), store.ErrNotFound)
	require.NotContains(t, string(r.run(run).Progress), "forged")
	require.NoError(t, r.FinishRun(t.Context(), run, bench.RunEnd{Outcome: bench.RunFailure}))
	require.NoError(t, r.SetProgress(t.Context(), "one", run, json.RawMessage(`{"late": true}`)))
	require.NotContains(t, string(r.run(run).Progress), "late")
	require.ErrorIs(t, r.SetProgress(t.Context(), "one", runID(job, 2), nil), store.ErrNotFound)
}

func TestARunIsAnnouncedOnce(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, job := r.oneJob("v1", "gin")
	run := r.start(job, 1, r.register("one")).Run.ID
	require.False(t, r.run(run).Announced)
	for range 2 {
		require.NoError(t, r.RunAnnounced(t.Context(), run))
		require.True(t, r.run(run).Announced)
	}
	require.NoError(t, r.RunAnnounced(t.Context(), runID(job, 2)), "it may have been removed meanwhile")
}

// The end of a job names its last run.
func TestTheEndOfAJobNamesItsLastRun(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, job := r.oneJob("v1", "gin")
	for n, collector := range []string{"one", "two"} {
		run := r.start(job, n+1, r.register(collector)).Run.ID
		require.NoError(t, r.FinishRun(t.Context(), run, bench.RunEnd{Outcome: bench.RunFailure}))
	}
	for range 2 {
		end, err := r.FinishJob(t.Context(), job.Key, 0, "too often")
		require.NoError(t, err)
		require.Equal(t, runID(job, 2), end.Run)
		require.Equal(t, "two", end.Collector)
	}
	_, never := r.oneJob("v2", "gin")
	end, err := r.CancelJob(t.Context(), never.Key, 0, "not needed")
	require.NoError(t, err)
	require.Empty(t, end.Run)
	require.Empty(t, end.Collector)
}

func TestOutputIsKeptOnceUpToItsLimit(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, job := r.oneJob("v1", "gin")
	run := r.start(job, 1, r.register("one")).Run.ID
	for _, step := range []struct {
		offset int64
		data   string
		next   int64
	}{
		{0, "hello ", 6},
		{0, "hello ", 6},      // repeated
		{3, "lo world", 11},   // overlapping
		{20, "too far", 11},   // a gap: not taken
		{11, "", 11},          // nothing
		{11, "\x00\xff!", 14}, // any bytes
		{14, "0123456789", 24},
		{24, "beyond", 30},
		{20, "6789beyond.", 31},
	} {
		next, err := r.AppendLog(t.Context(), run, step.offset, []byte(step.data), 18)
		require.NoError(t, err)
		require.Equal(t, step.next, next, "%d %q", step.offset, step.data)
	}
	const kept = "hello world\x00\xff!0123"
	require.EqualValues(t, 31, r.run(run).LogSize)

	for _, most := range []int{1, 2, 5, 7, 18, 100} {
		var got []byte
		var at int64
		for at < 31 {
			data, next, err := r.ReadLog(t.Context(), run, at, most)
			require.NoError(t, err)
			require.LessOrEqual(t, len(data), most)
			require.Greater(t, next, at)
			got, at = append(got, data...), next
		}
		require.Equal(t, kept, string(got), most)
		require.EqualValues(t, 31, at, "what was not kept is passed over")
	}
	data, next, err := r.ReadLog(t.Context(), run, 31, 10)
	require.NoError(t, err)
	require.Empty(t, data)
	require.EqualValues(t, 31, next)

	_, _, err = r.ReadLog(t.Context(), runID(job, 2), 0, 10)
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = r.AppendLog(t.Context(), runID(job, 2), 0, []byte("x"), 10)
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = r.AppendLog(t.Context(), run, -1, []byte("x"), 10)
	require.Error(t, err)
}
