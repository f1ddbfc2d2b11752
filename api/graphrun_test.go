package api_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/store"
)

// asked is a template with a question and what follows the answer.
const asked = `description: Ask and tell.
parameters:
  tag: {type: string, example: v1}
  accounts: {type: list, default: []}
nodes:
  - {name: agree, sign-off: {question: "Publish ${tag}?", limit: 1h, accounts: ["${accounts}"]}}
  - {name: tell, needs: agree, notify: {tag: "${tag}"}}
`

// pushed gives the project go a template nightly.
func (b *bundle) pushed(t testing.TB, template string) {
	t.Helper()
	_, err := b.writer.PushDefinitions(t.Context(), "go", apiclient.DefinitionsPush{Files: map[string]string{"graphs/nightly.yaml": template}}, false)
	require.NoError(t, err)
}

// graph runs the template asked with parameters, and writes its nodes.
func (b *bundle) graph(t testing.TB, parameters ...string) bench.RequestID {
	t.Helper()
	b.pushed(t, asked)
	started, err := b.writer.RunGraph(t.Context(), "go", apiclient.GraphCall{Template: "nightly", Parameters: parameters}, false)
	require.NoError(t, err)
	b.written(t, started.Request.ID)
	return started.Request.ID
}

// written writes the nodes of a graph that needs no machine, as its workflow does.
func (b *bundle) written(t testing.TB, id bench.RequestID) {
	t.Helper()
	g, err := b.store.GraphDefinition(t.Context(), id)
	require.NoError(t, err)
	of := store.TemplateGraph{Edges: g.Edges()}
	for _, n := range g.Nodes() {
		of.Nodes = append(of.Nodes, store.TemplateNode{Node: n, Key: plan.ServiceKey(id, n, 0)})
	}
	require.NoError(t, b.store.ExpandRequest(t.Context(), id, store.Expansion{Stage: bench.StageOwn, Template: &of}))
}

func TestGraphsOfTemplatesAreRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	b.register(t, "c1")
	b.pushed(t, definedNightly)
	in := apiclient.GraphCall{Template: "nightly", Parameters: []string{"tag=v2"}, Act: apiclient.Act{IdempotencyKey: "tonight", Reason: "a try"}}

	dry, err := b.writer.RunGraph(t.Context(), "go", in, true)
	require.NoError(t, err)
	require.Nil(t, dry.Request)
	require.Equal(t, []any{2, 1, true}, []any{dry.Nodes, dry.Edges, dry.DryRun})
	require.Empty(t, b.workflows.started)

	started, err := b.writer.RunGraph(t.Context(), "go", in, false)
	require.NoError(t, err)
	r := started.Request
	require.True(t, r.Created)
	require.Equal(t, dry.GraphHash, started.GraphHash)
	require.Equal(t, string(r.ID)+"-1", started.Graph)
	require.Equal(t, []any{"nightly", started.GraphHash, "v2", "main", bench.InProgress}, []any{r.Template.Name, r.Template.Graph, r.Template.Parameters["tag"], r.Branch, r.Status})
	require.Equal(t, []bench.RequestID{r.ID}, b.workflows.started)
	again, err := b.writer.RunGraph(t.Context(), "go", in, false)
	require.NoError(t, err)
	require.Equal(t, []any{r.ID, false}, []any{again.Request.ID, again.Request.Created})
	shown, err := b.reader.Request(t.Context(), string(r.ID))
	require.NoError(t, err)
	require.Equal(t, r.Template, shown.Template)

	for why, refused := range map[string]struct {
		change func(*apiclient.GraphCall)
		status int
		says   string
	}{
		"another graph with the key": {func(c *apiclient.GraphCall) { c.Parameters = []string{"tag=v3"} }, http.StatusConflict, "request " + string(r.ID) + " for the idempotency key"},
		"no such template":           {func(c *apiclient.GraphCall) { c.Template, c.IdempotencyKey = "weekly", "" }, http.StatusUnprocessableEntity, "weekly"},
		"no such definitions":        {func(c *apiclient.GraphCall) { c.Definitions, c.IdempotencyKey = "0123456789", "" }, http.StatusNotFound, "was not given the definitions"},
		"an unknown parameter":       {func(c *apiclient.GraphCall) { c.Parameters, c.IdempotencyKey = []string{"tag=v2", "colour=red"}, "" }, http.StatusUnprocessableEntity, "colour"},
		"a parameter is missing":     {func(c *apiclient.GraphCall) { c.Parameters, c.IdempotencyKey = nil, "" }, http.StatusUnprocessableEntity, "tag"},
		"no collector": {func(c *apiclient.GraphCall) {
			c.Parameters, c.IdempotencyKey = []string{"tag=v2", "targets=riscv64gc-unknown-linux-gnu"}, ""
		}, http.StatusUnprocessableEntity, "node measure-riscv64gc-unknown-linux-gnu"},
		"another's queue": {func(c *apiclient.GraphCall) { c.Queue, c.IdempotencyKey = "user:somebody", "" }, http.StatusUnprocessableEntity, "belongs to another account"},
	} {
		call := in
		refused.change(&call)
		_, err := b.writer.RunGraph(t.Context(), "go", call, false)
		var problem *apiclient.Problem
		require.ErrorAs(t, err, &problem, why)
		require.Equal(t, refused.status, problem.Status, "%s: %s", why, problem.Detail)
		require.Contains(t, problem.Detail, refused.says, why)
	}
}

func TestASignOffIsAnsweredByTheAPI(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	id := string(b.graph(t, "tag=v2"))
	detail, err := b.reader.Graph(t.Context(), id)
	require.NoError(t, err)
	ask := detail.Nodes[0]
	require.Equal(t, []any{"agree", graph.KindSignOff, graph.Ready, true, "Publish v2?"}, []any{ask.Name, ask.Kind, ask.State, ask.Service, ask.Question})
	require.WithinDuration(t, time.Now().Add(time.Hour), *ask.Until, time.Minute)

	_, err = b.writer.SignOff(t.Context(), id, apiclient.SignOff{Node: "tell", Agree: true})
	require.ErrorContains(t, err, `the graph has no sign-off "tell"; it has agree`)
	done, err := b.writer.SignOff(t.Context(), id+"-1", apiclient.SignOff{Agree: true, Act: apiclient.Act{Reason: "fine"}})
	require.NoError(t, err)
	require.Equal(t, []any{"graph sign-off", "agreed by wanda: fine", true}, []any{done.Action, done.Message, done.Changed})
	require.Equal(t, []string{id + " " + string(ask.Job) + " success"}, b.workflows.ended)
	done, err = b.writer.SignOff(t.Context(), id, apiclient.SignOff{Node: string(ask.Job), Agree: true})
	require.NoError(t, err)
	require.False(t, done.Changed)
	_, err = b.writer.SignOff(t.Context(), id, apiclient.SignOff{Node: "agree"})
	require.ErrorContains(t, err, "has ended: agreed by wanda: fine")
	_, err = b.writer.SignOff(t.Context(), id, apiclient.SignOff{})
	require.ErrorContains(t, err, "0 sign-offs of the graph wait for an answer")

	// Only those who are asked may answer.
	other := string(b.graph(t, "tag=v3", "accounts=grace,linus"))
	_, err = b.writer.SignOff(t.Context(), other, apiclient.SignOff{Agree: true})
	var problem *apiclient.Problem
	require.ErrorAs(t, err, &problem)
	require.Equal(t, http.StatusForbidden, problem.Status)
	require.Contains(t, problem.Detail, "asks grace, linus, not wanda")

	// The page asks as well.
	page := b.sound(t, "/graphs/"+other)
	require.Contains(t, page.body, "Publish v3?")
	require.Contains(t, page.body, "Asked: ")
}

// A graph may differ from its template where the branch allows it, and says how.
func TestGraphsAreCustomisedWhereTheBranchAllowsIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	_, err := b.writer.PushDefinitions(t.Context(), "go", apiclient.DefinitionsPush{Files: map[string]string{
		"branches.yaml": "branches:\n  main: {protected: true}\n  closed: {customise: false}\n  try: {}\n", "graphs/nightly.yaml": asked,
	}}, false)
	require.NoError(t, err)
	in := apiclient.GraphCall{Template: "nightly", Branch: "try", Parameters: []string{"tag=v2"}, Act: apiclient.Act{Reason: "a try"}, Changes: []apiclient.NodeChange{
		{Node: "agree", Set: map[string]any{"question": "Really?"}}, {Node: "tell", Remove: true},
	}}
	plain := in
	plain.Changes = nil
	first, err := b.writer.RunGraph(t.Context(), "go", plain, false)
	require.NoError(t, err)
	changed, err := b.writer.RunGraph(t.Context(), "go", in, false)
	require.NoError(t, err)
	words := []string{"tell is gone", `agree: question was "Publish v2?", is "Really?"`}
	require.Equal(t, words, changed.Customised)
	require.Equal(t, words, changed.Request.Template.Customised)
	require.NotEqual(t, first.GraphHash, changed.GraphHash)
	require.Equal(t, 1, changed.Nodes)

	for branch, says := range map[string]string{"main": "the branch main is protected: nobody changes its graphs", "closed": "does not allow graphs that differ"} {
		for _, who := range []*apiclient.Client{b.writer, b.admin} {
			call := in
			call.Branch = branch
			_, err := who.RunGraph(t.Context(), "go", call, false)
			var problem *apiclient.Problem
			require.ErrorAs(t, err, &problem)
			require.Equal(t, http.StatusForbidden, problem.Status)
			require.Contains(t, problem.Detail, says)
			call.Changes = nil
			_, err = who.RunGraph(t.Context(), "go", call, true)
			require.NoError(t, err, "a plain run stays possible")
		}
	}
	call := in
	call.Changes = []apiclient.NodeChange{{Node: "agree", Set: map[string]any{"colour": "red"}}}
	_, err = b.writer.RunGraph(t.Context(), "go", call, false)
	require.ErrorContains(t, err, "unknown field")

	// The list, the graph and the audit tell what was changed by hand.
	b.written(t, first.Request.ID)
	b.written(t, changed.Request.ID)
	list, err := b.reader.Graphs(t.Context(), "go", apiclient.GraphQuery{Customised: true})
	require.NoError(t, err)
	require.Len(t, list.Graphs, 1)
	require.Equal(t, []any{changed.Graph, "nightly", true}, []any{list.Graphs[0].ID, list.Graphs[0].Template, list.Graphs[0].Customised})
	detail, err := b.reader.Graph(t.Context(), changed.Graph)
	require.NoError(t, err)
	require.Equal(t, words, detail.Template.Customised)
	require.Contains(t, b.sound(t, "/graphs/"+changed.Graph).text(), `agree: question was "Publish v2?", is "Really?"`)
	audit, err := b.admin.Audit(t.Context(), apiclient.AuditQuery{Project: "go", Limit: 10})
	require.NoError(t, err)
	require.Contains(t, audit.Operations[0].Message, "customised: tell is gone; agree: question was")
}

// A clone is a graph of its own, of the template or as it was customised.
func TestAGraphIsCloned(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	b.register(t, "c1")
	b.pushed(t, asked)
	in := apiclient.GraphCall{Template: "nightly", Branch: "try", Parameters: []string{"tag=v2"}, Changes: []apiclient.NodeChange{{Node: "tell", Remove: true}}, Act: apiclient.Act{IdempotencyKey: "once"}}
	started, err := b.writer.RunGraph(t.Context(), "go", in, false)
	require.NoError(t, err)
	b.pushed(t, "description: Another.\n"+asked[len("description: Ask and tell.\n"):]) // the newest does not count for a clone

	_, err = b.writer.CloneGraph(t.Context(), started.Graph, apiclient.GraphClone{}, false)
	require.ErrorContains(t, err, "was customised; say whether the clone is made from the template or from the graph")
	same, err := b.writer.CloneGraph(t.Context(), started.Graph, apiclient.GraphClone{From: apiclient.CloneGraph}, false)
	require.NoError(t, err)
	require.Equal(t, started.GraphHash, same.GraphHash)
	require.NotEqual(t, started.Request.ID, same.Request.ID)
	require.Equal(t, []any{started.Graph, []string{"tell is gone"}, started.Request.Template.Definitions}, []any{same.Request.Template.ClonedFrom, same.Request.Template.Customised, same.Request.Template.Definitions})
	of, err := b.writer.CloneGraph(t.Context(), started.Graph, apiclient.GraphClone{From: apiclient.CloneTemplate, Parameters: []string{"tag=v3"}}, false)
	require.NoError(t, err)
	require.Equal(t, []any{2, []string{"tag=v3"}, []string(nil)}, []any{of.Nodes, of.Request.Template.Given, of.Request.Template.Customised})
	_, err = b.writer.CloneGraph(t.Context(), started.Graph, apiclient.GraphClone{From: apiclient.CloneGraph, Parameters: []string{"tag=v3"}}, false)
	require.ErrorContains(t, err, "parameters belong to clones of a template")
	dry, err := b.writer.CloneGraph(t.Context(), string(of.Request.ID), apiclient.GraphClone{}, true)
	require.NoError(t, err)
	require.Nil(t, dry.Request)
	require.Equal(t, of.GraphHash, dry.GraphHash)
	j := b.submit(t, "v9")
	_, err = b.writer.CloneGraph(t.Context(), string(j.request.ID), apiclient.GraphClone{}, false)
	require.ErrorContains(t, err, "runs no graph of a template")
}
