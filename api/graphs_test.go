package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
	"github.com/benchloom/benchloom/internal/store"
)

// graphed lets a release have a job that fails and is retried: two graphs.
func (b *bundle) graphed(t *testing.T, tag string) (failed job, set apiclient.GraphDetail) {
	t.Helper()
	collector := b.register(t, "c1")
	failed = b.submit(t, tag)
	plan := b.start(t, failed, collector, 1)
	require.NoError(t, b.collector.FinishRun(t.Context(), plan.Run.ID, apiclient.RunFinish{Outcome: bench.RunFailure, Message: "exit status 3"}))
	_, err := b.store.FinishJob(t.Context(), failed.key, 0, "exit status 3")
	require.NoError(t, err)
	_, err = b.store.Reopen(t.Context(), failed.request.ID, store.ReopenOptions{Job: failed.key}, store.Act{Who: "ada"})
	require.NoError(t, err)
	set, err = b.reader.Graph(t.Context(), string(failed.request.ID))
	require.NoError(t, err)
	return failed, set
}

func TestAGraphSaysWhatBecameOfItsJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	failed, set := b.graphed(t, "1.26.0")
	id := string(failed.request.ID)
	require.Equal(t, []any{id, "go", "1.26.0", graph.Ready, 2, 1, 1}, []any{set.ID, set.Project, set.Tag, set.State, set.Jobs, set.Ran, set.Replaced})
	require.Equal(t, map[graph.Status]int{graph.Failure: 1, graph.Ready: 1}, set.States)
	require.Len(t, set.Graphs, 2)
	require.Equal(t, []any{id + "-1", bench.GraphOwn, "", graph.Failure}, []any{set.Graphs[0].ID, set.Graphs[0].Reason, set.Graphs[0].Follows, set.Graphs[0].State})
	require.Equal(t, []any{id + "-2", bench.GraphRetry, id + "-1", graph.Ready}, []any{set.Graphs[1].ID, set.Graphs[1].Reason, set.Graphs[1].Follows, set.Graphs[1].State})
	require.Len(t, set.Nodes, 2)
	require.Equal(t, []any{failed.key, graph.Failure, true, graph.KindBenchmark, id + "-1"}, []any{set.Nodes[0].Job, set.Nodes[0].State, set.Nodes[0].Replaced, set.Nodes[0].Kind, set.Nodes[0].Graph})
	require.Equal(t, failed.key, set.Nodes[1].Replaces)
	require.Contains(t, set.Nodes[0].Message, "exit status 3")

	one, err := b.reader.Graph(t.Context(), id+"-2")
	require.NoError(t, err)
	require.Equal(t, []any{id + "-2", graph.Ready, 1}, []any{one.ID, one.State, one.Jobs})
	require.Len(t, one.Nodes, 1)
	byTag, err := b.reader.Graph(t.Context(), "go:1.26.0")
	require.NoError(t, err)
	require.Equal(t, set.Nodes, byTag.Nodes)

	d, err := b.reader.Request(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, 2, d.Graphs)
}

func TestGraphsOfAProjectAreListed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	failed, _ := b.graphed(t, "1.26.0")
	later := b.submit(t, "1.27.0")
	list := func(q apiclient.GraphQuery) (ids []string, next string) {
		t.Helper()
		page, err := b.reader.Graphs(t.Context(), "go", q)
		require.NoError(t, err)
		for _, g := range page.Graphs {
			ids = append(ids, g.ID)
		}
		return ids, page.Next
	}
	first, again, other := string(failed.request.ID)+"-1", string(failed.request.ID)+"-2", string(later.request.ID)+"-1"
	all, next := list(apiclient.GraphQuery{})
	require.Equal(t, []string{other, again, first}, all)
	require.Empty(t, next)
	ran, _ := list(apiclient.GraphQuery{Ran: true})
	require.Equal(t, []string{first}, ran, "what has run")
	of, _ := list(apiclient.GraphQuery{Request: "go:1.27.0"})
	require.Equal(t, []string{other}, of)
	some, next := list(apiclient.GraphQuery{Limit: 2})
	require.Equal(t, []string{other, again}, some)
	rest, _ := list(apiclient.GraphQuery{Limit: 2, Cursor: next})
	require.Equal(t, []string{first}, rest)
}

func TestGraphsThatThereAreNot(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	failed, _ := b.graphed(t, "1.26.0")
	command, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"true"}}})
	require.NoError(t, err)
	for path, want := range map[string]string{
		"/graphs/" + string(command.ID):               "has no graph: it has no jobs yet, runs commands, or was made before graphs were recorded",
		"/graphs/" + string(command.ID) + "-1":        "has no graph",
		"/graphs/" + string(failed.request.ID) + "-3": "has no graph with the number 3",
		"/graphs/rabcdefghjk-1":                       "there is no request rabcdefghjk",
		"/graphs/go:9.9":                              "has no request for",
		"/projects/nothing/graphs":                    "nothing",
	} {
		r := b.send(t, "reader", http.MethodGet, "/api/v1"+path, "")
		require.Equal(t, http.StatusNotFound, r.status, path)
		require.Contains(t, r.body, want, path)
	}
	for _, path := range []string{"/graphs/x-1", "/graphs/" + string(failed.request.ID) + "-0", "/projects/go/graphs?cursor=x", "/projects/go/graphs?cursor=-1", "/projects/go/graphs?ran=perhaps", "/projects/go/graphs?limit=0"} {
		r := b.send(t, "reader", http.MethodGet, "/api/v1"+path, "")
		require.GreaterOrEqual(t, r.status, 400, path)
		require.Less(t, r.status, 500, path)
	}
}

func TestThePageOfGraphs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	failed, set := b.graphed(t, "1.26.0")
	id := string(failed.request.ID)
	require.Contains(t, b.sound(t, "/requests/"+id).links(), "/graphs/"+id)
	p := b.sound(t, "/graphs/"+id)
	require.Contains(t, p.text(), "Graphs of request "+id)
	require.Contains(t, p.text(), "2 jobs, 1 ready, 1 failure; 1 of them replaced by later ones")
	require.Contains(t, p.body, `<svg class="graph"`)
	for _, n := range set.Nodes {
		require.Contains(t, p.links(), "/jobs/"+string(n.Job))
		require.Contains(t, p.section("n-"+string(n.Job)), string(n.State))
	}
	require.Contains(t, p.section("g-"+id+"-2"), "retry")
	require.Contains(t, p.section("g-"+id+"-2"), id+"-1")
	require.Contains(t, p.section("n-"+string(failed.key)), "counts no longer")

	one := b.sound(t, "/graphs/"+id+"-1")
	require.Contains(t, one.links(), "/graphs/"+id, "the way to all of them")
	require.NotContains(t, one.text(), string(set.Nodes[1].Job))
	require.Contains(t, b.sound(t, "/graphs/go:1.26.0").text(), "Graphs of request "+id)
	some := b.sound(t, "/graphs/"+id+"?show=failure")
	require.Contains(t, some.section("jobs"), "1 job")
	require.Empty(t, some.section("n-"+string(set.Nodes[1].Job)))
	require.Contains(t, b.sound(t, "/graphs/"+id+"?show=running").text(), "No job is like this")
	require.Contains(t, b.sound(t, "/graphs/"+id+"?group=nothing").text(), "No job is like this")
	for _, bad := range []string{"?show=odd", "?page=x", "?page=-1", "?colour=red"} {
		require.Equal(t, http.StatusBadRequest, b.page(t, "", "/graphs/"+id+bad).status, bad)
	}
	require.Equal(t, http.StatusNotFound, b.page(t, "", "/graphs/"+id+"-9").status)
	require.Equal(t, http.StatusNotFound, b.page(t, "", "/graphs/rabcdefghjk").status)
}

// keys lists keys of jobs as JSON does.
func keys(n int) string {
	return strings.TrimSuffix(strings.Repeat(`"aaaaaaaaaaaaaaaa",`, n), ",")
}

// A retrigger is refused with what would be accepted.
func TestWhatCannotBeRetriggered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	failed, set := b.graphed(t, "1.26.0")
	id, retried := string(failed.request.ID), set.Nodes[1].Job
	command, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"true"}}})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		graph, body string
		status      int
		want        string
	}{
		"a command":                {string(command.ID), `{"select": "state=failure"}`, http.StatusNotFound, "has no graph"},
		"another number":           {id + "-3", `{}`, http.StatusNotFound, "has no graph with the number 3"},
		"nothing":                  {id, `{}`, http.StatusUnprocessableEntity, "nothing says which jobs run again; name jobs, select them, or name one graph of the set"},
		"a job that was replaced":  {id, `{"jobs": ["` + string(failed.key) + `"]}`, http.StatusConflict, "was replaced by " + string(retried) + "; name that one"},
		"a job that has not ended": {id, `{"jobs": ["` + string(retried) + `"]}`, http.StatusConflict, "has not ended, it is ready; wait for its end, or cancel its request first; 'benchloom graph show " + id + "' shows them"},
		"a strange job":            {id, `{"jobs": ["aaaaaaaaaaaaaaaa"]}`, http.StatusConflict, "job aaaaaaaaaaaaaaaa does not belong to it"},
		"nothing that matches":     {id, `{"select": "state=failure"}`, http.StatusUnprocessableEntity, "no job of it that has ended matches state=failure"},
		"a bad selector":           {id, `{"select": "size=9"}`, http.StatusUnprocessableEntity, `jobs have no field \"size\"; use kind, stage, state, target or benchmark`},
		"a bad downstream":         {id, `{"select": "state=failure", "downstream": "some"}`, http.StatusUnprocessableEntity, `downstream is \"some\"; use none, portion or all`},
		"a portion of nothing":     {id, `{"select": "state=failure", "downstream": "portion"}`, http.StatusUnprocessableEntity, "a portion needs the jobs whose dependents it selects"},
		"too many jobs":            {id, `{"jobs": [` + keys(10_001) + `]}`, http.StatusUnprocessableEntity, "expected array length \u003c= 10000"},
		"a million jobs":           {id, `{"jobs": [` + keys(1_000_000) + `]}`, http.StatusRequestEntityTooLarge, "body"},
		"a million times":          {id, `{"times": 1000000}`, http.StatusUnprocessableEntity, "expected number \u003c= 100"},
		"lacking, and selected":    {id, `{"lacking": true, "select": "stage=own"}`, http.StatusUnprocessableEntity, "of a whole request or of one named job"},
		"lacking, of one graph":    {id + "-1", `{"lacking": true}`, http.StatusUnprocessableEntity, "name no graph"},
		"lacking, several times":   {id, `{"lacking": true, "times": 2}`, http.StatusUnprocessableEntity, "neither times nor a budget"},
		"lacking, of several jobs": {id, `{"lacking": true, "jobs": ["` + string(failed.key) + `", "` + string(retried) + `"]}`, http.StatusUnprocessableEntity, "no further jobs"},
		"lacking, while open":      {id, `{"lacking": true}`, http.StatusConflict, "it has not ended"},
		"a whole open command":     {string(command.ID), `{"select": "stage=own"}`, http.StatusConflict, "it has not ended"},
		"another field":            {id, `{"often": 2}`, http.StatusUnprocessableEntity, "unexpected property"},
	} {
		r := b.send(t, "writer", http.MethodPost, "/api/v1/graphs/"+c.graph+"/retrigger", c.body)
		require.Equal(t, c.status, r.status, "%s: %s", name, r.body)
		require.Contains(t, r.body, c.want, name)
	}
}

// After the limit, a rerun is refused with the retrigger that does it.
func TestARerunAfterTheLimitNamesTheRetrigger(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	failed, set := b.graphed(t, "1.26.0")
	id, retried := string(failed.request.ID), set.Nodes[1].Job
	_, err := b.store.CancelJob(t.Context(), retried, 0, "cancelled")
	require.NoError(t, err)
	b.past(t, `update graph_node set skipped = '{"code": "limit-passed", "node": "x"}' where job_id = (select id from job_queue where key = '`+string(retried)+`')`)
	r := b.send(t, "writer", http.MethodPost, "/api/v1/graphs/"+id+"/rerun", `{"jobs": ["`+string(retried)+`"]}`)
	require.Equal(t, http.StatusConflict, r.status, r.body)
	require.Contains(t, r.body, "too-late")
	require.Contains(t, r.body, "was skipped, because x did not succeed within the time limit; a rerun comes too late, only a new job can have its place: "+
		"'benchloom retrigger "+id+" "+string(retried)+" --downstream none'")
	done, err := b.writer.Retrigger(t.Context(), id, apiclient.Retrigger{Jobs: []bench.JobKey{retried}, Downstream: "none"}, false)
	require.NoError(t, err)
	require.Equal(t, 1, done.Operation.Jobs)
}

// A rerun is previewed, acts once for a key, and shows how often the job has passed.
func TestARerunByTheAPI(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	j := b.measure(t, "1.26.0", 1, c)
	id := string(j.request.ID)
	in := apiclient.Retrigger{Act: apiclient.Act{Reason: "a noisy machine", IdempotencyKey: "k"}, Jobs: []bench.JobKey{j.key}}
	preview, err := b.writer.Rerun(t.Context(), id, in, true)
	require.NoError(t, err)
	require.Equal(t, j.key, preview.Operation.Preview.Jobs[0].Job)
	for again := range 2 {
		done, err := b.writer.Rerun(t.Context(), id, in, false)
		require.NoError(t, err)
		require.Equal(t, again == 1, done.Operation.Repeated)
		require.Equal(t, []any{"rerun", 1, ""}, []any{done.Operation.Action, done.Operation.Jobs, done.Operation.Graph})
	}
	set, err := b.reader.Graph(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, set.Graphs, 1)
	require.Equal(t, []any{j.key, 1, 1, graph.Ready}, []any{set.Nodes[0].Job, set.Nodes[0].Reruns, set.Nodes[0].Passed, set.Nodes[0].State})
	p := b.page(t, "", "/graphs/"+id)
	p.requireSound(t, "/graphs/"+id)
	require.Contains(t, p.section("jobs"), "passed 1 of 2")
	_, err = b.writer.Rerun(t.Context(), id, apiclient.Retrigger{Jobs: []bench.JobKey{j.key}}, false)
	require.ErrorContains(t, err, "has not ended, it is ready")

	// A call that would take more than it allows changes nothing.
	other := b.measure(t, "1.25.0", 1, c)
	in = apiclient.Retrigger{Jobs: []bench.JobKey{other.key}, Times: 100, Budget: 1e-9}
	for _, call := range []func(context.Context, string, apiclient.Retrigger, bool) (apiclient.RequestOperation, error){b.writer.Rerun, b.writer.Retrigger} {
		_, err = call(t.Context(), string(other.request.ID), in, false)
		require.ErrorContains(t, err, "of machine time, as it took last, and the call allows 1ns; choose less, or allow more")
	}
	in.Budget = 1e6
	done, err := b.writer.Rerun(t.Context(), string(other.request.ID), in, true)
	require.NoError(t, err)
	require.Equal(t, "1 job, 2 test cases, 100 times each", done.Operation.Message)
	_, err = b.reader.Rerun(t.Context(), id, in, true)
	require.Error(t, err, "readers may not")
}

// A preview names what would run again and its cost; the call does it once for each key.
func TestARetriggerByTheAPI(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	j := b.measure(t, "1.26.0", 1, b.register(t, "c1"))
	id := string(j.request.ID)
	in := apiclient.Retrigger{Act: apiclient.Act{Reason: "a noisy machine", IdempotencyKey: "k"}, Select: "kind=benchmark"}
	preview, err := b.writer.Retrigger(t.Context(), id, in, true)
	require.NoError(t, err)
	require.True(t, preview.Operation.DryRun)
	require.Len(t, preview.Operation.Preview.Jobs, 1)
	require.Equal(t, j.key, preview.Operation.Preview.Jobs[0].Job)
	require.Equal(t, bench.Completed, preview.Status)

	for again := range 2 {
		done, err := b.writer.Retrigger(t.Context(), id, in, false)
		require.NoError(t, err)
		require.Equal(t, again == 1, done.Operation.Repeated)
		require.Equal(t, id+"-2", done.Operation.Graph)
		require.NotEqual(t, bench.Completed, done.Status)
	}
	set, err := b.reader.Graph(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, set.Graphs, 2)
	require.Equal(t, []any{bench.GraphRetrigger, id + "-1"}, []any{set.Graphs[1].Reason, set.Graphs[1].Follows})
	in.Select = "stage=own"
	_, err = b.writer.Retrigger(t.Context(), id, in, false)
	require.ErrorContains(t, err, "was used for 'retrigger")
	_, err = b.reader.Retrigger(t.Context(), id, in, true)
	require.Error(t, err, "readers may not")
}
