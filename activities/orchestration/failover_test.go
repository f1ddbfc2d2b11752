package orchestration_test

import (
	"crypto/rand"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

var refuge = bench.Pool{Target: target, SizeClass: pool.SizeClass, Name: "refuge"}

func (b *bundle) registerIn(name string, p bench.Pool) bench.Collector {
	b.t.Helper()
	c, err := b.store.RegisterCollector(b.t.Context(), bench.Collector{
		Name: name, Target: p.Target, SizeClass: p.SizeClass, Pool: p.Name, MachineID: "machine of " + name,
		Version: "1", HardwareID: "cpu of " + p.Name, Facts: []byte(`{}`),
	}, offline)
	require.NoError(b.t, err)
	return c
}

// dead makes a collector look as if it had died that many seconds ago.
func (b *bundle) dead(name string, seconds int) {
	b.t.Helper()
	b.execute(`update collector_config set last_heartbeat = now() - make_interval(secs => $2), available_at = now() - make_interval(secs => $2) where name = $1`, name, seconds)
}

func moveCall(key bench.JobKey, to bench.Pool) string {
	return "move go/" + string(key) + " " + to.TaskQueue()
}

// The story of a pool whose only collector dies: what waits there moves when its
// time has come, what runs stays, and nothing comes back.
func TestWaitingJobsLeaveADeadPool(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"failover_after": "10m"}`)
	c := b.register("c1")
	ref := b.running("1.26.0")
	jobs := b.jobs(ref)
	require.Equal(t, []bench.JobKey{jobs[0].Key, jobs[1].Key}, b.handOut(ref))
	waiting := b.running("1.27.0")
	queued := b.jobs(waiting)
	b.start(jobs[0].Key, c, 1)
	_, err := b.LoadRequest(t.Context(), ref)
	require.NoError(t, err)
	_, err = b.LoadRequest(t.Context(), waiting)
	require.NoError(t, err)
	b.registerIn("r1", refuge)

	// Dead, but not for long enough.
	b.dead("c1", 9*60)
	b.pass(t)
	require.Equal(t, pool.TaskQueue(), b.job(jobs[1].Key).TaskQueue)
	b.workflows.taken()

	b.dead("c1", 11*60)
	b.workflows.err = errors.New("no Temporal")
	_, err = b.Reconcile(t.Context())
	require.ErrorContains(t, err, "no Temporal")
	require.Equal(t, refuge.TaskQueue(), b.job(jobs[1].Key).TaskQueue, "the row first")
	b.workflows.err = nil
	b.workflows.taken()

	// The next pass does what the first one could not. What was only a row before
	// is handed out where it is now.
	b.pass(t)
	calls := b.workflows.taken()
	require.Contains(t, calls, moveCall(jobs[1].Key, refuge))
	require.NotContains(t, calls, moveCall(jobs[0].Key, refuge), "it has begun")
	require.Equal(t, pool.TaskQueue(), b.job(jobs[0].Key).TaskQueue)
	for _, j := range queued {
		require.Equal(t, refuge.TaskQueue(), b.job(j.Key).TaskQueue)
		require.Equal(t, bench.JobHandedOut, b.job(j.Key).Status)
	}

	// Its collector is gone, as Temporal has noticed: it is moved, too, and is
	// dispatched there again.
	out, err := b.AssessJob(t.Context(), protocol.AssessInput{Project: project, Key: jobs[0].Key, Kind: bench.FailInfrastructure, Message: "silent"})
	require.NoError(t, err)
	require.True(t, out.Again)
	require.Equal(t, protocol.Moved{TaskQueue: pool.TaskQueue(), SizeClass: pool.SizeClass}, out.Moved)
	b.pass(t)
	require.Contains(t, b.workflows.taken(), moveCall(jobs[0].Key, refuge))
	out, err = b.AssessJob(t.Context(), protocol.AssessInput{Project: project, Key: jobs[0].Key, Kind: bench.FailInfrastructure, Message: "silent"})
	require.NoError(t, err)
	require.Equal(t, refuge.TaskQueue(), out.Moved.TaskQueue)

	// Its pool comes back: what has moved stays.
	b.register("c1")
	b.pass(t)
	require.Equal(t, refuge.TaskQueue(), b.job(jobs[0].Key).TaskQueue)
	for _, j := range b.jobs(ref) {
		require.NotEmpty(t, j.MovedFrom)
	}
}

// Where nothing may move, nothing does.
func TestJobsThatStayAtADeadPool(t *testing.T) {
	t.Parallel()
	larger := bench.Pool{Target: target, SizeClass: 8, Name: "larger"}
	for name, c := range map[string]struct {
		config string
		other  bench.Pool
		moves  bool
	}{
		"never":               {`{"failover_after": "never"}`, refuge, false},
		"a pinned size class": {`{"failover_after": "1m", "size": {"class": 2}}`, larger, false},
		"the class above":     {`{"failover_after": "1m"}`, larger, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, c.config)
			b.register("c1")
			ref := b.running("1.26.0")
			b.registerIn("other", c.other)
			b.dead("c1", 3600)
			b.pass(t)
			for _, j := range b.jobs(ref) {
				require.Equal(t, c.moves, j.MovedFrom != "")
				if c.moves {
					require.Equal(t, c.other.SizeClass, j.SizeClass)
				}
			}
		})
	}
}

// commit is an admitted commit, or a build of a change to one.
func (b *bundle) commit(requestType bench.RequestType, tag, parent string) protocol.RequestRef {
	b.t.Helper()
	id, err := bench.NewRequestID(rand.Reader)
	require.NoError(b.t, err)
	_, _, err = b.store.CreateRequest(b.t.Context(), bench.Request{
		ID: id, Project: project, Type: requestType, Tag: tag,
		Submission: bench.Submission{Submitter: "ada"},
		Origin:     bench.Origin{Parent: parent},
		Standing:   bench.Standing{Status: bench.ArtifactsReady},
	})
	require.NoError(b.t, err)
	_, err = b.store.Admit(b.t.Context(), project, 100, func([]bench.Request, map[string]bool) (store.Admission, error) {
		return store.Admission{Next: []bench.RequestID{id}}, nil
	})
	require.NoError(b.t, err)
	return protocol.RequestRef{Project: project, ID: id}
}

func (b *bundle) expand(ref protocol.RequestRef, stage bench.Stage) protocol.ExpandResult {
	b.t.Helper()
	out, err := b.Expand(b.t.Context(), protocol.ExpandInput{Request: ref, Stage: stage})
	require.NoError(b.t, err)
	require.Empty(b.t, out.Failed)
	return out
}

// The jobs of a change move. Its parent, which was measured on the pool that died,
// is measured where the change was, so that the two compare.
func TestTheParentIsMeasuredWhereItsChildsJobsMoved(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"failover_after": "1m"}`)
	c := b.register("c1")
	parent := b.commit(bench.Master, "aaaa", "")
	b.expand(parent, bench.StageOwn)
	ends := func(ref protocol.RequestRef, c bench.Collector) {
		t.Helper()
		for _, j := range b.jobs(ref) {
			if j.Status.Open() {
				b.measure(j, c, 1)
				require.Equal(t, bench.JobSuccess, b.recordEnd(j.Key, "").Status)
			}
		}
	}
	ends(parent, c)
	progress := func(ref protocol.RequestRef) protocol.ProgressResult {
		t.Helper()
		p, err := b.Progress(t.Context(), protocol.ProgressInput{Request: ref, Stage: bench.StageOwn})
		require.NoError(t, err)
		return p
	}
	require.False(t, progress(parent).ParentLacks, "it has no parent")

	child := b.commit(bench.Try, "bbbb", "aaaa")
	require.Zero(t, b.expand(child, bench.StageParent).Counts.Total, "the parent has everything there")
	require.Equal(t, 2, b.expand(child, bench.StageOwn).Counts.Open)
	require.False(t, progress(child).ParentLacks, "its jobs are open")
	b.dead("c1", 600)
	r := b.registerIn("r1", refuge)
	b.pass(t)
	ends(child, r)
	require.True(t, progress(child).ParentLacks)

	backfill := b.expand(child, bench.StageParent)
	require.Equal(t, 2, backfill.Counts.Open)
	for _, key := range b.handedOut(child) {
		j := b.job(key)
		require.Equal(t, "aaaa", j.Tag)
		require.Equal(t, refuge.TaskQueue(), j.TaskQueue)
		require.NotContains(t, keysOfJobs(b.jobs(parent)), j.Key, "the parent's own job has ended elsewhere")
	}
	ends(child, r)
	require.False(t, progress(child).ParentLacks)
	require.Zero(t, b.expand(child, bench.StageParent).Counts.Open, "repeated")
}

func keysOfJobs(jobs []bench.Job) []bench.JobKey {
	keys := make([]bench.JobKey, len(jobs))
	for i, j := range jobs {
		keys[i] = j.Key
	}
	return keys
}
