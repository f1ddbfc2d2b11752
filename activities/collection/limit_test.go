package collection_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// The time limit of its size class ends a run as a whole: finished blocks stay,
// running processes are killed, and the rest is for a larger class.
func TestARunIsKilledAtTheLimitOfItsSizeClass(t *testing.T) {
	b := setup(t)
	key := b.job("v1", "one", "endless")
	b.execute(`update job_queue set timeout_seconds = 5`)
	_, err := b.run(key, 1)
	b.fails(err, protocol.ErrTypeTooSmall, false, "killed after 5s, the time limit on size class 2")
	run := b.runs(key)[0]
	require.Equal(t, bench.RunTimeout, run.Outcome)
	require.Equal(t, 5.0, run.TimeoutSeconds)
	require.GreaterOrEqual(t, run.MeasuredSeconds, 5.0)
	require.Equal(t, 1, b.done(key), "what was finished counts")
	require.Empty(t, b.spooled())
}

// A run within its limit reports its usage.
func TestARunReportsItsUsage(t *testing.T) {
	b := setup(t)
	key := b.job("v1", "one")
	b.execute(`update job_queue set timeout_seconds = 600`)
	_, err := b.run(key, 1)
	require.NoError(t, err)
	run := b.runs(key)[0]
	require.Equal(t, bench.RunSuccess, run.Outcome)
	require.Positive(t, run.MeasuredSeconds)
	require.Positive(t, run.CPUSeconds)
}

// The time the API takes to accept results does not count towards the job's
// limit or its measured time.
func TestTimeOfASlowAPIDoesNotCount(t *testing.T) {
	b := setup(t)
	key := b.job("v1", "one")
	b.execute(`update job_queue set timeout_seconds = 5`)
	slow := sync.OnceFunc(func() { time.Sleep(6 * time.Second) })
	b.gate.refuse(func(path string) bool {
		if uploads(path) {
			slow()
		}
		return false
	})
	_, err := b.run(key, 1)
	require.NoError(t, err)
	run := b.runs(key)[0]
	require.Equal(t, bench.RunSuccess, run.Outcome)
	require.Positive(t, run.MeasuredSeconds)
	require.Less(t, run.MeasuredSeconds, 5.0)
	require.Equal(t, 1, b.done(key))
}
