package orchestration_test

import (
	"crypto/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// registerAs registers a collector of the pool after a change.
func (b *bundle) registerAs(name string, change func(*bench.Collector)) bench.Collector {
	b.t.Helper()
	c := bench.Collector{
		Name: name, Target: target, SizeClass: pool.SizeClass, Pool: pool.Name, MachineID: "machine of " + name,
		Version: "1", HardwareID: "cpu0", Facts: []byte(`{}`),
	}
	change(&c)
	c, err := b.store.RegisterCollector(b.t.Context(), c, offline)
	require.NoError(b.t, err)
	return c
}

// command is an ad-hoc command with its job, which is handed out.
func (b *bundle) command(c bench.Constraints) (protocol.RequestRef, bench.Job) {
	b.t.Helper()
	id, err := bench.NewRequestID(rand.Reader)
	require.NoError(b.t, err)
	_, _, err = b.store.CreateRequest(b.t.Context(), bench.Request{
		ID: id, Project: project, Type: bench.AdHoc,
		Submission: bench.Submission{Submitter: "ada"},
		Scope:      bench.Scope{Constraints: &c},
		Commands:   bench.Commands{Command: &bench.Command{Argv: []string{"true"}, Iterations: 1, TimeoutSeconds: 60}},
		Standing:   bench.Standing{Status: bench.ArtifactsReady},
	})
	require.NoError(b.t, err)
	ref := protocol.RequestRef{Project: project, ID: id}
	out, err := b.Expand(b.t.Context(), own(ref))
	require.NoError(b.t, err)
	require.Empty(b.t, out.Failed)
	return ref, b.jobs(ref)[0]
}

func (b *bundle) reconcile() []string {
	b.t.Helper()
	b.workflows.taken()
	b.pass(b.t)
	return b.workflows.taken()
}

func setOf(names ...string) string {
	return bench.Place{Pool: pool, Set: names}.TaskQueue()
}

// gpu is a machine with the device gpu.
func gpu(c *bench.Collector) { c.Devices = []string{"gpu"} }

// The story of a job that needs a device: it waits for those that have it, whoever
// comes and goes, and never for anyone else.
func TestAConstrainedJobFollowsTheFleet(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"failover_after": "1m"}`)
	b.registerAs("plain", func(*bench.Collector) {})
	b.registerAs("card", gpu)
	needs := bench.Constraints{Devices: []string{"gpu"}}
	ref, job := b.command(needs)
	require.Equal(t, setOf("card"), job.TaskQueue)
	require.Equal(t, bench.JobHandedOut, job.Status)
	b.workflows.is(job.Ref().WorkflowID(), protocol.WorkflowRunning)
	b.workflows.is(b.requestID(ref), protocol.WorkflowRunning)
	move := func(to string) string { return "move go/" + string(job.Key) + " " + to }
	require.NotContains(t, b.reconcile(), move(setOf("card")))

	// Another one comes.
	b.registerAs("second", gpu)
	require.Contains(t, b.reconcile(), move(setOf("card", "second")))
	require.Equal(t, setOf("card", "second"), b.job(job.Key).TaskQueue)

	// One loses it, the other is removed: it stays with nobody rather than with the
	// wrong one.
	b.registerAs("second", func(*bench.Collector) {})
	b.reconcile()
	require.Equal(t, setOf("card"), b.job(job.Key).TaskQueue)
	require.NoError(t, b.store.RemoveCollector(t.Context(), "card"))
	b.reconcile()
	require.Equal(t, setOf("card"), b.job(job.Key).TaskQueue)
	stranded, err := b.store.StrandedJobs(t.Context())
	require.NoError(t, err)
	require.Len(t, stranded, 1)

	// A larger one has it: as all others have been removed, the job goes there at once.
	b.registerAs("large", func(c *bench.Collector) { gpu(c); c.SizeClass = 8 })
	b.reconcile()
	now := b.job(job.Key)
	require.Equal(t, bench.Pool{Target: target, SizeClass: 8, Name: pool.Name}.TaskQueue(), now.TaskQueue, "all of that pool have it")
	require.EqualValues(t, 8, now.SizeClass)

	// Nobody is left who could ever run another one.
	require.NoError(t, b.store.RemoveCollector(t.Context(), "large"))
	id, err := bench.NewRequestID(rand.Reader)
	require.NoError(t, err)
	_, _, err = b.store.CreateRequest(t.Context(), bench.Request{
		ID: id, Project: project, Type: bench.AdHoc,
		Submission: bench.Submission{Submitter: "ada"},
		Scope:      bench.Scope{Constraints: &needs},
		Commands:   bench.Commands{Command: &bench.Command{Argv: []string{"true"}, Iterations: 1, TimeoutSeconds: 60}},
		Standing:   bench.Standing{Status: bench.ArtifactsReady},
	})
	require.NoError(t, err)
	out, err := b.Expand(t.Context(), own(protocol.RequestRef{Project: project, ID: id}))
	require.NoError(t, err)
	require.Contains(t, out.Failed, "no collector has device gpu")
}

// A collector changes: jobs that it must not have any more leave its pool's task
// queue, for nobody at first, and fail over from there like from any other. What it
// gave back meanwhile is dispatched again where it waits then.
func TestAJobThatNoCollectorCanRunLeavesItsTaskQueue(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"failover_after": "1m"}`)
	b.registerAs("card", gpu)
	_, job := b.command(bench.Constraints{Devices: []string{"gpu"}})
	require.Equal(t, pool.TaskQueue(), job.TaskQueue)
	b.registerAs("card", func(*bench.Collector) {})
	require.NoError(t, b.dispatcher().FollowFleet(t.Context()))
	nobody := bench.WithNobody(pool).TaskQueue()
	require.Equal(t, nobody, b.job(job.Key).TaskQueue)
	require.Contains(t, b.workflows.taken(), "move go/"+string(job.Key)+" "+nobody)
	out, err := b.AssessJob(t.Context(), protocol.AssessInput{Project: project, Key: job.Key, Kind: bench.FailInfrastructure, Message: "not taken"})
	require.NoError(t, err)
	require.True(t, out.Again)
	require.Equal(t, bench.Scheduled, out.Reason)
	require.Equal(t, nobody, out.Moved.TaskQueue)
	b.reconcile()
	require.Equal(t, nobody, b.job(job.Key).TaskQueue)

	b.registerAs("large", func(c *bench.Collector) { gpu(c); c.SizeClass = 8 })
	b.reconcile()
	require.EqualValues(t, 8, b.job(job.Key).SizeClass)
}

// Who belongs to a set was forgotten while jobs of it waited: it is known again.
func TestAForgottenSetIsFoundAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	b.registerAs("plain", func(*bench.Collector) {})
	card := b.registerAs("card", gpu)
	_, job := b.command(bench.Constraints{Devices: []string{"gpu"}})
	b.execute(`delete from collector_set`)
	require.NoError(t, b.dispatcher().FollowFleet(t.Context()))
	queues, err := b.store.CollectorTaskQueues(t.Context(), card)
	require.NoError(t, err)
	require.Contains(t, queues, setOf("card"))
	require.Empty(t, b.job(job.Key).MovedFrom)
}

// A command that anyone may run waits for all pools of its size class, also for one
// that comes later; a suite's job stays in its pool.
func TestACommandGoesToTheFirstIdleCollector(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	b.register("c1")
	suite := b.jobs(b.running("1.26.0"))[0]
	ref, job := b.command(bench.Constraints{})
	require.Equal(t, pool.TaskQueue(), job.TaskQueue)
	b.workflows.is(job.Ref().WorkflowID(), protocol.WorkflowRunning)
	b.workflows.is(b.requestID(ref), protocol.WorkflowRunning)

	b.registerIn("r1", refuge)
	require.Contains(t, b.reconcile(), "move go/"+string(job.Key)+" "+setOf("c1", "r1"))
	require.Equal(t, setOf("c1", "r1"), b.job(job.Key).TaskQueue)
	require.Equal(t, pool.TaskQueue(), b.job(suite.Key).TaskQueue)
	_, late := b.command(bench.Constraints{})
	require.Equal(t, setOf("c1", "r1"), late.TaskQueue)

	// It is never in the way of a machine that has been away for long.
	b.dead("r1", 3600)
	b.reconcile()
	require.Equal(t, setOf("c1", "r1"), b.job(job.Key).TaskQueue)
	require.NoError(t, b.store.RemoveCollector(t.Context(), "r1"))
	b.reconcile()
	require.Equal(t, pool.TaskQueue(), b.job(job.Key).TaskQueue)
}

// The one with the caches goes first; after a while anyone may.
func TestAJobWaitsForCachesForAWhile(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"affinity_wait": "1m"}`)
	b.registerAs("cold", func(*bench.Collector) {})
	b.registerAs("warm", func(c *bench.Collector) { c.CacheDirs = []string{"go", "go/mod"} })
	_, job := b.command(bench.Constraints{CacheDirs: []string{"go/mod"}})
	require.Equal(t, setOf("warm"), job.TaskQueue)
	require.NotNil(t, job.AffinityUntil)
	b.reconcile()
	require.Equal(t, setOf("warm"), b.job(job.Key).TaskQueue)

	b.execute(`update job_queue set affinity_until = now()`)
	b.reconcile()
	now := b.job(job.Key)
	require.Equal(t, pool.TaskQueue(), now.TaskQueue)
	require.Nil(t, now.AffinityUntil)

	// The warm one dies before the time is over.
	_, job = b.command(bench.Constraints{CacheDirs: []string{"go/mod"}})
	b.dead("warm", 240)
	b.reconcile()
	require.Equal(t, pool.TaskQueue(), b.job(job.Key).TaskQueue)

	b.apply(`{"affinity_wait": "never"}`)
	b.register("warm")
	b.execute(`update collector_config set cache_dirs = '{go/mod}' where name = 'warm'`)
	_, job = b.command(bench.Constraints{CacheDirs: []string{"go/mod"}})
	require.Equal(t, pool.TaskQueue(), job.TaskQueue)
}

// A project's constraints hold for all its jobs, within one pool, and for its
// parent's; results of a set count like any others of their pool.
func TestAProjectsConstraints(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"constraints": {"labels": {"quiet": "yes"}}}`)
	quiet := func(c *bench.Collector) { c.Labels = map[string]string{"quiet": "yes"} }
	b.registerAs("loud", func(*bench.Collector) {})
	c := b.registerAs("silent", quiet)
	b.registerAs("elsewhere", func(c *bench.Collector) { quiet(c); c.Pool = "other" })
	b.registerAs("loud-too", func(c *bench.Collector) { c.Pool = "other" })
	first := b.running("1.26.0")
	b.handOut(first)
	for _, j := range b.jobs(first) {
		require.Equal(t, setOf("silent"), j.TaskQueue)
		require.Equal(t, bench.JobHandedOut, j.Status)
		b.measure(j, c, 1)
		require.Equal(t, pool.Name, b.job(j.Key).Pool)
		require.Equal(t, bench.JobSuccess, b.recordEnd(j.Key, "").Status)
	}
	b.complete(first, "")

	b.apply(`{"constraints": {"devices": ["fpga"]}}`)
	ref := b.admitted("1.27.0")
	out, err := b.Expand(t.Context(), own(ref))
	require.NoError(t, err)
	require.Contains(t, out.Failed, "no collector has device fpga")
}
