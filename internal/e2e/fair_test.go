package e2e_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

// With one collector, jobs start in the order that queues, weights and levels demand.
// The order is read from the record.
func TestLongTurns(t *testing.T) {
	t.Parallel()
	const many, starts = 1000, 120
	s := startStack(t, "--collectors", "1x1", "--share-cores")
	f := s.fairness(t)
	_ = t.Run("many jobs in one file delay nobody", func(t *testing.T) { f.manyInOneFile(t, many) }) &&
		t.Run("shares are those of the weights", func(t *testing.T) { f.shares(t, starts) }) &&
		t.Run("strict queues go first", f.strict)
}

func TestLongTenThousandJobsInOneFileDelayNobody(t *testing.T) {
	t.Parallel()
	startStack(t, "--collectors", "1x1", "--share-cores").fairness(t).manyInOneFile(t, 10_000)
}

func (f fairness) manyInOneFile(t *testing.T, n int) {
	t.Helper()
	many, one, other := f.account(t, "many"), f.account(t, "one"), f.account(t, "other")
	f.configure(t, map[string]int{"single-build": 1})
	file := many.queueFile(t, n, "", short()...)
	f.delaysNobody(t, one)
	f.isNext(t, many, "single-build", "an account's job in another queue than its backlog")

	// Cancelled jobs cost their queue nothing, not even those already in Temporal.
	rest := other.queueFile(t, 1000, "", short()...)
	proceed := f.busy(t)
	f.waits(t, other.queue(), 4)
	f.cancel(t, file)
	id := many.queueOne(t, "", short()...)
	f.waits(t, many.queue(), 1)
	proceed()
	require.LessOrEqual(t, f.overtaken(t, id), 1, "the next job of an account that has cancelled many")
	f.cancel(t, rest)
}

// delaysNobody requires that an account's single job is one of the next two to start,
// however many others wait: always when it is submitted while the collector is busy,
// and mostly when it is submitted while jobs of 50 ms come and go. On a busy machine,
// a job may end while the next one is still on its way to the collector.
func (f fairness) delaysNobody(t *testing.T, one account) {
	t.Helper()
	for range 3 {
		f.isNext(t, one, "", "another account's single job")
	}
	overtaken := make([]int, 9)
	for i := range overtaken {
		overtaken[i] = f.overtaken(t, one.queueOne(t, "", short()...))
	}
	slices.Sort(overtaken)
	t.Logf("overtaken by %v", overtaken)
	require.LessOrEqual(t, overtaken[len(overtaken)/2], 1, "%v", overtaken)
}

// shares requires that each queue's number of starts follows its weight, also after a
// weight has changed.
func (f fairness) shares(t *testing.T, starts int) {
	t.Helper()
	idle := f.account(t, "idle-until-now")
	names := []string{"a", "b", "c", "d", "e"}
	weights := map[string]int{"user:a": 50, "user:b": 30, "user:c": 20, "user:d": 10, "user:e": 10}
	f.configure(t, weights)
	f.configure(t, map[string]int{idle.queue(): 30})
	idle.queueOne(t, "", short()...)
	proceed := f.busy(t)
	var requests []bench.RequestID
	for _, name := range names {
		requests = append(requests, f.account(t, name).queueFile(t, 3*starts, "", short()...))
	}
	for queue := range weights {
		f.waits(t, queue, 4)
	}
	begin := f.now(t)
	proceed()
	exact(t, weights, f.starts(t, begin, starts), 2)

	// A queue that was idle has earned no credit.
	requests = append(requests, idle.queueFile(t, 3*starts, "", short()...))
	var handedOut time.Time
	require.Eventually(t, func() bool {
		return f.conn.QueryRow(t.Context(), `select handed_out_at from job_queue where queue = $1 and handed_out_at > $2 order by handed_out_at limit 1`,
			idle.queue(), begin).Scan(&handedOut) == nil
	}, patience, 20*time.Millisecond, "nothing is handed out")
	got := counted(f.starts(t, handedOut, 20))[idle.queue()]
	t.Logf("%d of the first 20 starts", got)
	require.LessOrEqual(t, got, 20*30/150+1, "starts of the queue that was idle")
	require.Positive(t, got)

	// A weight changes while jobs wait.
	weights[idle.queue()], weights["user:e"] = 30, 50
	_, code := f.run(t, "queue", "set-weight", "user:e", "50")
	require.Zero(t, code)
	begin = f.now(t)
	const former = 50 // more than start until those are gone that were handed out by the former weights
	exact(t, weights, f.starts(t, begin, former+starts/2)[former:], 2)
	f.cancel(t, requests...)
}

func (f fairness) strict(t *testing.T) {
	many, few := f.account(t, "crowd"), f.account(t, "important")
	crowd := many.queueFile(t, 1000, "", short()...)
	proceed := f.busy(t)
	few.queueFile(t, 5, "vip", short()...)
	f.waits(t, "vip", 4)
	begin := f.now(t)
	proceed()
	require.Equal(t, []string{"vip", "vip", "vip", "vip", "vip", many.queue()}, f.starts(t, begin, 6))
	f.cancel(t, crowd)
}

// The same with each job submitted by its own call.
func TestLongThousandsOfSingleJobsDelayNobody(t *testing.T) {
	t.Parallel()
	s := startStack(t, "--collectors", "1x1", "--share-cores")
	f := s.fairness(t)
	many, one := s.account(t, "many"), s.account(t, "one")
	many.queueSingly(t, 2_000, 8, short()...)
	f.delaysNobody(t, one)
}
