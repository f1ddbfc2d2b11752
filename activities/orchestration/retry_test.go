package orchestration_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/suite"
)

// applySuite stores a suite and makes it the project's present one.
func (b *bundle) applySuite(text string) *store.Present {
	b.t.Helper()
	dir := b.t.TempDir()
	require.NoError(b.t, os.WriteFile(filepath.Join(dir, suite.FileName), []byte(text), 0o644))
	packed, err := suite.Pack(dir)
	require.NoError(b.t, err)
	require.NoError(b.t, b.store.PutSuite(b.t.Context(), packed.Hash, "small", packed.Archive))
	p, err := b.store.Project(b.t.Context(), project)
	require.NoError(b.t, err)
	b.suite = packed.Hash
	b.apply(string(p.Config))
	loaded, err := suite.Parse([]byte(text))
	require.NoError(b.t, err)
	return &store.Present{SuiteHash: packed.Hash, Has: loaded.Has, Builds: func(bench.Job) bool { return true }}
}

// reopened retries a request and lets it have its turn.
func (b *bundle) reopened(ref protocol.RequestRef, present *store.Present) store.OperationResult {
	b.t.Helper()
	done, err := b.store.Reopen(b.t.Context(), ref.ID, store.ReopenOptions{Present: present}, byAda)
	require.NoError(b.t, err)
	b.admit()
	return done.Result
}

// fail ends all open jobs of a request and the request itself.
func (b *bundle) fail(ref protocol.RequestRef, why string) protocol.CompleteResult {
	b.t.Helper()
	for _, j := range b.jobs(ref) {
		if j.Status.Open() {
			require.Equal(b.t, bench.JobFailure, b.recordEnd(j.Key, why).Status)
		}
	}
	return b.complete(ref, "")
}

// open lists the open jobs of a request.
func (b *bundle) open(ref protocol.RequestRef) []bench.Job {
	b.t.Helper()
	var open []bench.Job
	for _, j := range b.jobs(ref) {
		if j.Status.Open() {
			open = append(open, j)
		}
	}
	return open
}

// A corrected suite may rename and remove benchmarks: nothing of the former one runs again.
func TestARetryPlansWhatIsLackingFromThePresentSuite(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	c := b.register("c1")
	ref := b.running("1.1.0")
	b.handOut(ref)
	good, bad := b.jobs(ref)[0], b.jobs(ref)[1]
	b.measure(good, c, 1)
	require.Equal(t, bench.JobSuccess, b.recordEnd(good.Key, "").Status)
	require.Equal(t, bench.Failure, b.fail(ref, "no unit MB/s").Outcome)

	mended := b.applySuite(strings.Replace(smallSuite, "{name: sort,", "{name: sort-ints,", 1))
	require.Equal(t, "its jobs are planned from the present suite when it is its turn", b.reopened(ref, mended).Message)
	require.Empty(t, b.open(ref), "they are written when it is its turn")
	for range 2 { // an activity may be repeated
		_, err := b.Expand(t.Context(), own(ref))
		require.NoError(t, err)
	}
	open := b.open(ref)
	require.Len(t, open, 1, "what has a result is not measured again")
	require.Equal(t, "sort-ints", open[0].TestCases[0].Benchmark)
	require.Equal(t, mended.SuiteHash, open[0].SuiteHash)

	// It fails in another way: that is told, not what failed with the former suite.
	require.Contains(t, b.fail(ref, "no result line").Message, "1 of 2 jobs failed: 1 of 1 test cases have no result: no result line")
	require.NotEqual(t, bad.Key, open[0].Key)

	// The former suite returns. Its job has failed before and does not count as done.
	former := b.applySuite(smallSuite)
	b.reopened(ref, former)
	_, err := b.Expand(t.Context(), own(ref))
	require.NoError(t, err)
	open = b.open(ref)
	require.Len(t, open, 1)
	require.Equal(t, bad.TestCases, open[0].TestCases)
	require.Equal(t, former.SuiteHash, open[0].SuiteHash)
	require.NotEqual(t, bad.Key, open[0].Key)
	b.measure(open[0], c, 2)
	require.Equal(t, bench.JobSuccess, b.recordEnd(open[0].Key, "").Status)
	out := b.complete(ref, "")
	require.Equal(t, bench.Success, out.Outcome)
	require.Equal(t, "2 of 2 test cases have results", out.Message)
	missing, err := b.store.MissingResults(t.Context(), project, "1.1.0")
	require.NoError(t, err)
	require.Empty(t, missing, "a test case that is gone is not missing")
	_, err = b.store.Reopen(t.Context(), ref.ID, store.ReopenOptions{Present: former}, byAda)
	require.ErrorIs(t, err, store.ErrNothingToMeasure)
}

// Other requests that wait for a job keep it when a retry drops it.
func TestARetryWithAnotherSuiteLeavesOtherRequestsAlone(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	b.register("c1")
	ref := b.running("1.1.0")
	b.handOut(ref)
	require.Equal(t, bench.Failure, b.fail(ref, "broken").Outcome)
	other := b.create(bench.Release, "1.2.0", 2)
	b.execute(`insert into request_job (request_id, job_id, stage) select $1, job_id, 'parent' from request_job where request_id = $2`, other.ID, ref.ID)
	b.reopened(ref, b.applySuite(smallSuite+"# mended\n"))
	_, err := b.Expand(t.Context(), own(ref))
	require.NoError(t, err)
	require.Len(t, b.open(ref), 2)
	p, err := b.store.StageProgress(t.Context(), other.ID, bench.StageParent, false)
	require.NoError(t, err)
	require.Equal(t, 2, p.Failure)
}

// A corrected build command builds; the former one does not run again.
func TestARetryBuildsAsTheProjectSaysNow(t *testing.T) {
	t.Parallel()
	b, _, _ := setupBuilds(t)
	ref := b.admitted("1.0.0")
	first := b.build(ref)
	require.Len(t, first, 1)
	require.Equal(t, bench.JobFailure, b.recordEnd(first[0].Key, "no rule to make target").Status)
	require.Equal(t, bench.Failure, b.complete(ref, "no rule to make target").Outcome)

	config, err := json.Marshal(bench.ProjectConfig{Artifacts: bench.ArtifactSource{
		Provider: bench.BuildProvider, Parameters: map[string]string{"repository": "/srv/repo.git", "command": "make all"},
	}})
	require.NoError(t, err)
	b.apply(string(config))
	present := &store.Present{SuiteHash: b.suite, Has: func(bench.TestCase) bool { return true }, Builds: func(j bench.Job) bool { return len(j.Build.Command) == 2 }}
	require.Equal(t, "its jobs are written when it is its turn", b.reopened(ref, present).Message)
	require.Empty(t, b.open(ref))
	b.build(ref)
	open := b.open(ref)
	require.Len(t, open, 1)
	require.Equal(t, []string{"make", "all"}, open[0].Build.Command)

	// Its failure is the request's, that of the former command is not.
	state, err := b.Progress(t.Context(), protocol.ProgressInput{Request: ref, Stage: bench.StageBuild})
	require.NoError(t, err)
	require.Zero(t, state.Counts.Failure)
	require.Equal(t, bench.JobFailure, b.recordEnd(open[0].Key, "cannot find -lz").Status)
	state, err = b.Progress(t.Context(), protocol.ProgressInput{Request: ref, Stage: bench.StageBuild})
	require.NoError(t, err)
	require.Equal(t, 1, state.Counts.Failure)
	require.Contains(t, state.Failure, "cannot find -lz")
	require.Equal(t, bench.Failure, b.complete(ref, state.Failure).Outcome)

	// With the same command again, the retried build is a job of its own.
	b.reopened(ref, present)
	open = b.open(ref)
	require.Len(t, open, 1)
	require.Equal(t, 1, open[0].Generation)
}
