package e2e_test

import (
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

// Two collectors are killed and restarted at random times while they run the jobs of
// five weighted accounts. Each job has exactly one accepted result, and the shares of
// results follow the weights as long as every account has waiting jobs.
//
// There are about 100 jobs by default, and 1,000, which take five minutes, with
// BENCHLOOM_CHAOS=all ('make chaos'). BENCHLOOM_SEED repeats the times of a run.
func TestLongTurnsWhileCollectorsDie(t *testing.T) {
	t.Parallel()
	perWeight := 8
	// A kill delays a queue's result by fifteen seconds, which matters when there are
	// few results.
	within := func(float64) float64 { return 0.1 }
	if os.Getenv("BENCHLOOM_CHAOS") == "all" {
		perWeight, within = 84, func(share float64) float64 { return 0.05 * share }
	}
	const pause = 10 * time.Second
	random := seeded(t)
	s := startStack(t, "--collectors", "1x1", "--share-cores")
	f := s.fairness(t)
	_, code := s.run(t, "collector", "drain", "local-1")
	require.Zero(t, code)
	victims := []*lone{s.startCollector(t, "victim-1", "victims"), s.startCollector(t, "victim-2", "victims")}

	weights := make(map[string]int)
	wanted := make(map[string]int)
	var ids []bench.RequestID
	for i, w := range []int{5, 3, 2, 1, 1} {
		a := f.account(t, "user-"+strconv.Itoa(i+1))
		f.configure(t, map[string]int{a.queue(): w})
		weights[a.queue()], wanted[a.queue()] = w, w*perWeight
		ids = append(ids, a.queueFile(t, w*perWeight, "", "sleep", "0.5"))
	}
	next := func() *time.Timer { return time.NewTimer(time.Duration((0.5 + random.Float64()) * float64(pause))) }
	timer := next()
	defer func() { timer.Stop() }()
	look := time.NewTicker(500 * time.Millisecond)
	defer look.Stop()
	bound := time.NewTimer(20 * time.Minute)
	defer bound.Stop()
	for killed := 0; f.open(t, ids) > 0; {
		select {
		case <-timer.C:
			i := random.IntN(len(victims))
			require.NoError(t, victims[i].command.Process.Kill())
			<-victims[i].exited
			victims[i] = s.launchCollector(t, victims[i].name, "victims")
			killed++
			t.Logf("kill %d: %s", killed, victims[i].name)
			timer = next()
		case <-look.C:
		case <-bound.C:
			require.Fail(t, "the jobs do not end")
		}
	}
	for _, id := range ids {
		d := f.await(t, id, ended)
		requireSuccess(t, d.Outcome, d.Message)
	}
	require.Equal(t, wanted, f.accepted(t), "each job has exactly one accepted result")
	f.sharesOfResults(t, weights, within)
}

// seeded returns a random source and logs the seed that repeats it.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("BENCHLOOM_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("BENCHLOOM_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// open counts the requests that have not ended.
func (f fairness) open(t *testing.T, ids []bench.RequestID) (n int) {
	t.Helper()
	require.NoError(t, f.conn.QueryRow(t.Context(), `select count(*) from benchmark_request where id = any($1) and status <> 'completed'`, ids).Scan(&n))
	return n
}

// accepted counts, per queue, the jobs with exactly one accepted result of one
// collection.
func (f fairness) accepted(t *testing.T) map[string]int {
	t.Helper()
	rows, err := f.conn.Query(t.Context(), `
		select queue, count(*) from (
			select j.queue from job_queue j join test_result r on r.artifact_id = j.artifact_id join collection c on c.result_id = r.id
			where r.invalid_at is null group by j.id having count(*) = 1) one
		group by queue`)
	require.NoError(t, err)
	return collect(t, rows)
}

func collect(t *testing.T, rows pgx.Rows) map[string]int {
	t.Helper()
	out := make(map[string]int)
	var queue string
	var n int
	_, err := pgx.ForEachRow(rows, []any{&queue, &n}, func() error { out[queue] = n; return nil })
	require.NoError(t, err)
	return out
}

// sharesOfResults compares with the weights the results accepted while every queue had
// jobs that had not started.
func (f fairness) sharesOfResults(t *testing.T, weights map[string]int, within func(share float64) float64) {
	t.Helper()
	var until time.Time // the earliest last start of a queue
	require.NoError(t, f.conn.QueryRow(t.Context(), `
		select min(last) from (select max(n.started_at) as last from job_run n join job_queue j on j.id = n.job_id
			where n.number = 1 group by j.queue) ends`).Scan(&until))
	rows, err := f.conn.Query(t.Context(), `
		select j.queue, count(*) from test_result r join job_queue j on j.artifact_id = r.artifact_id where r.created_at < $1 group by j.queue`, until)
	require.NoError(t, err)
	count := collect(t, rows)
	total, all := 0, 0
	for _, queue := range slices.Sorted(maps.Keys(weights)) {
		total += weights[queue]
		all += count[queue]
	}
	for queue, w := range weights {
		share, fair := float64(count[queue])/float64(all), float64(w)/float64(total)
		t.Logf("%s: %d of %d results, %.1f %%; by weight %.1f %%", queue, count[queue], all, 100*share, 100*fair)
		require.InDelta(t, fair, share, within(fair), queue)
	}
}
