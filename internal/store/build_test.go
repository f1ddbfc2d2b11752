package store_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

// buildOf returns a request in progress with a job that builds it from a tree.
func (r record) buildOf(tag, tree string) (bench.Request, bench.Job) {
	r.t.Helper()
	request := r.inProgress(release(r.t, tag))
	recipe := bench.BuildRecipe{Repository: "/srv/repo", Command: []string{"make"}, Output: ".", TimeoutSeconds: 60}
	spec, err := recipe.Spec(project, tag, target, strings.Repeat("c", 40), strings.Repeat(tree, 40))
	require.NoError(r.t, err)
	require.NoError(r.t, r.SetBuildRevision(r.t.Context(), project, recipe.Hash(target), spec))
	job := newJob(request)
	job.Kind, job.SuiteHash, job.Profile, job.Build, job.TestCases = bench.KindBuild, "", "", &spec, []bench.TestCase{}
	job.Key = bench.JobIdentity{Project: project, Kind: job.Kind, Suite: string(spec.Key)}.Key()
	require.NoError(r.t, r.ExpandRequest(r.t.Context(), request.ID, store.Expansion{Stage: bench.StageBuild, Jobs: storetest.Planned(job)}))
	return request, r.job(job.Key)
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// archive has two full pieces and a partial one.
var archive = bytes.Repeat([]byte("0123456789abcdef"), (2*store.BuildChunkBytes+1600)/16)

// upload delivers an archive.
func (r record) upload(run bench.RunID, data []byte) {
	r.t.Helper()
	number := 0
	for piece := range chunksOf(data) {
		twice(r.t, func() error { return r.PutBuildChunk(r.t.Context(), run, number, piece) })
		number++
	}
}

func chunksOf(data []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(data) > 0 {
			n := min(len(data), store.BuildChunkBytes)
			if !yield(data[:n]) {
				return
			}
			data = data[n:]
		}
	}
}

func TestABuildIsStoredInPiecesAndReadBack(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("one")
	_, job := r.buildOf("v1", "a")
	require.Equal(t, bench.KindBuild, job.Kind)
	run := r.start(job, 1, c).Run.ID
	r.upload(run, archive)
	_, err := r.Build(t.Context(), job.Build.Key)
	require.ErrorIs(t, err, store.ErrNotFound, "not before it is complete")

	// The announced size and checksum must match.
	for _, wrong := range []struct {
		size int64
		sum  string
	}{{int64(len(archive)), sumOf([]byte("other"))}, {int64(len(archive)) - 1, sumOf(archive)}, {4 * store.BuildChunkBytes, sumOf(archive)}, {0, sumOf(nil)}} {
		_, err = r.FinishBuild(t.Context(), run, wrong.size, wrong.sum)
		require.ErrorIs(t, err, store.ErrIncomplete)
	}
	twice(t, func() error {
		_, err := r.FinishBuild(t.Context(), run, int64(len(archive)), sumOf(archive))
		return err
	})
	stored, err := r.Build(t.Context(), job.Build.Key)
	require.NoError(t, err)
	require.Equal(t, 3, stored.Chunks())
	require.Equal(t, run, stored.RunID)
	var back []byte
	for i := range stored.Chunks() {
		piece, err := r.BuildChunk(t.Context(), stored.Key, i)
		require.NoError(t, err)
		back = append(back, piece...)
	}
	require.True(t, bytes.Equal(archive, back))
	_, err = r.BuildChunk(t.Context(), stored.Key, 3)
	require.ErrorIs(t, err, store.ErrNotFound)
	used, err := r.Build(t.Context(), stored.Key)
	require.NoError(t, err)
	require.True(t, used.LastUsed.After(stored.LastUsed), "reading it counts as a use")
	key, err := r.BuildOf(t.Context(), project, "v1", target, job.Build.Hash(target))
	require.NoError(t, err)
	require.Equal(t, stored.Key, key)
	_, err = r.BuildOf(t.Context(), project, "v1", target, "another recipe")
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestTheStoredBuildDecidesHowItsJobEnds(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("one")
	_, job := r.buildOf("v1", "a")
	lost := r.start(job, 1, c).Run.ID
	r.upload(lost, archive)
	run := r.start(job, 2, c).Run.ID // closes the first one as lost
	r.upload(run, archive)
	first, err := r.FinishBuild(t.Context(), lost, int64(len(archive)), sumOf(archive))
	require.NoError(t, err, "late, but the job is open")
	second, err := r.FinishBuild(t.Context(), run, int64(len(archive)), sumOf(archive))
	require.NoError(t, err)
	require.Equal(t, first, second, "the first one stays")
	require.Zero(t, r.count(`select count(*) from build_chunk where run_id = $1`, run))
	require.Equal(t, bench.JobSuccess, r.finish(job, "the collector was silent").Status)

	_, failing := r.buildOf("v2", "b")
	end := r.finish(failing, "it failed 3 times")
	require.Equal(t, bench.JobFailure, end.Status)
	require.Equal(t, "v2 (commit cccccccccccc) for x86_64-unknown-linux-gnu was not built: it failed 3 times", end.Message)
	_, silent := r.buildOf("v3", "d")
	require.Contains(t, r.finish(silent, "").Message, "no run reported why")
}

func TestBuildUploadsThatAreRefused(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("one")
	_, measuring := r.oneJob("v1", "gin")
	require.ErrorIs(t, r.PutBuildChunk(t.Context(), r.start(measuring, 1, c).Run.ID, 0, []byte("x")), store.ErrNoBuild)

	_, job := r.buildOf("v2", "a")
	require.ErrorIs(t, r.PutBuildChunk(t.Context(), runID(job, 7), 0, []byte("x")), store.ErrNotFound)
	run := r.start(job, 1, c).Run.ID
	for _, data := range [][]byte{nil, make([]byte, store.BuildChunkBytes+1)} {
		require.ErrorIs(t, r.PutBuildChunk(t.Context(), run, 0, data), bench.ErrInvalid)
	}
	r.finish(job, "given up")
	require.ErrorIs(t, r.PutBuildChunk(t.Context(), run, 0, []byte("x")), store.ErrJobClosed)
	_, err := r.FinishBuild(t.Context(), run, 1, sumOf([]byte("x")))
	require.ErrorIs(t, err, store.ErrJobClosed)
}

func TestUnneededBuildsAreRemoved(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	c := r.register("one")
	stored := func(tag, tree string) (bench.Request, bench.BuildKey) {
		request, job := r.buildOf(tag, tree)
		run := r.start(job, 1, c).Run.ID
		r.upload(run, archive)
		_, err := r.FinishBuild(t.Context(), run, int64(len(archive)), sumOf(archive))
		require.NoError(t, err)
		r.finish(job, "")
		return request, job.Build.Key
	}
	done := func(request bench.Request) {
		require.NoError(t, r.CompleteRequest(t.Context(), request.ID, bench.Success, "", nil, ""))
	}
	parent, old := stored("v1", "a")
	done(parent)
	_, needed := stored("v2", "b")
	last, recent := stored("v3", "d")
	done(last)
	r.execute(`update build set last_used = now() - interval '1 hour' where key = $1`, needed)
	r.execute(`update build set last_used = now() - interval '2 hours' where key = $1`, old)
	keys := func(builds []store.Build) (out []bench.BuildKey) {
		for _, b := range builds {
			out = append(out, b.Key)
		}
		return out
	}
	prune := func(builds int) []bench.BuildKey {
		removed, err := r.PruneBuilds(t.Context(), int64(builds*len(archive)))
		require.NoError(t, err)
		return keys(removed)
	}
	require.Empty(t, prune(3))

	// A child that waits for its parent's results may have the parent measured again.
	child := release(t, "v9")
	child.Type, child.Parent = bench.Master, "v1"
	child = r.create(child)
	require.Empty(t, prune(2), "the oldest is needed by a child")
	done(child)
	require.Equal(t, []bench.BuildKey{old}, prune(2))
	require.Equal(t, []bench.BuildKey{recent}, prune(0), "an open request needs the other one")

	// The remains of an abandoned upload are removed, but not while it may continue.
	_, job := r.buildOf("v4", "e")
	r.upload(r.start(job, 1, c).Run.ID, archive)
	chunks := func() int { return r.count(`select count(*) from build_chunk`) }
	prune(9)
	require.Equal(t, 6, chunks())
	r.finish(job, "given up")
	prune(9)
	require.Equal(t, 3, chunks())
}

func TestAMovedTagIsAnotherBuild(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, job := r.buildOf("v1", "a")
	spec := *job.Build
	recipe := spec.Hash(target)
	is, err := r.IsBuiltAs(t.Context(), project, "v1", spec.Key)
	require.NoError(t, err)
	require.True(t, is)
	spec.Key = bench.BuildKey(strings.Repeat("f", 64))
	require.NoError(t, r.SetBuildRevision(t.Context(), project, recipe, spec))
	key, err := r.BuildOf(t.Context(), project, "v1", target, recipe)
	require.NoError(t, err)
	require.Equal(t, spec.Key, key)
	is, err = r.IsBuiltAs(t.Context(), project, "v1", job.Build.Key)
	require.NoError(t, err)
	require.False(t, is)
	require.ErrorIs(t, r.SetBuildRevision(t.Context(), "nobody's", recipe, spec), store.ErrNotFound)
}

// Only runs that measure an artifact need its build, and only until they end.
func TestABuildIsUsedByTheRunsThatMeasureIt(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	one, two := r.register("one"), r.register("two")
	_, job := r.oneJob("v1", "gin")
	_, other := r.oneJob("v2", "gin")
	const key = bench.BuildKey("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
	require.NoError(t, r.SetBuildRevision(t.Context(), project, "recipe", bench.BuildSpec{Tag: "v1", Target: target, Key: key}))
	users := func() []string {
		names, err := r.BuildUsers(t.Context(), key)
		require.NoError(t, err)
		return names
	}
	require.Empty(t, users())
	run := r.start(job, 1, one).Run.ID
	r.start(other, 1, two)
	require.Equal(t, []string{"one"}, users())
	require.NoError(t, r.FinishRun(t.Context(), run, bench.RunEnd{Outcome: bench.RunSuccess}))
	require.Empty(t, users())
}
