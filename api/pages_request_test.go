package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

func TestThePageOfARequestFollowsItsCourse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c1 := b.register(t, "c1")
	waiting, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Type: bench.Try, PR: 7})
	require.NoError(t, err)
	p := b.page(t, "", "/requests/"+string(waiting.ID))
	p.requireSound(t, "waiting")
	require.Contains(t, p.text(), "It waits for its artifacts")
	require.Contains(t, p.section("step-artifacts"), "Artifacts ◌ waiting")
	require.Contains(t, p.section("step-turn"), "planned")
	require.Contains(t, p.section("why"), "benchloom request artifacts-ready "+string(waiting.ID))
	require.Contains(t, p.section("jobs"), "It has no jobs yet")

	j := b.submit(t, "1.26.0")
	path := "/requests/" + string(j.request.ID)
	p = b.page(t, "", path)
	p.requireSound(t, "handed out")
	require.Contains(t, p.text(), "It is in progress, but none of its jobs runs: of 1 job, 0 done.")
	require.Contains(t, p.section("step-turn"), "done")
	require.Contains(t, p.section("step-own"), "waiting")
	require.Contains(t, p.section("j-"+string(j.key)), "handed out")
	require.Contains(t, p.links(), "http://127.0.0.1:8233/namespaces/benchloom/workflows/"+url.PathEscape(j.request.WorkflowID))

	plan := b.start(t, j, c1, 1)
	p = b.page(t, "", path)
	require.Contains(t, p.text(), "It is in progress: of 1 job, 1 running and 0 done.")
	require.Contains(t, p.section("lane-c1"), "c1")
	require.Contains(t, p.section("step-own"), "in progress")

	// A failure is told first, with its message and the way to its log.
	require.NoError(t, b.collector.FinishRun(t.Context(), plan.Run.ID, apiclient.RunFinish{
		Outcome: bench.RunFailure, Message: "exit status 3", OutputTail: "undefined: <main>",
	}))
	_, err = b.store.FinishJob(t.Context(), j.key, 0, "exit status 3")
	require.NoError(t, err)
	require.NoError(t, b.store.CompleteRequest(t.Context(), j.request.ID, bench.Failure, "", nil, "1 of 1 jobs failed"))
	p = b.page(t, "", "/requests/go:1.26.0")
	p.requireSound(t, "failed")
	require.Contains(t, p.text(), "It has ended with a failure: 1 of 1 jobs failed.")
	require.Less(t, strings.Index(p.body, `id="failures"`), strings.Index(p.body, `id="steps"`))
	require.Contains(t, p.section("failures"), "exit status 3")
	require.Contains(t, p.section("failures"), "undefined: <main>")
	require.Contains(t, p.links(), "/runs/"+string(plan.Run.ID))
	require.Contains(t, p.section("step-own"), "1 of 1 job failed")
}

// Filters and orders are links: the address says what is shown.
func TestJobsOfARequestAreFilteredAndSortedByAddress(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.register(t, "c1")
	r, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Jobs: []apiclient.NewJob{
		{Name: "beta", Command: apiclient.Command{Argv: []string{"true"}}}, {Name: "alpha", Command: apiclient.Command{Argv: []string{"true"}}},
	}})
	require.NoError(t, err)
	path := "/requests/" + string(r.ID)
	p := b.page(t, "", path)
	p.requireSound(t, path)
	require.Contains(t, p.links(), path+"?show=failure")
	require.Contains(t, p.links(), path+"?sort=name")
	names := func(p shownPage) (names []string) {
		p.each("tr", func(n *html.Node) {
			if strings.HasPrefix(attribute(n, "id"), "j-") {
				names = append(names, strings.Fields(textOf(n))[0])
			}
		})
		return names
	}
	require.Equal(t, []string{"alpha", "beta"}, names(b.page(t, "", path+"?sort=name")))
	down := b.page(t, "", path+"?sort=-name&show=all")
	require.Equal(t, []string{"beta", "alpha"}, names(down))
	require.Contains(t, down.links(), path+"?show=all&sort=name", "the other way, and the filter stays")
	down.each("th", func(n *html.Node) {
		if strings.HasPrefix(textOf(n), "Job") {
			require.Equal(t, "descending", attribute(n, "aria-sort"))
		}
	})
	require.Contains(t, b.page(t, "", path+"?show=failure").section("jobs"), "None of its jobs is in the state failure.")
	for query, why := range map[string]string{"?sort=colour": "the columns are status, name", "?show=lost": "it may be all, in_progress", "?page=x": "after is", "?order=1": "has no parameter"} {
		bad := b.page(t, "", path+query)
		require.GreaterOrEqual(t, bad.status, 400, query)
		require.Contains(t, bad.text(), why)
		bad.requireSound(t, query)
	}
}

func TestUnknownTagsComeWithTheNearest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	b.register(t, "c1")
	for _, tag := range []string{"1.25.0", "1.26.0"} {
		_, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Tag: tag})
		require.NoError(t, err)
	}
	p := b.page(t, "", "/requests/go:1.26")
	require.Equal(t, http.StatusNotFound, p.status)
	require.Contains(t, p.text(), "Did you mean")
	require.Contains(t, p.links(), "/requests/go:1.26.0")
	_, err := b.nobody.Request(t.Context(), "go:1.26")
	require.Contains(t, err.Error(), "nearest: go:1.26.0")
	require.NotContains(t, b.page(t, "", "/requests/go:entirely-else").text(), "Did you mean")
}

// Who may act gets a form, everybody else the command line; what was done is in the audit.
func TestActingOnARequest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c1 := b.register(t, "c1")
	j := b.submit(t, "1.26.0")
	id := string(j.request.ID)
	for _, role := range []string{"", api.RoleReader} {
		p := b.page(t, role, "/requests/"+id)
		require.Nil(t, p.fields("/requests/"+id+"/cancel"), role)
		require.Contains(t, p.text(), "benchloom request cancel "+id+" --reason WHY")
	}
	cookie := b.cookieOf(t, api.RoleWriter)
	sent := b.page(t, api.RoleWriter, "/requests/"+id).fields("/requests/" + id + "/cancel")
	require.NotEmpty(t, sent.Get("key"))
	sent.Set("reason", "wrong <date>")
	require.Equal(t, http.StatusForbidden, b.form(t, b.cookieOf(t, api.RoleReader), "/requests/"+id+"/cancel", sent).status)
	require.Equal(t, http.StatusForbidden, b.form(t, cookie, "/requests/"+id+"/cancel", sent, "Sec-Fetch-Site", "cross-site").status)
	require.Equal(t, http.StatusUnauthorized, b.form(t, "", "/requests/"+id+"/cancel", sent).status)
	for range 2 { // a form that is sent twice acts once
		done := b.form(t, cookie, "/requests/"+id+"/cancel", sent)
		require.Equal(t, http.StatusSeeOther, done.status, done.body)
		require.Equal(t, "/requests/"+id+"#audit", done.header.Get("Location"))
	}
	p := b.page(t, "", "/requests/"+id)
	require.Equal(t, 1, strings.Count(p.section("audit"), "wanda , request cancel, because “ wrong <date> ”"), p.section("audit"))
	again := b.form(t, cookie, "/requests/"+id+"/expire", url.Values{"reason": {"late"}})
	require.Equal(t, http.StatusConflict, again.status)
	require.Contains(t, again.body, "has ended with cancelled")

	// Measuring again shows first what that would be.
	old := b.measure(t, "1.25.0", 1, c1)
	past := "/requests/" + string(old.request.ID) + "/again"
	b.past(t, `update job_run set started_at = finished_at - interval '200 seconds' where outcome = 'success'`)
	p = b.page(t, api.RoleWriter, past)
	p.requireSound(t, past)
	require.Contains(t, p.section("preview"), "1 job, 2 test cases; about 3m20s of machine time, as it took last")
	require.Contains(t, p.section("preview"), string(old.key))
	require.Contains(t, b.page(t, "", past).text(), "benchloom retrigger "+string(old.request.ID)+" --select stage=own --downstream none --reason WHY")
	require.Contains(t, b.page(t, api.RoleWriter, past+"?benchmark=none").text(), "has no test cases of none")
	still, err := b.nobody.Request(t.Context(), string(old.request.ID))
	require.NoError(t, err)
	require.Equal(t, bench.Completed, still.Status, "a preview changes nothing")
	sent = p.fields(past)
	sent.Set("reason", "looks odd")
	require.Equal(t, http.StatusSeeOther, b.form(t, cookie, past, sent).status)
	p = b.page(t, "", "/requests/"+string(old.request.ID))
	require.Contains(t, p.section("audit"), "retrigger, because “ looks odd ”")
	require.NotContains(t, p.text(), "It has ended")
	require.Contains(t, b.page(t, api.RoleWriter, past).text(), "it has not ended")
}

// A portion of a graph is retriggered by a form, which shows first what that would be.
func TestAPortionIsRetriggeredByPage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	old := b.measure(t, "1.25.0", 1, b.register(t, "c1"))
	id := string(old.request.ID)
	set := b.page(t, "", "/graphs/"+id)
	require.Contains(t, set.links(), "/graphs/"+id+"/retrigger")
	one := "/graphs/" + id + "/retrigger?job=" + string(old.key)
	require.Contains(t, set.links(), one)

	path := "/graphs/" + id + "/retrigger"
	for _, empty := range []string{path, "/graphs/go:1.25.0/retrigger"} {
		p := b.page(t, api.RoleWriter, empty)
		p.requireSound(t, empty)
		require.Empty(t, p.section("preview"), "nothing was chosen yet")
		require.Nil(t, p.fields(path))
		require.Contains(t, p.text(), "Jobs that run again")
	}
	p := b.page(t, api.RoleWriter, one)
	p.requireSound(t, one)
	require.Contains(t, p.section("preview"), "1 job, 2 test cases")
	require.Contains(t, p.text(), "The portion of what needs it")
	require.Contains(t, p.text(), "benchloom retrigger "+id+" "+string(old.key)+" --reason WHY")
	chosen := path + "?kind=benchmark&stage=&state=success&benchmark=&downstream=none"
	p = b.page(t, api.RoleWriter, chosen)
	p.requireSound(t, chosen)
	require.Contains(t, p.text(), "benchloom retrigger "+id+" --select kind=benchmark,state=success --downstream none --reason WHY")
	for query, why := range map[string]string{
		"?state=failure": "no job of it that has ended matches state=failure", "?downstream=all": "nothing says which jobs run again", "?job=aaaaaaaaaaaaaaaa": "does not belong to it",
		"?state=lost": "no job in state “lost” can run again", "?benchmark=none": "matches benchmark=none",
	} {
		p := b.page(t, api.RoleWriter, path+query)
		p.requireSound(t, path+query)
		require.Contains(t, strings.NewReplacer(`"`, "“", "“", "“").Replace(p.text()), strings.ReplaceAll(why, "”", "“"), query)
		require.Nil(t, p.fields(path), "there is nothing to send")
	}
	require.Nil(t, b.page(t, api.RoleReader, one).fields(path), "readers may not")
	require.Contains(t, b.page(t, "", one).text(), "sign in")

	sent := b.page(t, api.RoleWriter, chosen).fields(path)
	sent.Set("reason", "a noisy machine")
	for range 2 { // a form that is sent twice acts once
		done := b.form(t, b.cookieOf(t, api.RoleWriter), path, sent)
		require.Equal(t, http.StatusSeeOther, done.status, done.body)
		require.Equal(t, "/graphs/"+id+"-2", done.header.Get("Location"))
	}
	require.Contains(t, b.page(t, "", "/graphs/"+id+"-2").text(), "in place of")
	require.Contains(t, b.page(t, "", "/requests/"+id).section("audit"), "retrigger, because “ a noisy machine ”")
}

// The same form runs jobs again as themselves.
func TestJobsAreRerunByPage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	old := b.measure(t, "1.25.0", 1, b.register(t, "c1"))
	id := string(old.request.ID)
	require.Contains(t, b.page(t, "", "/graphs/"+id).links(), "/graphs/"+id+"/retrigger?as=rerun")
	path := "/graphs/" + id + "/retrigger"
	require.Equal(t, http.StatusBadRequest, b.page(t, api.RoleWriter, path+"?times=0").status)
	chosen := path + "?as=rerun&times=2&job=" + string(old.key)
	p := b.page(t, api.RoleWriter, chosen)
	p.requireSound(t, chosen)
	require.Contains(t, p.section("preview"), "1 job, 2 test cases, 2 times each")
	require.Contains(t, p.text(), "benchloom rerun "+id+" "+string(old.key)+" --times 2 --reason WHY")
	require.Contains(t, p.text(), "get another run")
	sent := p.fields(path)
	sent.Set("reason", "a noisy machine")
	sent.Set("as", "twice")
	require.Equal(t, http.StatusBadRequest, b.form(t, b.cookieOf(t, api.RoleWriter), path, sent).status)
	sent.Set("as", "rerun")
	for range 2 {
		done := b.form(t, b.cookieOf(t, api.RoleWriter), path, sent)
		require.Equal(t, http.StatusSeeOther, done.status, done.body)
		require.Equal(t, "/graphs/"+id, done.header.Get("Location"))
	}
	require.Contains(t, b.page(t, "", "/graphs/"+id).section("jobs"), "passed 1 of 2")
	require.Contains(t, b.page(t, "", "/requests/"+id).section("audit"), "rerun, because “ a noisy machine ”")
}

func TestTheQueuesShowWhoseTurnItIs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	empty := b.page(t, "", "/queues")
	empty.requireSound(t, "/queues")
	require.Contains(t, empty.text(), "No project has requests that wait for their turn.")
	b.project(t)
	b.register(t, "c1")
	b.submit(t, "1.26.0")
	second, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Tag: "1.27.0"})
	require.NoError(t, err)
	p := b.page(t, "", "/queues")
	p.requireSound(t, "/queues")
	require.Contains(t, p.section("q-"+string(second.ID)), "1.27.0")
	require.Contains(t, p.section("q-"+string(second.ID)), "artifacts ready")
	require.Contains(t, p.section("shares"), "project:go")
	require.Contains(t, p.section("shares"), "100 %")
	require.Contains(t, b.page(t, "", "/queues?by=pool&sort=-waiting").section("shares"), "bench/x86_64-unknown-linux-gnu/2/main")
	require.Contains(t, b.page(t, "", "/queues?by=colour").text(), "it may be queue, user, host, pool")

	// A pause is seen wherever the project is.
	path := "/projects/go/queue"
	form := b.page(t, api.RoleAdmin, path).fields(path + "/pause")
	require.NotNil(t, form)
	require.Nil(t, b.page(t, api.RoleWriter, path).fields(path+"/pause"))
	admin := b.cookieOf(t, api.RoleAdmin)
	require.Contains(t, b.form(t, admin, path+"/pause", form).body, "this needs a reason")
	form.Set("reason", "the fan is dead")
	require.Equal(t, http.StatusSeeOther, b.form(t, admin, path+"/pause", form).status)
	for _, one := range []string{path, "/queues", "/projects/go"} {
		p := b.page(t, api.RoleAdmin, one)
		p.requireSound(t, one)
		require.Contains(t, p.text(), "the fan is dead", one)
	}
	require.Contains(t, b.page(t, "", "/audit?project=go").text(), "queue pause")
	require.Contains(t, b.page(t, "", "/audit?who=nobody").text(), "No operation is recorded that fits.")
	require.Equal(t, http.StatusSeeOther, b.form(t, admin, path+"/resume", b.page(t, api.RoleAdmin, path).fields(path+"/resume")).status)
	require.NotContains(t, b.page(t, "", path).text(), "the fan is dead")
}

func TestAProjectListsItsRequests(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	b.register(t, "c1")
	require.Contains(t, b.page(t, "", "/projects/go").text(), "It has no requests yet.")
	r, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Tag: "1.26.0"})
	require.NoError(t, err)
	p := b.page(t, "", "/projects/go")
	p.requireSound(t, "/projects/go")
	require.Contains(t, p.links(), "/requests/"+string(r.ID))
	require.Contains(t, p.links(), "/projects/go?show=completed")
	require.Contains(t, b.page(t, "", "/projects/go?show=completed").text(), "None of its requests is like that.")
	require.Contains(t, b.page(t, "", "/projects/go?show=done").text(), "it may be waiting_for_artifacts")
	missing := b.page(t, "", "/projects/rust")
	require.Equal(t, http.StatusNotFound, missing.status)
	require.Contains(t, missing.text(), "the projects are adhoc, go")
}
