package orchestration_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

// A command was to be tried on class 2, for a short time. Its collector dies, and it goes to
// class 8: what was selected for class 2 does not follow it there.
func TestTheLimitOfASizeClassStaysThere(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"failover_after": "1m", "max_job_fails": 3}`)
	b.register("c1")
	large := b.registerAt(bench.Pool{Target: target, SizeClass: 8, Name: "large"})
	_, job := b.command(bench.Constraints{})
	require.Equal(t, []any{pool.SizeClass, 10.0, bench.JobHandedOut}, []any{job.SizeClass, job.TimeoutSeconds, job.Status})
	b.execute(`update job_queue set probe = true where key = $1`, job.Key)
	b.dead("c1", 600)
	b.reconcile()
	job = b.job(job.Key)
	require.Equal(t, []any{bench.SizeClass(8), 0.0, false}, []any{job.SizeClass, job.TimeoutSeconds, job.Probe})
	r, err := b.store.Run(t.Context(), b.start(job.Key, large, 1))
	require.NoError(t, err)
	require.Equal(t, []any{bench.SizeClass(8), 0.0, false}, []any{r.SizeClass, r.TimeoutSeconds, r.Probe})
}

// A collector of the class that the job was to leave is quicker: it runs there, and its
// next run has no limit that was meant for another class.
func TestTheLimitOfASizeClassIgnoresFasterClasses(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	small := b.register("c1")
	large := bench.Pool{Target: target, SizeClass: 8, Name: "large"}
	b.registerAt(large)
	_, job := b.command(bench.Constraints{})
	b.execute(`update job_queue set size_class = 8, pool = 'large', task_queue = $2, moved_from = task_queue, moved_at = now(), timeout_seconds = 7 where key = $1`, job.Key, large.TaskQueue())
	run := b.start(job.Key, small, 1)
	require.NoError(t, b.store.FinishRun(t.Context(), run, bench.RunEnd{Outcome: bench.RunLost}))
	job = b.job(job.Key)
	require.Equal(t, []any{pool.SizeClass, 0.0}, []any{job.SizeClass, job.TimeoutSeconds})
}

// The size class of a single line of a file is chosen by a person, as that of a request is:
// its job waits for a collector of that class.
func TestACommandWithAPinnedClassStaysOnIt(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"failover_after": "1m"}`)
	b.register("c1")
	b.registerAt(bench.Pool{Target: target, SizeClass: 8, Name: "large"})
	_, job := b.command(bench.Constraints{})
	b.execute(`update job_queue set shape = '', timeout_seconds = 0 where key = $1`, job.Key) // as such a line is written
	b.dead("c1", 600)
	b.reconcile()
	require.Equal(t, pool.SizeClass, b.job(job.Key).SizeClass)
}

// A command that only waits as a row, and that has moved, has its class selected again, of
// those with a live collector.
func TestACommandThatHasMovedIsSelectedAnew(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"failover_after": "1m", "size": {"minimum": "3s"}}`)
	b.register("c1")
	middle := bench.Pool{Target: target, SizeClass: 4, Name: "middle"}
	b.registerAt(middle)
	b.registerAt(bench.Pool{Target: target, SizeClass: 8, Name: "large"})
	_, job := b.command(bench.Constraints{})
	b.execute(`update job_queue set status = 'queued', handed_out_at = null, timeout_seconds = 7 where key = $1`, job.Key) // taken back
	require.Equal(t, pool.SizeClass, b.job(job.Key).SizeClass)
	b.dead("c1", 600)
	stranded, err := b.store.StrandedJobs(t.Context())
	require.NoError(t, err)
	require.Len(t, stranded, 1)
	b.reconcile()
	job = b.job(job.Key)
	require.Equal(t, []any{middle.TaskQueue(), 3.0, bench.JobHandedOut}, []any{job.TaskQueue, job.TimeoutSeconds, job.Status}, "the smallest that lives, with a limit of its own")
}
