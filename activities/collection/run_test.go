//go:build linux

package collection_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"

	"github.com/benchloom/benchloom/activities/collection"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

var nothing = activity.RegisterOptions{Name: "nothing"}

// The tests below are not parallel: sandboxes of one process watch over the
// same children.

func TestAJobIsMeasuredAndStored(t *testing.T) {
	b := setup(t)
	key := b.job("v1", "one", "two")
	out, err := b.run(key, 1)
	require.NoError(t, err)
	require.Equal(t, bench.RunSuccess, out.Outcome)

	runs := b.runs(key)
	require.Len(t, runs, 1)
	require.Equal(t, out.Run, runs[0].ID)
	require.Equal(t, bench.RunSuccess, runs[0].Outcome)
	require.Equal(t, bench.Scheduled, runs[0].Reason)
	require.NotNil(t, runs[0].FinishedAt)
	require.Contains(t, runs[0].OutputTail, "said\n")
	require.Equal(t, 2, b.done(key))
	require.ElementsMatch(t, []string{"one", "one", "two", "two"}, b.journal())
	require.Empty(t, b.spooled())
	require.Zero(t, b.Current(), "it is idle again")
	log, _, err := b.store.ReadLog(t.Context(), out.Run, 0, 1<<20)
	require.NoError(t, err)
	require.Contains(t, string(log), "said\n")

	samples, err := b.store.SamplesOf(t.Context(), "go", "v1")
	require.NoError(t, err)
	walls := 0
	for _, s := range samples {
		if s.Metric == bench.WallTime {
			walls++
			require.Len(t, s.Values, 2)
			require.Positive(t, s.Values[0])
		}
	}
	require.Equal(t, 2, walls)

	// Dispatched again because the workflow missed the result: nothing is
	// missing, so nothing is started.
	out, err = b.run(key, 2)
	require.NoError(t, err)
	require.Equal(t, bench.RunSuccess, out.Outcome)
	require.Len(t, b.runs(key), 2)
	require.Len(t, b.journal(), 4)
	require.Contains(t, b.runs(key)[1].OutputTail, "every test case has a result already")
}

func TestACommandIsMeasured(t *testing.T) {
	b := setup(t)
	key := b.request(bench.Job{
		Work: bench.Work{Kind: bench.KindCommand, Iterations: 3, Command: &bench.Command{Argv: []string{"sh", "-c", `echo "$NAME" >>` + b.root + "/journal"}, Env: map[string]string{"NAME": "mine"}, TimeoutSeconds: 60, Iterations: 3}},
	}, "command")
	out, err := b.run(key, 1)
	require.NoError(t, err)
	require.Equal(t, bench.RunSuccess, out.Outcome)
	require.Equal(t, []string{"mine", "mine", "mine"}, b.journal())
	require.Equal(t, 1, b.done(key))
}

func TestABenchmarkThatFailsIsTheJobsFailure(t *testing.T) {
	b := setup(t)
	key := b.job("v1", "one", "fails", "slow")
	_, err := b.run(key, 1)
	// A failure is retried, so it takes precedence over the timeout.
	b.fails(err, protocol.ErrTypeJobFailure, true, "2 of 3 test cases failed, such as fails")
	runs := b.runs(key)
	require.Equal(t, bench.RunFailure, runs[0].Outcome)
	require.Contains(t, runs[0].Message, "2 of 3 test cases failed")
	require.Equal(t, 1, b.done(key), "its neighbour has a result")
	require.Empty(t, b.spooled())

	// The next attempt measures only what lacks a result.
	_, err = b.run(key, 2)
	b.fails(err, protocol.ErrTypeJobFailure, true, "2 of 2 test cases failed")
	require.Equal(t, 2, strings.Count(strings.Join(b.journal(), " "), "one"))
}

func TestATimeoutIsTooSmall(t *testing.T) {
	b := setup(t)
	key := b.job("v1", "slow")
	_, err := b.run(key, 1)
	b.fails(err, protocol.ErrTypeTooSmall, false, "slow")
	require.Equal(t, bench.RunTimeout, b.runs(key)[0].Outcome)
}

func TestAnUnknownArtifactIsPermanent(t *testing.T) {
	b := setup(t)
	key := b.job("v2", "one")
	_, err := b.run(key, 1)
	b.fails(err, protocol.ErrTypePermanent, false, "v2")
	require.Equal(t, bench.RunPermanent, b.runs(key)[0].Outcome)
	require.Contains(t, b.runs(key)[0].Message, "v2")
	require.Empty(t, b.journal())
}

func TestNothingRunsOfAJobThatHasEnded(t *testing.T) {
	b := setup(t)
	cancelled := b.job("v1", "one")
	_, err := b.store.CancelJob(t.Context(), cancelled, 0, "cancelled by ada")
	require.NoError(t, err)
	_, err = b.run(cancelled, 1)
	b.fails(err, protocol.ErrTypeJobClosed, false, "")
	require.Empty(t, b.runs(cancelled))

	// Nor of one without a waiting request.
	unwanted := b.job("v1", "two")
	open, err := b.store.Requests(t.Context(), store.RequestFilter{Limit: 10})
	require.NoError(t, err)
	for _, r := range open {
		require.NoError(t, b.store.CompleteRequest(t.Context(), r.ID, bench.Failure, "", nil, "given up"))
	}
	_, err = b.run(unwanted, 1)
	b.fails(err, protocol.ErrTypeJobClosed, false, "")
	require.Empty(t, b.journal())
	require.Zero(t, b.fenced.Load())
}

func TestANewerRegistrationFencesTheCollectorOff(t *testing.T) {
	b := setup(t)
	key := b.job("v1", "one")
	b.register()
	_, err := b.run(key, 1)
	b.fails(err, protocol.ErrTypeInfrastructure, false, "")
	require.Equal(t, int32(1), b.fenced.Load())
	require.Empty(t, b.runs(key))
	require.Empty(t, b.journal())
}

// A task that reaches a collector that drains or is out of date is returned: no
// run, nothing measured, and the collector asks the API for its desired state.
func TestATaskThatSlipsThroughIsGivenBack(t *testing.T) {
	b := setup(t)
	key := b.job("v1", "one")
	require.NoError(t, b.store.SetActive(t.Context(), "c1", false))
	_, err := b.run(key, 1)
	b.fails(err, protocol.ErrTypeNotTaken, false, "not taken")
	require.NoError(t, b.store.SetActive(t.Context(), "c1", true))
	require.NoError(t, b.store.WantVersion(t.Context(), pool.Name, "2", "ada"))
	_, err = b.run(key, 2)
	b.fails(err, protocol.ErrTypeNotTaken, false, "not taken")
	require.Equal(t, int32(2), b.unwanted.Load())
	require.Zero(t, b.fenced.Load())
	require.Empty(t, b.runs(key))
	require.Empty(t, b.journal())

	// Back, it takes the same job.
	require.NoError(t, b.store.WantVersion(t.Context(), pool.Name, "", "ada"))
	_, err = b.run(key, 3)
	require.NoError(t, err)
	require.Len(t, b.runs(key), 1)
}

// A job that the collector must not run is returned, too; the collector takes
// others.
func TestAJobThatIsNotForThisCollectorIsGivenBack(t *testing.T) {
	b := setup(t)
	key := b.job("v1", "one")
	b.execute(`update job_queue set constraints = '{"devices": ["gpu"]}'`)
	_, err := b.run(key, 1)
	b.fails(err, protocol.ErrTypeInfrastructure, false, "not taken: the job is not for this collector")
	require.ErrorContains(t, err, "it has no device gpu")
	require.Zero(t, b.unwanted.Load()+b.fenced.Load())
	require.Empty(t, b.runs(key))
	require.Empty(t, b.journal())
}

// A task of a dispatch that was replaced, and one of a job that waits elsewhere by now,
// are returned as well: the next dispatch has another secret, and goes where the job is.
func TestATaskThatIsNotOfTheJobsDispatchIsGivenBack(t *testing.T) {
	b := setup(t)
	key := b.job("v1", "one")
	for _, change := range []struct{ reason, sql, kind string }{
		// A run of the other dispatch may go on.
		{"the job was dispatched again", `update job_queue set dispatch = gen_random_uuid()`, protocol.ErrTypeUnderWay},
		{"the job waits elsewhere", `update job_queue set task_queue = 'bench/elsewhere'`, protocol.ErrTypeInfrastructure},
	} {
		var tests testsuite.WorkflowTestSuite
		env := tests.NewTestActivityEnvironment()
		env.SetWorkerStopChannel(b.stop)
		b.Register(env, nil)
		in := b.dispatched(key)
		b.execute(change.sql)
		_, err := env.ExecuteActivity(protocol.RunJob, in)
		b.fails(err, change.kind, false, change.reason)
	}
	require.Zero(t, b.unwanted.Load()+b.fenced.Load())
	require.Empty(t, b.runs(key))
	require.Empty(t, b.journal())
}

func TestABlockThatDoesNotGetThroughAtOnceIsSentAtTheEnd(t *testing.T) {
	b := setup(t)
	key := b.job("v1", "one", "two")
	refused := 0
	b.gate.refuse(func(path string) bool {
		if !uploads(path) || refused > 0 {
			return false
		}
		refused++
		return true
	})
	out, err := b.run(key, 1)
	require.NoError(t, err)
	require.Equal(t, bench.RunSuccess, out.Outcome)
	require.Equal(t, 1, refused)
	require.Equal(t, 2, b.done(key))
	require.Len(t, b.journal(), 4)
	require.Empty(t, b.spooled())
}

func TestWhatWasMeasuredWhileTheAPIIsAwayIsDeliveredLater(t *testing.T) {
	b := setup(t)
	key := b.job("v1", "one", "two")
	b.gate.refuse(uploads)
	_, err := b.run(key, 1)
	b.fails(err, protocol.ErrTypeInfrastructure, false, "uploading block 1")
	require.Equal(t, bench.RunLost, b.runs(key)[0].Outcome)
	spooled := b.spooled()
	require.Len(t, spooled, 2)
	require.Equal(t, b.runs(key)[0].ID, spooled[0].Run)
	require.Len(t, b.journal(), 4)

	// While it is unreachable, nothing is dropped.
	require.ErrorContains(t, b.FlushSpool(t.Context()), "uploading block 1")
	require.Equal(t, spooled, b.spooled())

	// When it is reachable again, the next process of the collector delivers,
	// and nothing is measured twice.
	b.gate.refuse(nil)
	require.NoError(t, b.FlushSpool(t.Context()))
	require.Empty(t, b.spooled())
	require.Equal(t, 2, b.done(key))
	out, err := b.run(key, 2)
	require.NoError(t, err)
	require.Equal(t, bench.RunSuccess, out.Outcome)
	require.Len(t, b.journal(), 4)
}

func TestAWorkerThatStopsEndsItsRunAsLost(t *testing.T) {
	b := setup(t)
	key := b.job("v1", "one", "endless")
	ended := make(chan error, 1)
	go func() {
		_, err := b.run(key, 1)
		ended <- err
	}()
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(filepath.Join(b.root, "journal"))
		return err == nil && strings.Contains(string(text), "endless")
	}, 2*time.Minute, 5*time.Millisecond)
	require.Equal(t, "endless "+string(target), b.Current().Progress.TestCase)
	close(b.stop)
	b.fails(<-ended, protocol.ErrTypeInfrastructure, false, "the collector is shutting down")
	require.Equal(t, bench.RunLost, b.runs(key)[0].Outcome)
	require.Equal(t, 1, b.done(key), "what was finished before is stored")
	require.Zero(t, b.Current())
}

// The record closes a run without Temporal's help: its job was cancelled, or another run
// has begun. The collector ends that run, and no other.
func TestARunThatTheRecordHasClosedEnds(t *testing.T) {
	b := setup(t)
	key := b.job("v1", "one", "endless")
	ended := make(chan error, 1)
	go func() {
		_, err := b.run(key, 1)
		ended <- err
	}()
	require.Eventually(t, func() bool { return strings.HasPrefix(b.Current().Progress.TestCase, "endless") }, 2*time.Minute, 5*time.Millisecond)
	_, err := b.store.CancelJob(t.Context(), key, 0, "cancelled by ada")
	require.NoError(t, err)
	b.End(bench.NewRunID(key, "workflow", "another", 1), "lost")
	require.Empty(t, ended)
	b.End(b.Current().Run, "it ended as cancelled: the job ended as cancelled")
	err = <-ended
	b.fails(err, protocol.ErrTypeInfrastructure, false, "the run was closed: it ended as cancelled")
	require.Equal(t, bench.RunCancelled, b.runs(key)[0].Outcome, "the first end counts")
	require.Zero(t, b.Current())

	// It takes the next job.
	_, err = b.run(b.job("v1", "two"), 1)
	require.NoError(t, err)
}

func TestSuitesAreFetchedOnce(t *testing.T) {
	b := setup(t)
	first, err := b.Suites.Get(t.Context(), b.API, b.hash, b.Upload)
	require.NoError(t, err)
	require.Equal(t, "shell", first.Suite.Name())
	require.FileExists(t, filepath.Join(first.Dir, "suite.yaml"))

	// Also by another collector of the machine, with the API unreachable.
	b.gate.refuse(func(string) bool { return true })
	shared, err := collection.OpenSuiteCache(filepath.Dir(first.Dir))
	require.NoError(t, err)
	again, err := shared.Get(t.Context(), b.API, b.hash, b.Upload)
	require.NoError(t, err)
	require.Equal(t, first.Dir, again.Dir)

	// One whose files were changed is not used, and is fetched again when the API answers.
	tampered := filepath.Join(first.Dir, "suite.yaml")
	right, err := os.ReadFile(tampered)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(tampered, append(right, "# planted\n"...), 0o644))
	_, err = shared.Get(t.Context(), b.API, b.hash, b.Upload)
	require.ErrorContains(t, err, "fetching suite "+b.hash)
	b.gate.refuse(nil)
	_, err = shared.Get(t.Context(), b.API, b.hash, b.Upload)
	require.NoError(t, err)
	text, err := os.ReadFile(tampered)
	require.NoError(t, err)
	require.Equal(t, right, text)
	left, err := os.ReadDir(filepath.Dir(first.Dir))
	require.NoError(t, err)
	require.Len(t, left, 1)
	b.gate.refuse(func(string) bool { return true })

	// A missing one needs the API.
	empty, err := collection.OpenSuiteCache(t.TempDir())
	require.NoError(t, err)
	_, err = empty.Get(t.Context(), b.API, b.hash, b.Upload)
	require.ErrorContains(t, err, "fetching suite "+b.hash)
	b.gate.refuse(nil)
	_, err = empty.Get(t.Context(), b.API, strings.Repeat("0", 64), b.Upload)
	require.ErrorContains(t, err, "fetching suite 0000")
}
