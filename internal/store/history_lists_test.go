package store_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

// Lists that are kept are those of the record after each change, also if several ask at once.
func TestKeptListsOfHistoriesAreNeverOutOfDate(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.execute(`insert into project (name, config) values ('p', '{}'), ('other', '{}')`)
	ctx := t.Context()
	look := func() (tags, dated, series string) {
		t.Helper()
		var asking sync.WaitGroup
		found := make([][3]string, 4)
		for i := range found {
			asking.Go(func() {
				list, err := r.HistoryArtifacts(ctx, "p", bench.Master, 10)
				if err != nil {
					t.Error(err)
				}
				for _, a := range list {
					found[i][0] += a.Tag + " "
					found[i][1] += fmt.Sprint(a.Dated, a.At.Year(), " ")
				}
				known, left, err := r.SeriesOf(ctx, "p", 3)
				if err != nil {
					t.Error(err)
				}
				for _, s := range known {
					found[i][2] += s.TestCase.Benchmark + ":" + string(s.Metric) + " "
				}
				found[i][2] += fmt.Sprint(left)
			})
		}
		asking.Wait()
		for _, other := range found[1:] {
			require.Equal(t, found[0], other)
		}
		return found[0][0], found[0][1], found[0][2]
	}
	tags, _, series := look()
	require.Equal(t, []string{"", "0"}, []string{tags, series})

	request := func(id, project, tag string) {
		r.execute(`insert into artifact (project, tag) values ($1, $2) on conflict do nothing`, project, tag)
		r.execute(`insert into benchmark_request (id, project, type, tag, commit_date, status, submitter, created_at) values ($1, $2, 'master', $3, '2026-01-01', 'in_progress', 'ada', now())`, id, project, tag)
	}
	request("raaaaaaaaaa", "p", "one")
	request("rbbbbbbbbbb", "other", "one")
	tags, _, _ = look()
	require.Empty(t, tags, "its jobs have not ended")
	r.execute(`update benchmark_request set jobs_done_at = now()`)
	tags, dated, _ := look()
	require.Equal(t, []string{"one ", "true 2026 "}, []string{tags, dated})
	r.execute(`update benchmark_request set commit_date = '2020-02-02' where project = 'p'`)
	_, dated, _ = look()
	require.Equal(t, "true 2020 ", dated)
	request("rcccccccccc", "p", "two")
	r.execute(`update benchmark_request set jobs_done_at = now() where tag = 'two'`)
	tags, _, _ = look()
	require.Equal(t, "one two ", tags)
	r.execute(`update benchmark_request set status = 'completed', completed_at = now(), outcome = 'cancelled' where project = 'p' and tag = 'one'`)
	tags, _, _ = look()
	require.Equal(t, "two ", tags)
	r.execute(`delete from artifact where project = 'p' and tag = 'two'`)
	tags, _, _ = look()
	require.Empty(t, tags)

	for n, metric := range []string{"a", "b", "c", "d"} {
		r.execute(`insert into test_case (project, benchmark, profile, scenario, backend, target) select $1, $2, '', '', '', 'x' on conflict do nothing`, []string{"p", "other"}[n/3], fmt.Sprint("b", n/2))
		r.execute(`insert into pstat_series (test_case_id, metric) select max(id), $1 from test_case`, metric)
		_, _, series = look()
		require.Equal(t, []string{"b0:a 0", "b0:a b0:b 0", "b0:a b0:b b1:c 0", "b0:a b0:b b1:c 0"}[n], series)
	}
	r.execute(`insert into pstat_series (test_case_id, metric) select min(id), 'e' from test_case`)
	_, _, series = look()
	require.Equal(t, "b0:a b0:b b1:c 1", series)
}
