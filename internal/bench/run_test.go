package bench_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

// openRun is the first run of a suite's job, as it is recorded.
func openRun(t *testing.T, j bench.Job, on bench.Collector) bench.Run {
	t.Helper()
	r, err := bench.OpenRun(bench.NewRunID(j.Key, "w", "a", 1), bench.Scheduled, false, j, on)
	require.NoError(t, err)
	r.Number, r.StartedAt = 1, madeAt
	return r
}

var collectorOne = bench.Collector{
	Name: "one", Target: linux, SizeClass: 2, Pool: "main", Epoch: 7, Version: "1.0", HardwareID: "zen4", CoLocated: true, Facts: json.RawMessage(`{}`),
}

func TestOpenRunRecordsItsCollector(t *testing.T) {
	t.Parallel()
	j := plannedJobs(t)["suite"].Job
	j.TimeoutSeconds, j.Probe = 60, true
	r := openRun(t, j, collectorOne)
	require.NoError(t, r.Validate())
	require.True(t, r.Open())
	require.Equal(t, bench.Setting{
		SizeClass: 2, Pool: "main", Collector: "one", Epoch: 7, Version: "1.0", HardwareID: "zen4", CoLocated: true, Facts: json.RawMessage(`{}`),
		TimeoutSeconds: 60, Probe: true,
	}, r.Setting)

	larger := collectorOne
	larger.SizeClass = 4
	r = openRun(t, j, larger)
	require.Zero(t, r.TimeoutSeconds, "the limit was another size class's")
	require.False(t, r.Probe)
}

func TestOpenRunNeedsItsOpenJob(t *testing.T) {
	t.Parallel()
	j := plannedJobs(t)["suite"].Job
	id := bench.NewRunID(j.Key, "w", "a", 1)
	for _, status := range []bench.JobStatus{bench.JobSuccess, bench.JobFailure, bench.JobCancelled} {
		ended := j
		ended.Status = status
		_, err := bench.OpenRun(id, bench.Retry, false, ended, collectorOne)
		require.ErrorIs(t, err, bench.ErrInvalid, "%s", status)
	}
	other := j
	other.Key = "ponmlkjihgfedcba"
	_, err := bench.OpenRun(id, bench.Retry, false, other, collectorOne)
	require.ErrorIs(t, err, bench.ErrInvalid)
}

func TestOnlyEndedRunsHaveAnEnd(t *testing.T) {
	t.Parallel()
	outcomes := []bench.RunOutcome{
		bench.RunSuccess, bench.RunFailure, bench.RunTooSmall, bench.RunTimeout, bench.RunOutOfMemory, bench.RunPermanent, bench.RunCancelled, bench.RunLost,
	}
	for _, outcome := range append(outcomes, bench.RunRunning, "unknown") {
		known := outcome != "unknown"
		r := openRun(t, plannedJobs(t)["suite"].Job, collectorOne)
		r.Outcome = outcome
		require.Equal(t, outcome == bench.RunRunning, r.Validate() == nil, "%q without an end", outcome)
		r.FinishedAt = &madeAt
		require.Equal(t, known && outcome != bench.RunRunning, r.Validate() == nil, "%q with an end", outcome)
		require.Equal(t, known && outcome != bench.RunRunning, bench.RunEnd{Outcome: outcome}.Validate() == nil, "%q", outcome)
	}
}

func TestInvalidRunsAreRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*bench.Run){
		"collector":  func(r *bench.Run) { r.Collector = "" },
		"pool":       func(r *bench.Run) { r.Pool = "" },
		"size class": func(r *bench.Run) { r.SizeClass = 0 },
		"number":     func(r *bench.Run) { r.Number = 0 },
		"reason":     func(r *bench.Run) { r.Reason = "" },
	} {
		r := openRun(t, plannedJobs(t)["suite"].Job, collectorOne)
		change(&r)
		require.ErrorIs(t, r.Validate(), bench.ErrInvalid, name)
		require.ErrorContains(t, r.Validate(), "run abcdefghijklmnop-", name)
	}
	for name, end := range map[string]bench.RunEnd{
		"seconds":     {Outcome: bench.RunSuccess, MeasuredSeconds: -1},
		"memory":      {Outcome: bench.RunSuccess, PeakMemory: -1},
		"CPU seconds": {Outcome: bench.RunSuccess, CPUSeconds: -1},
	} {
		require.ErrorIs(t, end.Validate(), bench.ErrInvalid, name)
	}
}

func TestTheOutcomeOfARunIsAKindOfFailure(t *testing.T) {
	t.Parallel()
	for outcome, kind := range map[bench.RunOutcome]bench.FailureKind{
		bench.RunFailure: bench.FailJob, bench.RunTooSmall: bench.FailTooSmall, bench.RunTimeout: bench.FailTimeout, bench.RunOutOfMemory: bench.FailOutOfMemory,
		bench.RunPermanent: bench.FailPermanent, bench.RunLost: bench.FailInfrastructure, bench.RunCancelled: bench.FailInfrastructure,
	} {
		require.Equal(t, kind, outcome.FailureKind(), outcome)
		require.Equal(t, outcome.Failed(), outcome.FailureKind().OfRun(), outcome)
	}
}
