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

// graph runs the template asked with parameters, as far as its workflow writes nodes.
func (b *bundle) graph(t testing.TB, parameters ...string) bench.RequestID {
	t.Helper()
	b.pushed(t, asked)
	started, err := b.writer.RunGraph(t.Context(), "go", apiclient.GraphCall{Template: "nightly", Parameters: parameters}, false)
	require.NoError(t, err)
	id := started.Request.ID
	g, err := b.store.GraphDefinition(t.Context(), id)
	require.NoError(t, err)
	of := store.TemplateGraph{Edges: g.Edges()}
	for _, n := range g.Nodes() {
		of.Nodes = append(of.Nodes, store.TemplateNode{Node: n, Key: plan.ServiceKey(id, n, 0)})
	}
	require.NoError(t, b.store.ExpandRequest(t.Context(), id, store.Expansion{Stage: bench.StageOwn, Template: &of}))
	return id
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
	b.pushed(t, `nodes: [{name: many, command: {target: x86_64-unknown-linux-gnu, steps: [{run: ["true"]}, {run: ["true"]}]}}]`)
	_, err = b.writer.RunGraph(t.Context(), "go", apiclient.GraphCall{Template: "nightly"}, false)
	require.ErrorContains(t, err, "node many: it has 2 steps, and a command runs one program yet")
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
