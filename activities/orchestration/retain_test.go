package orchestration_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"github.com/uber-go/tally/v4"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

// A pass removes what was kept long enough of every kind, counts it, and the next one has
// nothing to do.
func TestAPassRemovesWhatWasKeptLongEnough(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"keep": {"output": "forever"}}`)
	storetest.FillYear(t, b.url, 200)
	scope := tally.NewTestScope("", nil)
	b.Scope, b.Keep = scope, bench.DefaultRetention()
	b.Watching.Now = time.Now

	result, err := b.Retain(t.Context())
	require.NoError(t, err)
	for _, kind := range []bench.RetentionKind{bench.KeepOutput, bench.KeepCommands, bench.KeepDeliveries, bench.KeepSuites} {
		require.Positive(t, result.Removed[kind], kind)
		counter := scope.Snapshot().Counters()["retention_removed_rows_total+kind="+string(kind)]
		require.Equal(t, result.Removed[kind], counter.Value(), kind)
	}
	for _, kind := range []bench.RetentionKind{bench.KeepOutput, bench.KeepCommands} { // of others, what is in use stays
		oldest := scope.Snapshot().Gauges()["retention_oldest_seconds+kind="+string(kind)]
		require.LessOrEqual(t, oldest.Value(), (b.Keep[kind] + time.Minute).Seconds(), kind)
	}
	require.NotContains(t, result.Removed, bench.KeepTry)
	states, err := b.store.Retention(t.Context())
	require.NoError(t, err)
	require.Len(t, states, len(bench.RetentionKinds()))
	require.Equal(t, bench.Forever, states[0].Projects[project], "as the project wishes")

	again, err := b.Retain(t.Context())
	require.NoError(t, err)
	require.Empty(t, again.Removed)
}

// The sizes that docs/retention.md promises, in bytes with indexes.
const (
	// yearPerRequest bounds what a year of requests leaves, per request of that year.
	yearPerRequest = 17_000
	// yearBase is for all that does not depend on their number: the schema itself, suites.
	yearBase = 30_000_000
)

// A year of small requests stays within the documented size once the retention has run, and
// nothing open is touched. BENCHLOOM_YEAR=1 plays the whole of it: 20,000 requests.
func TestLongAYearOfRequestsStaysSmall(t *testing.T) {
	t.Parallel()
	requests := 2000
	if os.Getenv("BENCHLOOM_YEAR") != "" {
		requests = 20_000
	}
	b := setup(t, `{}`)
	storetest.FillYear(t, b.url, requests)
	b.Keep, b.Watching.Now = bench.DefaultRetention(), time.Now
	conn, err := pgx.Connect(t.Context(), b.url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(context.Background())) })
	size := func() (bytes int64) {
		t.Helper()
		_, err := conn.Exec(t.Context(), `vacuum full`)
		require.NoError(t, err)
		require.NoError(t, conn.QueryRow(t.Context(), `select pg_database_size(current_database())`).Scan(&bytes))
		return bytes
	}
	before, open := size(), rowsThatMustStay(t, conn)
	began := time.Now()
	result, err := b.Retain(t.Context())
	require.NoError(t, err)
	took := time.Since(began)
	after := size()

	most := int64(yearBase + yearPerRequest*requests)
	t.Logf("%d requests: %s before, %s after, at most %s; removed in %v: %v", requests, humanize.Bytes(uint64(before)), humanize.Bytes(uint64(after)), humanize.Bytes(uint64(most)), took.Round(time.Millisecond), result.Removed)
	require.Equal(t, open, rowsThatMustStay(t, conn))
	require.LessOrEqual(t, after, most)
	require.Greater(t, before, most, "without the retention it would be more")
}

// rowsThatMustStay digests, by what they are, the rows that no pass may change: all that is
// open, and the results of tracked artifacts.
func rowsThatMustStay(t *testing.T, conn *pgx.Conn) map[string]string {
	t.Helper()
	const open = `(select id from benchmark_request where status <> 'completed')`
	const jobs = `(select job_id from request_job where request_id in ` + open + `)`
	const tracked = `(select a.id from artifact a join benchmark_request q on q.project = a.project and q.tag = a.tag and q.type <> 'adhoc')`
	out := make(map[string]string)
	for what, rows := range map[string]string{
		"open requests":         `select r::text from benchmark_request r where r.id in ` + open,
		"their jobs":            `select j::text from job_queue j where j.id in ` + jobs,
		"their runs":            `select n::text from job_run n where n.job_id in ` + jobs,
		"their logs":            `select l::text from run_log l join job_run n on n.id = l.run_id where n.job_id in ` + jobs,
		"their results":         `select t::text from test_result t join job_run n on n.id = t.run_id where n.job_id in ` + jobs,
		"tracked requests":      `select r::text from benchmark_request r where r.type <> 'adhoc'`,
		"their comparisons":     `select c::text from comparison c join benchmark_request r on r.id = c.request_id where r.type <> 'adhoc'`,
		"their verdicts":        `select v::text from comparison_verdict v join comparison c on c.id = v.comparison_id join benchmark_request r on r.id = c.request_id where r.type <> 'adhoc'`,
		"their own results":     `select t::text from test_result t where not t.in_turns and t.artifact_id in ` + tracked,
		"their collections":     `select c::text from collection c join test_result t on t.id = c.result_id where not t.in_turns and t.artifact_id in ` + tracked,
		"values of collections": `select count(*)::text || ' ' || sum(p.value::numeric) from pstat_runtime p join collection c on c.id = p.collection_id join test_result t on t.id = c.result_id where not t.in_turns and t.artifact_id in ` + tracked,
	} {
		var n int
		var digest string
		require.NoError(t, conn.QueryRow(t.Context(), `select count(*), coalesce(md5(string_agg(md5(line), '' order by line)), '') from (`+rows+`) t (line)`).Scan(&n, &digest), what)
		require.Positive(t, n, what)
		out[what] = fmt.Sprint(n, " ", digest)
	}
	return out
}
