package api_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	layout "github.com/benchloom/benchloom/internal/packed"
)

// Sizes of the record that pages are measured on: the commits of a year, of which the newest have rows of results. The
// others have histories of the first metric alone.
const (
	yearOfCommits = 5000
	commitsStored = 200
	casesOfYear   = 700
	metricsOfYear = 8
)

// BenchmarkPages measures pages of a large project, from the call to the last byte.
func BenchmarkPages(b *testing.B) {
	service := setup(b)
	service.project(b)
	service.fillYear(b)
	for _, page := range []struct{ name, path string }{
		{"history/default", "/projects/go/history"},
		{"history/zoom", fmt.Sprintf("/projects/go/history?from=c%d&to=c%d", yearOfCommits-150, yearOfCommits-100)},
		{"history/whole", "/projects/go/history?from=c1&to=c" + fmt.Sprint(yearOfCommits)},
		{"history/values", "/projects/go/history/chart.json?chart=b1&from=c1&to=c" + fmt.Sprint(yearOfCommits)},
		{"compare/neighbours", fmt.Sprintf("/projects/go/compare?a=c%d&b=c%d", yearOfCommits-1, yearOfCommits)},
		{"compare/distant", fmt.Sprintf("/projects/go/compare?a=c%d&b=c%d", yearOfCommits-commitsStored+1, yearOfCommits)},
		{"compare/earlier", "/api/v1/compare/earlier?project=go&b=c" + fmt.Sprint(yearOfCommits) + manyRows(200)},
	} {
		b.Run(page.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				begun := time.Now()
				r := service.send(b, "", http.MethodGet, page.path, "")
				took = append(took, time.Since(begun))
				require.Equal(b, http.StatusOK, r.status, r.body)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms/p50")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms/p99")
		})
	}
}

// manyRows names rows of a comparison.
func manyRows(n int) string {
	rows := ""
	for i := range n {
		rows += fmt.Sprintf("&row=b%d/opt//llvm/x86_64-unknown-linux-gnu/metric-1", i%casesOfYear+1)
	}
	return rows
}

// fillYear fills the project with commits, and packs their results.
func (b *bundle) fillYear(t testing.TB) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), b.url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	for _, sql := range yearOfResults {
		_, err := conn.Exec(t.Context(), fmt.Sprintf(`select set_config('year.commits', '%d', false), set_config('year.stored', '%d', false),
			set_config('year.cases', '%d', false), set_config('year.metrics', '%d', false)`, yearOfCommits, commitsStored, casesOfYear, metricsOfYear))
		require.NoError(t, err)
		_, err = conn.Exec(t.Context(), sql)
		require.NoError(t, err, sql)
	}
	for {
		n, err := b.store.PackResults(t.Context(), "go")
		require.NoError(t, err)
		if n == 0 {
			break
		}
	}
	rows, err := conn.Query(t.Context(), `select id from artifact where project = 'go' order by id limit $1`, yearOfCommits-commitsStored)
	require.NoError(t, err)
	older, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	require.NoError(t, err)
	rows, err = conn.Query(t.Context(), `select id from pstat_series where metric = 'metric-1' order by id`)
	require.NoError(t, err)
	series, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(14, 1))
	var strips [][]any
	for _, id := range series {
		for part := range slices.Chunk(older, layout.MaxPoints) {
			var strip layout.Strip
			for _, artifact := range part {
				s := layout.Series{ID: id, Origin: layout.Origin{Kind: bench.KindRuntime, Suite: "f00d"}, Iterations: []int{0, 1, 2}, Disturbed: make([]bool, 3)}
				for range 3 {
					s.Values = append(s.Values, math.Exp(random.NormFloat64()/100))
				}
				strip = append(strip, layout.NewPoint(artifact, &s))
			}
			bytes, err := strip.Pack()
			require.NoError(t, err)
			strips = append(strips, []any{id, 1, "cpu0", false, part[0], part[len(part)-1], bytes})
		}
	}
	_, err = conn.CopyFrom(t.Context(), pgx.Identifier{"strip"}, []string{"series_id", "size_class", "hardware_id", "co_located", "first_artifact", "last_artifact", "packed"},
		pgx.CopyFromRows(strips))
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `analyze`)
	require.NoError(t, err)
}

// yearOfResults fills the tables one after the other; c1 is the oldest commit.
var yearOfResults = []string{
	`set session_replication_role = replica`, // nothing is checked or marked
	`insert into artifact (project, tag) select 'go', 'c' || i from generate_series(1, current_setting('year.commits')::int) i order by i`,
	`insert into benchmark_request (id, project, type, tag, commit_date, status, outcome, submitter, created_at, jobs_done_at, completed_at, baseline)
		select 'r' || translate(lpad(i::text, 10, '0'), '0123456789', 'abcdefghij'), 'go', 'master', 'c' || i, at, 'completed', 'success', 'ada', at, at, at, case when i > 1 then 'c' || i - 1 end
		from generate_series(1, current_setting('year.commits')::int) i cross join lateral (select now() - interval '1 hour' * (current_setting('year.commits')::int - i) as at) t`,
	`insert into commit (project, sha, position, parent, subject, author, committed_at)
		select 'go', 'c' || i, i, 'c' || i - 1, 'change ' || i, 'Ada', now() - interval '1 hour' * (current_setting('year.commits')::int - i)
		from generate_series(1, current_setting('year.commits')::int) i`,
	`insert into job_queue (project, key, tag, artifact_id, kind, target, suite_hash, test_cases, iterations, size_class, pool, task_queue, queue, status, request_created,
			created_at, started_at, completed_at)
		select 'go', 'key' || lpad(a.id::text, 13, '0'), a.tag, a.id, 'runtime', 'x86_64-unknown-linux-gnu', 'f00d', '[]', 3, 1, 'main', 'q', 'project:go', 'success', now(), now(), now(), now()
		from artifact a order by a.id`,
	`insert into request_job (request_id, job_id, stage) select r.id, j.id, 'own' from benchmark_request r join job_queue j on j.tag = r.tag`,
	`insert into job_run (id, job_id, number, reason, size_class, pool, collector, epoch, version, hardware_id, co_located, facts, outcome, started_at, finished_at)
		select 'run' || id, id, 1, 'scheduled', 1, 'main', 'c0', 1, 'v1', 'cpu0', false, '{}', 'success', now(), now() from job_queue`,
	`insert into test_case (project, benchmark, profile, scenario, backend, target)
		select 'go', 'b' || i, 'opt', '', 'llvm', 'x86_64-unknown-linux-gnu' from generate_series(1, current_setting('year.cases')::int) i`,
	`insert into pstat_series (test_case_id, metric) select id, 'metric-' || m from test_case cross join generate_series(1, current_setting('year.metrics')::int) m where backend = 'llvm'`,
	`insert into job_test_case (job_id, test_case_id, place, artifact_id)
		select j.id, tc.id, row_number() over (partition by j.id order by tc.id), j.artifact_id from job_queue j cross join test_case tc where tc.backend = 'llvm'`,
	`insert into test_result (artifact_id, test_case_id, size_class, hardware_id, co_located, generation, run_id, status)
		select j.artifact_id, tc.id, 1, 'cpu0', false, 0, 'run' || j.id, 'ok' from (select * from job_queue order by id desc limit current_setting('year.stored')::int) j
		cross join test_case tc where tc.backend = 'llvm' order by j.id, tc.id`,
	`insert into collection (result_id, iteration, collected_at) select id, i, now() from test_result cross join generate_series(0, 2) i order by id, i`,
	`insert into pstat_runtime (series_id, artifact_id, collection_id, value)
		select s.id, r.artifact_id, c.id, 1 + random() / 100 from collection c join test_result r on r.id = c.result_id
		join pstat_series s on s.test_case_id = r.test_case_id order by c.id, s.id`,
	`insert into stale_result (artifact_id) select distinct artifact_id from test_result`,
	`update stale_result set at = now() - interval '1 day'`,
	`set session_replication_role = origin`,
	`analyze`,
}
