package orchestration_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graphset"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/revision"
	"github.com/benchloom/benchloom/internal/store"
)

// history is a repository as an orchestrator sees it: trees by tags.
type history struct {
	mu    sync.Mutex
	trees map[string]string
	err   error
}

func (h *history) Resolve(_ context.Context, repository, tag string) (revision.Revision, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return revision.Revision{}, h.err
	}
	tree, ok := h.trees[tag]
	if !ok {
		return revision.Revision{}, fmt.Errorf("%w: %s of %s", revision.ErrNoRevision, tag, repository)
	}
	return revision.Revision{Commit: object("commit " + tag), Tree: object(tree)}, nil
}

func (h *history) Export(context.Context, string, revision.Revision, string) error {
	return errors.New("its trees have no content")
}

func object(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:20])
}

// setupBuilds is a project whose artifacts are built, with one collector.
func setupBuilds(t *testing.T) (*bundle, *history, bench.Collector) {
	t.Helper()
	config, err := json.Marshal(bench.ProjectConfig{Artifacts: bench.ArtifactSource{
		Provider: bench.BuildProvider, Parameters: map[string]string{"repository": "/srv/repo.git", "command": "make"},
	}})
	require.NoError(t, err)
	b := setup(t, string(config))
	h := &history{trees: map[string]string{"1.0.0": "tree a", "1.1.0": "tree a", "1.2.0": "tree b"}}
	b.Revisions = h
	return b, h, b.register("c1")
}

// build expands the stage that builds and returns its jobs.
func (b *bundle) build(ref protocol.RequestRef) []bench.Job {
	b.t.Helper()
	out, err := b.Expand(b.t.Context(), protocol.ExpandInput{Request: ref, Stage: bench.StageBuild})
	require.NoError(b.t, err)
	require.Empty(b.t, out.Failed)
	jobs, err := b.store.StageJobs(b.t.Context(), ref.ID, bench.StageBuild)
	require.NoError(b.t, err)
	return jobs
}

// deliver is a collector that carries a build job out.
func (b *bundle) deliver(job bench.Job, c bench.Collector, attempt int32) bench.RunID {
	b.t.Helper()
	run := b.start(job.Key, c, attempt)
	archive := []byte("archive of " + job.Build.Tree)
	sum := sha256.Sum256(archive)
	require.NoError(b.t, b.store.PutBuildChunk(b.t.Context(), run, 0, archive))
	_, err := b.store.FinishBuild(b.t.Context(), run, int64(len(archive)), hex.EncodeToString(sum[:]))
	require.NoError(b.t, err)
	require.NoError(b.t, b.store.FinishRun(b.t.Context(), run, bench.RunEnd{Outcome: bench.RunSuccess}))
	return run
}

func TestRequestsOfOneTreeShareOneBuild(t *testing.T) {
	t.Parallel()
	b, _, c := setupBuilds(t)
	first, second, third := b.admitted("1.0.0"), b.admitted("1.1.0"), b.admitted("1.2.0")
	facts, err := b.LoadRequest(t.Context(), first)
	require.NoError(t, err)
	require.Equal(t, []bench.Stage{bench.StageBuild, bench.StageOwn}, facts.Stages)

	jobs := b.build(first)
	require.Len(t, jobs, 1)
	require.Equal(t, bench.KindBuild, jobs[0].Kind)
	require.Equal(t, pool.TaskQueue(), jobs[0].TaskQueue)
	require.Empty(t, jobs[0].TestCases)
	require.Equal(t, jobs[0].Key, b.build(first)[0].Key, "asked again")
	require.Equal(t, jobs[0].Key, b.build(second)[0].Key, "the same tree under another tag")
	other := b.build(third)
	require.NotEqual(t, jobs[0].Key, other[0].Key)

	b.deliver(jobs[0], c, 1)
	require.Equal(t, bench.JobSuccess, b.recordEnd(jobs[0].Key, "").Status)
	calls := b.workflows.taken()
	for _, ref := range []protocol.RequestRef{first, second} {
		require.Contains(t, calls, fmt.Sprintf("ended %s/%s %s success", project, ref.ID, jobs[0].Key))
	}

	// A late-comer finds it built.
	b.Revisions.(*history).trees["1.3.0"] = "tree a" //nolint:forcetypeassert // it is one
	require.Empty(t, b.build(b.admitted("1.3.0")))
}

func TestABuildThatIsGoneIsBuiltAnew(t *testing.T) {
	t.Parallel()
	b, _, c := setupBuilds(t)
	jobs := b.build(b.admitted("1.0.0"))
	b.deliver(jobs[0], c, 1)
	b.recordEnd(jobs[0].Key, "")
	b.execute(`delete from build`)

	again := b.build(b.admitted("1.1.0"))
	require.Len(t, again, 1)
	require.NotEqual(t, jobs[0].Key, again[0].Key)
	require.Equal(t, 1, again[0].Generation)
}

func TestAFailedBuildFailsItsRequestOnly(t *testing.T) {
	t.Parallel()
	b, _, c := setupBuilds(t)
	ref := b.admitted("1.2.0")
	job := b.build(ref)[0]
	run := b.start(job.Key, c, 1)
	require.NoError(t, b.store.FinishRun(t.Context(), run, bench.RunEnd{Outcome: bench.RunFailure, Message: "exit status 2"}))
	end := b.recordEnd(job.Key, "")
	require.Equal(t, bench.JobFailure, end.Status)
	require.Contains(t, end.Message, "was not built: exit status 2")

	progress, err := b.Progress(t.Context(), protocol.ProgressInput{Request: ref, Stage: bench.StageBuild})
	require.NoError(t, err)
	require.Equal(t, 1, progress.Counts.Failure)
	require.Contains(t, progress.Failure, "exit status 2")
	require.Equal(t, job.Key, b.build(ref)[0].Key, "a repeated activity builds nothing again")

	// Another request with the tree tries again, with a job of its own.
	b.Revisions.(*history).trees["1.3.0"] = "tree b" //nolint:forcetypeassert // it is one
	require.NotEqual(t, job.Key, b.build(b.admitted("1.3.0"))[0].Key)
}

// A build belongs to no single request: whoever makes it succeed opens the others again.
func TestALaterSuccessOfABuildOpensWhatFailedWithIt(t *testing.T) {
	t.Parallel()
	b, h, c := setupBuilds(t)
	failed, otherwise := b.admitted("1.2.0"), b.admitted("1.0.0")
	job := b.build(failed)[0]
	b.build(otherwise)
	b.recordEnd(job.Key, "the disk was full")
	for _, ref := range []protocol.RequestRef{failed, otherwise} {
		require.NoError(t, b.store.CompleteRequest(t.Context(), ref.ID, bench.Failure, "", nil, "its build failed"))
		b.workflows.is(b.requestID(ref), protocol.WorkflowCompleted)
	}
	h.mu.Lock()
	h.trees["1.3.0"] = "tree b"
	h.mu.Unlock()
	again := b.build(b.admitted("1.3.0"))[0]
	require.NotEqual(t, job.Key, again.Key)
	require.NotContains(t, b.reconciled(), "restart "+b.requestID(failed))

	b.deliver(again, c, 1)
	require.Equal(t, bench.JobSuccess, b.recordEnd(again.Key, "").Status)
	b.workflows.is(b.requestID(failed), protocol.WorkflowRunning)
	require.NotContains(t, b.reconciled(), "restart "+b.requestID(failed), "its workflow has not ended yet")
	b.workflows.is(b.requestID(failed), protocol.WorkflowCompleted)
	calls := b.reconciled()
	require.Contains(t, calls, "restart "+b.requestID(failed))
	require.NotContains(t, calls, "restart "+b.requestID(otherwise))
	r := b.request(failed)
	require.Equal(t, bench.ArtifactsReady, r.Status)
	require.Equal(t, "opened again by build-watch: its build has succeeded", r.Message)
	require.Equal(t, bench.Completed, b.request(otherwise).Status)
	b.execute(`update benchmark_request set status = 'in_progress' where id = $1`, failed.ID)
	require.Len(t, b.build(failed), 1, "it is stored, and not built again")
	lacks, err := b.store.FailedBuilds(t.Context(), failed.ID)
	require.NoError(t, err)
	require.Empty(t, lacks)

	// Once for each success.
	require.NoError(t, b.store.CompleteRequest(t.Context(), failed.ID, bench.Failure, "", nil, "it crashes"))
	b.workflows.is(b.requestID(failed), protocol.WorkflowCompleted)
	require.NotContains(t, b.reconciled(), "restart "+b.requestID(failed))
	require.Equal(t, bench.Completed, b.request(failed).Status)
}

func TestARerunOfASharedBuildOpensTheOtherRequest(t *testing.T) {
	t.Parallel()
	b, _, c := setupBuilds(t)
	asked, other := b.admitted("1.0.0"), b.admitted("1.1.0")
	job := b.build(asked)[0]
	require.Equal(t, job.Key, b.build(other)[0].Key)
	b.recordEnd(job.Key, "the disk was full")
	for _, ref := range []protocol.RequestRef{asked, other} {
		require.NoError(t, b.store.CompleteRequest(t.Context(), ref.ID, bench.Failure, "", nil, "its build failed"))
		b.workflows.is(b.requestID(ref), protocol.WorkflowCompleted)
	}
	rerun := store.ReopenOptions{Retrigger: &graphset.Choice{Jobs: []bench.JobKey{job.Key}, Rerun: true}}
	_, err := b.store.Reopen(t.Context(), asked.ID, rerun, store.Act{Who: "ada"})
	require.NoError(t, err)
	require.NotContains(t, b.reconciled(), "restart "+b.requestID(other))

	b.deliver(b.job(job.Key), c, 2)
	require.Equal(t, bench.JobSuccess, b.recordEnd(job.Key, "").Status)
	require.Contains(t, b.reconciled(), "restart "+b.requestID(other))
	require.Equal(t, bench.ArtifactsReady, b.request(other).Status)
	require.Contains(t, b.request(asked).Message, "opened again by ada")
}

func TestAnIncompleteParentIsBuiltWithoutFailingItsChild(t *testing.T) {
	t.Parallel()
	b, h, c := setupBuilds(t)
	h.trees["child"] = "tree c"
	ref := b.create(bench.Master, "child", 2)
	b.execute(`update benchmark_request set parent = '1.2.0', waits_for = '1.2.0', status = 'in_progress' where id = $1`, ref.ID)
	jobs := b.build(ref)
	require.Len(t, jobs, 2)
	require.Equal(t, []string{"1.2.0", "child"}, []string{jobs[0].Tag, jobs[1].Tag})

	b.deliver(jobs[1], c, 1)
	b.recordEnd(jobs[1].Key, "")
	require.Equal(t, bench.JobFailure, b.recordEnd(jobs[0].Key, "it does not compile").Status)
	progress, err := b.Progress(t.Context(), protocol.ProgressInput{Request: ref, Stage: bench.StageBuild})
	require.NoError(t, err)
	require.Zero(t, progress.Counts.Failure)

	// A parent of which nothing is known is no obstacle either.
	h.trees["orphan"] = "tree d"
	orphan := b.create(bench.Master, "orphan", 3)
	b.execute(`update benchmark_request set parent = 'unknown', waits_for = 'unknown', status = 'in_progress' where id = $1`, orphan.ID)
	jobs = b.build(orphan)
	require.Len(t, jobs, 1)
	require.Equal(t, "orphan", jobs[0].Tag)
}

func TestUnreadableRepositoriesAreReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err       error
		permanent bool
	}{
		"vanished":    {fmt.Errorf("%w: there is no directory /srv/repo.git", revision.ErrNoRepository), true},
		"no revision": {fmt.Errorf("%w: 1.0.0", revision.ErrNoRevision), true},
		"unreachable": {fmt.Errorf("%w: connection refused", revision.ErrUnreachable), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, h, _ := setupBuilds(t)
			h.err = c.err
			_, err := b.Expand(t.Context(), protocol.ExpandInput{Request: b.admitted("1.0.0"), Stage: bench.StageBuild})
			require.ErrorContains(t, err, c.err.Error())
			var application *temporal.ApplicationError
			require.Equal(t, c.permanent, errors.As(err, &application) && application.NonRetryable())
		})
	}
}

func TestReconciliationKeepsBuildsWithinTheirBudget(t *testing.T) {
	t.Parallel()
	b, h, c := setupBuilds(t)
	h.trees["1.3.0"] = "tree c"
	var kept []bench.BuildKey
	for i, tag := range []string{"1.0.0", "1.2.0", "1.3.0"} {
		ref := b.admitted(tag)
		job := b.build(ref)[0]
		b.deliver(job, c, 1)
		b.recordEnd(job.Key, "")
		if i < 2 {
			b.complete(ref, "")
		}
		kept = append(kept, job.Build.Key)
	}
	b.execute(`update build set last_used = now() - interval '1 hour' * (case key when $1 then 3 when $2 then 1 else 2 end)`, kept[0], kept[1])
	stored := func() []bench.BuildKey {
		return slices.DeleteFunc(slices.Clone(kept), func(key bench.BuildKey) bool {
			_, err := b.store.Build(t.Context(), key)
			return errors.Is(err, store.ErrNotFound)
		})
	}
	b.pass(t)
	require.Equal(t, kept, stored(), "no budget is no bound")

	// The least recently used goes first; what an open request needs stays.
	b.BuildBudget = 110
	b.pass(t)
	require.Equal(t, kept[1:], stored())
	b.BuildBudget = 1
	b.pass(t)
	require.Equal(t, kept[2:], stored())
}

// Both artifacts of a request in turns are built, and it fails when either cannot
// be.
func TestBothArtifactsOfAPairAreBuilt(t *testing.T) {
	t.Parallel()
	b, _, _ := setupBuilds(t)
	ref := b.create(bench.AdHoc, "1.2.0", 1)
	b.execute(`update benchmark_request set versus = '1.0.0' where id = $1`, ref.ID)
	facts, err := b.LoadRequest(t.Context(), ref)
	require.NoError(t, err)
	require.Equal(t, []bench.Stage{bench.StageBuild, bench.StageOwn}, facts.Stages)
	jobs := b.build(ref)
	require.ElementsMatch(t, []string{"1.2.0", "1.0.0"}, []string{jobs[0].Tag, jobs[1].Tag})
	baseline := jobs[0]
	if jobs[1].Tag == "1.0.0" {
		baseline = jobs[1]
	}
	require.Equal(t, bench.JobFailure, b.recordEnd(baseline.Key, "make failed").Status)
	p, err := b.Progress(t.Context(), protocol.ProgressInput{Request: ref, Stage: bench.StageBuild})
	require.NoError(t, err)
	require.Equal(t, 1, p.Counts.Failure)
	require.Contains(t, p.Failure, "make failed")
}
