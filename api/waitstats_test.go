package api_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/uber-go/tally/v4"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/fairshare"
	"github.com/benchloom/benchloom/internal/waittime"
)

// Two jobs could run an hour ago. One begins at once, one waits; both are told by pool and
// queue, by block, on the page, and in metrics.
func TestWaitsAreToldByPoolAndQueue(t *testing.T) {
	t.Parallel()
	scope := tally.NewTestScope("", nil)
	b := setup(t, func(c *api.Config) { c.Scope = scope })
	b.project(t)
	c := b.register(t, "c1")
	const path = "/stats/wait"
	empty := b.page(t, "", path)
	empty.requireSound(t, path)
	require.Contains(t, empty.text(), "No job that became able to run in the last 24h has started or is late.")
	none, err := b.nobody.WaitStats(t.Context(), apiclient.WaitQuery{})
	require.NoError(t, err)
	require.Equal(t, []any{0, 0, 900.0, 86400.0}, []any{len(none.Places), len(none.EndToEnd), none.BlockSeconds, none.Until.Sub(none.From).Seconds()})

	first, second := b.submit(t, "1.26.0"), b.submit(t, "1.27.0")
	b.past(t, `update job_queue set created_at = now() - interval '1 hour'`)
	b.past(t, `update benchmark_request set admitted_at = now() - interval '2 hours'`)
	b.past(t, `update collector_presence set since = now() - interval '1 day'`)
	b.past(t, `insert into queue_pause_past (project, since, until) values ('go', now() - interval '2 hours', now() - interval '50 minutes')`)
	b.past(t, `update job_queue set held_since = null, handed_out_at = case when handed_out_at is not null then now() - interval '49 minutes' end`)
	b.start(t, first, c, 1)

	w, err := b.nobody.WaitStats(t.Context(), apiclient.WaitQuery{Project: "go", Since: "6h", Block: "2h"})
	require.NoError(t, err)
	require.Len(t, w.Places, 1)
	place := w.Places[0]
	require.Equal(t, []any{c.TaskQueue, "project:go", 900.0, 1, 1, 1, 0}, []any{place.Pool, place.Queue, place.Objective, place.Started, place.Waiting, place.Overdue, place.Within})
	require.InDelta(t, 50*60, *place.Median, 60)
	require.Zero(t, *place.Share)
	require.Len(t, place.Blocked, 1)
	require.Equal(t, waittime.Pause, place.Blocked[0].Reason)
	require.InDelta(t, 2*10*60, place.Blocked[0].Seconds, 60, "of both")
	require.Equal(t, []int{0, 0, 0, 2, 0, 0, 0}, place.Steps)
	require.Equal(t, place.WaitFigures, w.Total.WaitFigures)
	require.NotEmpty(t, w.Total.Blocks)
	for _, block := range w.Total.Blocks {
		require.Zero(t, block.From.UTC().Hour()%2)
		require.Zero(t, block.From.Minute())
	}

	// What is not known is refused, and so are periods that do not fit.
	for name, q := range map[string]apiclient.WaitQuery{
		`there is no project "moon"`: {Project: "moon"}, `there is no queue "user:eve"`: {Queue: "user:eve"}, `no collector of a pool "moon"`: {Pool: "moon"},
		`since is "25m"; use a multiple of 15m`: {Since: "25m"}, `since is "169h"`: {Since: "169h"}, `since is "-24h"`: {Since: "-24h"}, `since is "a day"`: {Since: "a day"},
	} {
		_, err := b.nobody.WaitStats(t.Context(), q)
		require.ErrorContains(t, err, name)
	}
	_, err = b.nobody.WaitStats(t.Context(), apiclient.WaitQuery{Block: "1h"})
	require.Error(t, err)

	// The page says the same.
	p := b.page(t, "", path+"?pool="+c.TaskQueue+"&queue=project%3Ago")
	p.requireSound(t, path)
	require.Contains(t, p.text(), "0 % of the jobs that became able to run in the last 24h started within their objective. 1 job that can run is late and has not started.")
	require.Contains(t, p.section("places"), "project paused 20m")
	require.Contains(t, p.section("places"), "1 late")
	require.Contains(t, p.text(), "Waited: 2 jobs 45 to 60 min")
	require.Contains(t, p.text(), "all queues")
	require.Contains(t, p.body, "0 of 2 jobs in time")
	require.Contains(t, b.page(t, "", path+"?queue=user%3Aeve").text(), "there is no queue")
	require.Contains(t, b.page(t, "", path+"?sort=moon").text(), "the columns are pool, queue, share")

	// With a longer objective they are in time.
	_, err = b.admin.ApplyQueues(t.Context(), apiclient.QueueConfig{Queues: []fairshare.QueueSetting{{Name: "project:go", WaitObjective: "2h"}}})
	require.NoError(t, err)
	w, err = b.nobody.WaitStats(t.Context(), apiclient.WaitQuery{})
	require.NoError(t, err)
	require.Equal(t, []any{7200.0, 1, 0}, []any{w.Total.Objective, w.Total.Within, w.Total.Overdue})
	require.InDelta(t, 1, *w.Total.Share, 0)
	queues, err := b.nobody.Queues(t.Context())
	require.NoError(t, err)
	for _, q := range queues.Queues {
		if q.Name == "project:go" {
			require.InDelta(t, 7200, q.WaitObjective, 0)
		}
	}
	for _, wrong := range []string{"soon", "0s", "169h", "-1m", "1500ms"} {
		_, err = b.admin.ApplyQueues(t.Context(), apiclient.QueueConfig{Queues: []fairshare.QueueSetting{{Name: "project:go", WaitObjective: wrong}}})
		require.ErrorContains(t, err, "use whole seconds from 1s to 168h", wrong)
	}

	// Completed requests are timed as a whole; a narrowed list has none.
	require.NoError(t, b.store.CompleteRequest(t.Context(), second.request.ID, bench.Success, "", nil, "done"))
	b.past(t, `update benchmark_request set created_at = now() - interval '3 hours 30 seconds'`)
	w, err = b.nobody.WaitStats(t.Context(), apiclient.WaitQuery{})
	require.NoError(t, err)
	require.Len(t, w.EndToEnd, 1)
	require.Equal(t, []any{"go", bench.Release, 1}, []any{w.EndToEnd[0].Project, w.EndToEnd[0].Type, w.EndToEnd[0].Requests})
	require.InDelta(t, 3*time.Hour.Seconds(), w.EndToEnd[0].Median, 60)
	require.InDelta(t, time.Hour.Seconds(), *w.EndToEnd[0].Admission, 60)
	require.Contains(t, b.page(t, "", path).section("requests"), "3h00m")
	w, err = b.nobody.WaitStats(t.Context(), apiclient.WaitQuery{Pool: "main"})
	require.NoError(t, err)
	require.Empty(t, w.EndToEnd)
	require.Equal(t, 1, w.Total.Started)

	// Metrics told the start once, with the objective of that time.
	b.start(t, first, c, 1)
	counts := make(map[string]int64)
	for _, one := range scope.Snapshot().Counters() {
		if tags := one.Tags(); tags["pool"] != "" {
			require.Equal(t, []string{c.TaskQueue, "project:go"}, []string{tags["pool"], tags["queue"]})
			counts[one.Name()+" "+tags["within"]+tags["reason"]] = one.Value()
		}
	}
	require.Equal(t, int64(1), counts["job_starts no"])
	require.InDelta(t, 600, counts["job_blocked_seconds pause"], 30)
	require.Len(t, counts, 2)
}
