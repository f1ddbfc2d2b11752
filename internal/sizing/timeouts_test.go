package sizing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

// carryOut carries a job out that takes so many seconds on class 1, and on class 4. It
// tells on which classes it was killed at the time limit, and where it ended.
func (b *bundle) carryOut(onSmall, onLarge float64) (killed []bench.SizeClass, ended bench.SizeClass) {
	b.t.Helper()
	key := b.submit("make")
	b.place(4)
	b.place(1)
	for n := int32(1); ; n++ {
		j := b.at(key)
		took := map[bench.SizeClass]float64{1: onSmall, 4: onLarge}[j.SizeClass]
		if j.TimeoutSeconds == 0 || took <= j.TimeoutSeconds {
			b.run(key, n, bench.RunSuccess, took)
			b.ended(time.Duration(took) * time.Second)
			b.end(key)
			return killed, j.SizeClass
		}
		killed = append(killed, j.SizeClass)
		b.run(key, n, bench.RunTimeout, j.TimeoutSeconds)
		b.ended(time.Duration(j.TimeoutSeconds) * time.Second)
		b.Learn(b.t.Context(), key)
		b.escalate(key)
	}
}

// ended lets the last run have ended so long after the one before.
func (b *bundle) ended(after time.Duration) {
	b.t.Helper()
	if b.clock.IsZero() {
		b.clock = time.Now().Add(-24 * time.Hour)
	}
	b.clock = b.clock.Add(after)
	b.execute(`update job_run set finished_at = $1 where taught_at is null`, b.clock)
}

// escalate moves a job from class 1 to class 4.
func (b *bundle) escalate(key bench.JobKey) {
	b.t.Helper()
	view, err := b.View(b.t.Context())
	require.NoError(b.t, err)
	larger, err := view.Larger(b.t.Context(), bench.ProjectConfig{}, key, 4)
	require.NoError(b.t, err)
	moved, err := b.store.EscalateJob(b.t.Context(), key, 1, larger)
	require.NoError(b.t, err)
	require.True(b.t, moved)
}

// A class on which jobs time out is given up, though such a run has no result: after its
// first limit, which proves nothing, it is tried with an acceptable one, and then no more.
func TestAClassOnWhichJobsTimeOutIsGivenUp(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`, 1, 4)
	kills := 0
	for range 8 {
		killed, ended := b.carryOut(1000, 60)
		kills += len(killed)
		require.Equal(t, bench.SizeClass(4), ended)
	}
	require.Equal(t, 2, kills)
}

// A job that was good enough off on class 1 becomes parallel: three timeouts in a row say so.
func TestTimeoutsTellThatAJobHasChanged(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`, 1, 4)
	b.random = 0.9 // no later probes
	for range 10 {
		b.carryOut(60, 60)
	}
	killed, ended := b.carryOut(60, 60)
	require.Empty(t, killed)
	require.Equal(t, bench.SizeClass(1), ended)
	for range 3 {
		b.carryOut(1000, 60)
	}
	killed, ended = b.carryOut(1000, 60)
	require.Empty(t, killed)
	require.Equal(t, bench.SizeClass(4), ended)
}

// A run that goes on with what another has measured had less to do: its timeout says
// nothing of how long the whole job takes.
func TestATimeoutOfAResumedRunTeachesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`, 1, 4)
	cases := []bench.TestCase{{Benchmark: "gin", Target: target}, {Benchmark: "sort", Target: target}}
	for _, resumed := range []bool{true, false} {
		key := b.job(bench.Job{
			Work:   bench.Work{Tag: map[bool]string{true: "v1", false: "v2"}[resumed], Kind: bench.KindRuntime, SuiteHash: "f00d", TestCases: cases},
			Sizing: bench.Sizing{Shape: string(bench.SuiteShape(bench.KindRuntime, target, cases, 0).Shape())},
		})
		if resumed {
			b.place(4)
		} else {
			b.execute(`update job_queue set selected_at = now(), size_class = 1, task_queue = $2, timeout_seconds = 10 where key = $1`, key, pool(1).TaskQueue())
		}
		require.Equal(t, bench.SizeClass(1), b.at(key).SizeClass)
		n := int32(1)
		if resumed {
			run, _ := b.begin(key, n)
			_, err := b.store.StoreBlock(t.Context(), run, []bench.TestCaseResult{{TestCase: cases[0], Collections: []bench.Collection{{
				Iteration: 1, CollectedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Values: map[bench.Metric]float64{bench.WallTime: 1},
			}}}}, nil)
			require.NoError(t, err)
			require.NoError(t, b.store.FinishRun(t.Context(), run, bench.RunEnd{Outcome: bench.RunLost, MeasuredSeconds: 1}))
			n++
		}
		b.run(key, n, bench.RunTimeout, 10)
		b.Learn(t.Context(), key)
		if resumed {
			require.NotContains(t, string(b.known(key).Statistics), "timed_out")
		} else {
			require.Contains(t, string(b.known(key).Statistics), "timed_out")
		}
	}
}
