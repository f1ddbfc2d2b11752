package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/stats/noise"
	"github.com/benchloom/benchloom/internal/store"
)

// sound opens a page that must be there and whole.
func (b *bundle) sound(t testing.TB, path string) shownPage {
	t.Helper()
	p := b.page(t, "", path)
	require.Equal(t, http.StatusOK, p.status, p.text())
	p.requireSound(t, path)
	return p
}

func TestThePageOfCollectors(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.Contains(t, b.sound(t, "/collectors").text(), "No collector is registered, so that nothing can run. One on this machine comes with benchloom up")

	b.project(t)
	b.register(t, "c1")
	b.registerAs(t, "c2", func(r *apiclient.Registration) { r.Version, r.HardwareID, r.Unenforced = "v0.2.0", "cpu9", nil })
	b.registerAs(t, "big", func(r *apiclient.Registration) { r.SizeClass = 8 })
	b.past(t, `update collector_config set set_aside_at = now() - interval '2 hours', active = false, disturbed_by = 'its last 3 runs were disturbed' where name = 'c2'`)
	b.past(t, `update collector_config set last_heartbeat = now() - interval '3 hours' where name = 'big'`)
	p := b.sound(t, "/collectors")
	require.Equal(t, []string{"Pool main of size class 2 x86_64-unknown-linux-gnu", "Pool main of size class 8 x86_64-unknown-linux-gnu"}, p.texts("h2"))
	require.Contains(t, p.section("s-x86_64-unknown-linux-gnu/2/main"), "2 collectors, 1 live. They differ in their hardware ( cpu0, cpu9 )")
	require.Contains(t, p.section("s-x86_64-unknown-linux-gnu/8/main"), "Nothing can run here")
	require.Contains(t, p.section("c-c1"), "waiting")
	require.Contains(t, p.section("c-c1"), "no limit of memory")
	require.Contains(t, p.section("c-c2"), "set aside for 2h00m")
	require.Contains(t, p.section("c-big"), "offline for 3h00m")

	// Filters and sorting are links; the state is the address.
	only := b.sound(t, "/collectors?only=set+aside")
	require.Empty(t, only.section("c-c1"))
	require.Contains(t, only.section("c-c2"), "v0.2.0")
	require.Contains(t, p.links(), "/collectors?only=set+aside")
	require.Contains(t, p.links(), "/collectors?sort=use")
	sorted := b.sound(t, "/collectors?sort=-name&q=C")
	require.Less(t, strings.Index(sorted.body, `id="c-c2"`), strings.Index(sorted.body, `id="c-c1"`))
	require.Empty(t, sorted.section("c-big"), "the pool and the target have no c")
	require.Equal(t, "-name", sorted.fields("/collectors").Get("sort"), "another search keeps the order")
	require.Contains(t, b.sound(t, "/collectors?q=nothing").text(), "No collector is like this")
	for _, wrong := range []string{"only=busy", "sort=colour", "page=2", "page=x", "state=offline"} {
		require.Equal(t, http.StatusBadRequest, b.page(t, "", "/collectors?"+wrong).status, wrong)
	}
}

func TestThePageOfACollector(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	fresh := b.sound(t, "/collectors/c1")
	require.Contains(t, fresh.text(), "It has had no run yet")
	require.Contains(t, fresh.section("s-noise"), "Nothing is known of the noise yet")
	require.Contains(t, fresh.section("s-machine"), "memory no cgroup")
	require.Contains(t, fresh.section("s-machine"), "cpu some")

	j := b.measure(t, "1.26.0", 3, c)
	b.past(t, `update job_run set started_at = now() - interval '6 hours', finished_at = now() - interval '5 hours', outcome = 'lost', message = 'its collector died'`)
	model := func(collector string, within float64) store.SeriesNoise {
		return store.SeriesNoise{
			TestCase: j.cases[0], Metric: bench.WallTime, Collector: collector, Surrounding: bench.Surrounding{SizeClass: 2, HardwareID: "cpu0"},
			Model: noise.Model{Sessions: 9, Logarithms: true, Level: 3, SigmaWithin: within, SigmaSession: 0.02},
		}
	}
	require.NoError(t, b.store.PutNoise(t.Context(), "go", []store.SeriesNoise{model("", 0.01), model("c1", 0.025)}))
	p := b.sound(t, "/collectors/c1")
	require.Contains(t, p.section("s-use"), "4 % of the time with a run under way, 1 run, 1 lost")
	require.Contains(t, p.section("s-use"), "lost 1 1h00m")
	require.Contains(t, p.section("s-noise"), "2.50 × the spread within a session")
	require.Contains(t, p.section("s-noise"), "2.5 % 1 % 2.50 ×")
	require.Contains(t, p.section("s-runs"), "its collector died")
	require.Contains(t, p.links(), "/runs/"+string(bench.NewRunID(j.key, "workflow", "activity", 1)))
	require.NotContains(t, b.sound(t, "/collectors/c1?only=success").section("s-runs"), "its collector died")
	require.Equal(t, http.StatusNotFound, b.page(t, "", "/collectors/c9").status)
	require.Equal(t, http.StatusBadRequest, b.page(t, "", "/collectors/c1?only=odd").status)
	require.Equal(t, http.StatusBadRequest, b.page(t, "", "/collectors/c1?open=odd").status)
}

func TestACollectorIsDrainedAndActivatedOnItsPage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	b.register(t, "c1")
	stranger := b.sound(t, "/collectors/c1")
	require.Nil(t, stranger.fields("/collectors/c1/drain"))
	require.Contains(t, stranger.section("act-drain"), "This needs a token with the role admin; sign in with one. On the command line: benchloom collector drain c1 --reason WHY")
	require.Contains(t, b.page(t, api.RoleWriter, "/collectors/c1").section("act-drain"), "your token has the role writer")

	cookie := b.cookieOf(t, api.RoleAdmin)
	form := b.page(t, api.RoleAdmin, "/collectors/c1").fields("/collectors/c1/drain")
	require.NotNil(t, form)
	form.Set("reason", "its disk is replaced")
	r := b.form(t, cookie, "/collectors/c1/drain", form)
	require.Equal(t, http.StatusSeeOther, r.status, r.body)
	require.Equal(t, "/collectors/c1", r.header.Get("Location"))
	require.Contains(t, b.sound(t, "/collectors/c1").text(), "inactive")
	require.Contains(t, b.sound(t, "/audit?subject=c1").text(), "its disk is replaced")
	require.Equal(t, http.StatusSeeOther, b.form(t, cookie, "/collectors/c1/activate", url.Values{}).status)
	require.Contains(t, b.sound(t, "/collectors/c1").text(), "waiting")
	require.Equal(t, http.StatusForbidden, b.form(t, b.cookieOf(t, api.RoleWriter), "/collectors/c1/drain", form).status)
	require.Equal(t, http.StatusNotFound, b.form(t, cookie, "/collectors/c9/drain", form).status)
}

func TestThePagesOfSizeClasses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.Contains(t, b.sound(t, "/sizeclasses").text(), "Nothing was learned yet")
	b.project(t)
	b.register(t, "c1")
	const shape = "shapeshapeshapes"
	b.past(t, `insert into size_statistics (project, shape, version, about, statistics) values ('go', '`+shape+`', 3,
		'{"target": "x86_64-unknown-linux-gnu", "command": ["./sort", "--large"]}', '{"format": 1, "runs": 4, "since": 0, "spent": {"total_core_seconds": 12, "probe_core_seconds": 2},
		"counts": {"probes": 1, "too_small": 0, "skipped_in_flight": 0, "skipped_budget": 0, "forgotten": 0},
		"classes": [{"class": 1, "tried": 2, "samples": [{"outcome": "timed_out", "duration_ns": 3000000000, "at": "2026-03-01T12:00:00Z"}]},
			{"class": 2, "tried": 2, "samples": [{"outcome": "succeeded", "duration_ns": 2000000000, "at": "2026-03-01T12:00:00Z", "peak_memory": 2097152}]}]}')`)
	list := b.sound(t, "/sizeclasses")
	require.Contains(t, list.text(), "./sort --large on x86_64-unknown-linux-gnu")
	require.Contains(t, list.links(), "/sizeclasses/"+shape+"?only=go")
	found := b.sound(t, "/sizeclasses?only=go&q=SORT&sort=runs")
	require.Contains(t, found.text(), "1 shape")
	require.Equal(t, "runs", found.fields("/sizeclasses").Get("sort"), "another search keeps the order")
	require.Contains(t, b.sound(t, "/sizeclasses?q=nothing").text(), "No shape is like this")
	require.Equal(t, http.StatusBadRequest, b.page(t, "", "/sizeclasses?only=rustc").status)

	p := b.sound(t, "/sizeclasses/"+shape+"?only=go")
	require.Contains(t, p.text(), "The next run goes to class 2")
	require.Contains(t, p.text(), "12.0, 2.0 of them for probes")
	require.Contains(t, p.section("s-class-1"), "no collector of it is registered")
	require.Contains(t, p.section("s-class-1"), "✗ timed out 3s")
	require.Contains(t, p.section("s-class-2"), "✓ succeeded 2s")
	require.Contains(t, p.section("s-class-2"), "2 MiB")
	require.Contains(t, p.section("s-class-2"), "good enough")
	require.Equal(t, http.StatusNotFound, b.page(t, "", "/sizeclasses/none").status)
}

func TestThePagesOfAJobAndItsRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	j := b.submit(t, "1.26.0")
	waiting := b.sound(t, "/jobs/"+string(j.key))
	require.Contains(t, waiting.text(), "it waits:")
	require.NotContains(t, waiting.body, `aria-current="page"`, "it is in no area of the navigation")
	require.Contains(t, waiting.section("s-attempts"), "No attempt has begun")
	require.Contains(t, waiting.section("s-queue"), "project:go")
	require.Contains(t, waiting.section("v-c1"), "waiting yes")
	require.Contains(t, waiting.links(), "/requests/"+string(j.request.ID))
	detail, err := b.nobody.Job(t.Context(), j.key)
	require.NoError(t, err)
	require.Contains(t, waiting.links(), "http://127.0.0.1:8233/namespaces/benchloom/workflows/"+url.PathEscape(detail.WorkflowID))

	plan := b.start(t, j, c, 1)
	run := "/runs/" + string(plan.Run.ID)
	require.Contains(t, b.sound(t, "/jobs/"+string(j.key)).text(), "is under way on collector c1")
	started := b.sound(t, run)
	require.Contains(t, started.section("s-log"), "Nothing was printed yet")
	require.Contains(t, started.section("s-values"), "Nothing is stored yet")

	var log strings.Builder
	for i := range 1200 {
		fmt.Fprintf(&log, "line %d\n", i+1)
	}
	log.WriteString("<script>alert(1)</script>\x1b[2J \u202egnp.exe")
	_, err = b.collector.AppendLog(t.Context(), plan.Run.ID, 0, []byte(log.String()))
	require.NoError(t, err)
	failed := block(j.cases[:1], 3)
	failed.Errors = []apiclient.BlockError{{TestCase: &j.cases[1], Kind: bench.FailJob, Message: "it printed nothing"}}
	_, err = b.collector.UploadBlock(t.Context(), plan.Run.ID, 1, failed)
	require.NoError(t, err)
	require.NoError(t, b.collector.FinishRun(t.Context(), plan.Run.ID, apiclient.RunFinish{Outcome: bench.RunFailure, Message: "a test case has failed", OutputTail: "the tail"}))

	p := b.sound(t, run)
	require.Less(t, strings.Index(p.body, `id="s-errors"`), strings.Index(p.body, `id="s-log"`), "failures first")
	require.Contains(t, p.section("s-errors"), "it printed nothing")
	require.Contains(t, p.section("L1201"), `<script>alert(1)</script>\x1b[2J \u202egnp.exe`)
	require.NotContains(t, p.body, "<script>alert")
	require.Empty(t, p.section("L1000"), "the end of the log")
	require.Contains(t, p.links(), run+"?line=1001#L1001", "each line has an address")
	require.Contains(t, p.links(), run+"?line=1000#L1000", "and there is a way to the lines before")
	middle := b.sound(t, run+"?line=700")
	require.Equal(t, "700 line 700", middle.section("L700"))
	require.Equal(t, "line 700", middle.section("asked"))
	require.Equal(t, 499, strings.Count(middle.body, `tabindex="-1"`), "Tab stops at the line that was asked for only")
	require.NotNil(t, middle.fields(run+"#asked"), "the others are asked for by number")
	require.NotEmpty(t, middle.section("L1000"))
	require.Empty(t, middle.section("L1001"))
	require.Contains(t, p.section("s-values"), "wall-time 3.006 s 3.000 s 3.012 s 5")
	require.Contains(t, p.section("s-facts"), "cpu some")
	require.Contains(t, b.sound(t, "/jobs/"+string(j.key)).section("s-attempts"), "the tail")
	_, err = b.store.FinishJob(t.Context(), j.key, 0, "a test case has failed")
	require.NoError(t, err)
	form := b.page(t, api.RoleWriter, "/jobs/"+string(j.key)).fields("/jobs/" + string(j.key) + "/retry")
	require.NotNil(t, form, "a job that has failed can be retried")
	form.Set("reason", "the disk was full")
	retried := b.form(t, b.cookieOf(t, api.RoleWriter), "/jobs/"+string(j.key)+"/retry", form)
	require.Equal(t, http.StatusSeeOther, retried.status)
	shown, _, _ := strings.Cut(retried.header.Get("Location"), "#audit")
	require.Contains(t, b.sound(t, shown).section("audit"), "retrigger "+string(j.key)+" , because “ the disk was full ”")
	require.Contains(t, b.sound(t, "/audit").links(), "/jobs/"+string(j.key))

	for path, status := range map[string]int{
		run + "?line=0": http.StatusBadRequest, run + "?line=x": http.StatusBadRequest, run + "?page=x": http.StatusUnprocessableEntity,
		"/runs/none": http.StatusUnprocessableEntity, "/jobs/none": http.StatusUnprocessableEntity, "/jobs/" + string(j.key) + "?open=odd": http.StatusBadRequest,
		"/runs/" + string(bench.NewRunID(j.key, "workflow", "activity", 9)): http.StatusNotFound,
	} {
		require.Equal(t, status, b.page(t, api.RoleReader, path).status, path)
	}
}

func TestThePageOfHelp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.sound(t, "/help")
	require.Contains(t, p.text(), "Size class A positive integer")
	require.Contains(t, p.section("keys"), "Keys")
	found := map[string]bool{}
	for _, term := range b.sound(t, "/help?q=escalat").texts("dt") {
		found[term] = true
	}
	require.True(t, found["Escalation"])
	require.Less(t, len(found), 10)
	require.Contains(t, b.sound(t, "/help?q=xyzzy").text(), "No word is like this")
}
