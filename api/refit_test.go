package api_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

var mainPool = bench.Pool{Target: linux, SizeClass: 2, Name: "main"}

// onlyJob is the job of a command, as it stands now.
func (b *bundle) onlyJob(t *testing.T, request bench.RequestID) bench.Job {
	t.Helper()
	jobs, err := b.store.RequestJobPage(t.Context(), request, store.JobPage{Limit: 2})
	require.NoError(t, err)
	require.Len(t, jobs, 1)
	return jobs[0]
}

// A job that all of a pool could run waits in the pool's task queue, where whoever
// joins the pool takes jobs from then on.
func TestConstraintsApplyToNewMembersOfAPool(t *testing.T) {
	t.Parallel()
	b := setup(t)
	card := func(r *apiclient.Registration) { r.Devices = []string{"gpu"} }
	plain := func(*apiclient.Registration) {}
	b.registerAs(t, "card", card)
	asked, err := b.writer.CreateRequest(t.Context(), command(bench.ConstraintSpec{Devices: []string{"gpu"}}))
	require.NoError(t, err)
	key := b.onlyJob(t, asked.ID).Key
	waits := func() string { return b.onlyJob(t, asked.ID).TaskQueue }
	require.Equal(t, mainPool.TaskQueue(), waits())
	require.Eventually(t, func() bool { return b.workflows.startedJobs() == 1 }, 2*time.Minute, 5*time.Millisecond)
	attempt := int32(0)
	begin := func(c apiclient.Registered) error {
		attempt++
		id := bench.NewRunID(key, "workflow", "activity", attempt)
		_, err := b.collector.StartRun(t.Context(), id, b.runStart(t, id, c))
		return err
	}

	// One without the device joins: before it takes anything, the job waits elsewhere.
	stranger := b.registerAs(t, "plain", plain)
	owners := bench.Place{Pool: mainPool, Set: []string{"card"}}
	require.Equal(t, owners.TaskQueue(), waits())
	require.NotContains(t, stranger.TaskQueues, owners.TaskQueue())
	require.Eventually(t, func() bool { return b.workflows.movedTo(key) == owners.TaskQueue() }, 2*time.Minute, 5*time.Millisecond)

	// What is on its way to it all the same is refused, and no run is opened.
	err = begin(stranger)
	require.ErrorIs(t, err, apiclient.ErrUnfit)
	require.ErrorContains(t, err, "it has no device gpu")
	require.Empty(t, b.onlyJob(t, asked.ID).StartedAt)

	// The only one that has it comes back without: the job waits for nobody, rather
	// than be refused over and over.
	owner := b.registerAs(t, "card", plain)
	require.Equal(t, bench.WithNobody(mainPool).TaskQueue(), waits())
	require.Equal(t, []string{mainPool.TaskQueue()}, owner.TaskQueues)
	d, err := b.nobody.Job(t.Context(), key)
	require.NoError(t, err)
	require.Contains(t, d.Waits, "no collector that is registered for pool "+mainPool.TaskQueue()+" meets the job's constraints any more")

	// It has the device again.
	owner = b.registerAs(t, "card", card)
	require.Equal(t, owners.TaskQueue(), waits())
	require.Contains(t, owner.TaskQueues, owners.TaskQueue())

	// A change that nobody has heard of is found at the fence, which places the job
	// anew: it is not asked again there.
	b.past(t, `update collector_config set devices = case name when 'plain' then '{gpu}'::text[] else '{}' end`)
	require.ErrorIs(t, begin(owner), apiclient.ErrUnfit)
	require.Equal(t, bench.Place{Pool: mainPool, Set: []string{"plain"}}.TaskQueue(), waits())
	require.NoError(t, begin(stranger))
}
