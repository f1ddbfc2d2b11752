package api_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

const fullWallTime = "gin/build/full/gc/x86_64-unknown-linux-gnu/wall-time"

// loaded adds what a collector records of its machine to all collections of a block.
func loaded(b apiclient.Block) apiclient.Block {
	for _, r := range b.Results {
		for i := range r.Collections {
			r.Collections[i].Facts = json.RawMessage(`{"duration_seconds": 2, "machine": {"elapsed_ns": 1000, "cpus": 2, "own_cpu_ns": 1500, "foreign_cpu_ns": 250, "steal_ns": 20}}`)
		}
		r.Collections[2].Disturbed = "load: 0.25 CPUs"
	}
	return b
}

func TestAPIListsTheValuesOfARow(t *testing.T) {
	t.Parallel()
	b, before := measured(t)
	j := b.submit(t, "1.27.0")
	plan := b.start(t, j, b.register(t, "c2"), 1)
	_, err := b.collector.UploadBlock(t.Context(), plan.Run.ID, 1, loaded(block(j.cases, 1)))
	require.NoError(t, err)
	found, err := b.nobody.ComparedValues(t.Context(), "go", "1.26.0", "1.27.0", fullWallTime)
	require.NoError(t, err)
	require.False(t, found.More)
	require.Len(t, found.Values, 10)
	sides := map[string][]float64{}
	for _, v := range found.Values {
		sides[v.Side] = append(sides[v.Side], v.Value)
		if v.Side == "a" {
			require.Equal(t, bench.NewRunID(before.key, "workflow", "activity", 1), v.Run)
			require.Nil(t, v.Load)
			continue
		}
		require.Equal(t, plan.Run.ID, v.Run)
		require.Equal(t, "c2", v.Collector)
		require.InDelta(t, 0.125, *v.Load, 1e-9)
		require.InDelta(t, 0.01, *v.Steal, 1e-9)
		require.Equal(t, v.Iteration == 3, v.Disturbed != "")
	}
	require.Equal(t, apiclient.TurnsPreview{Looks: []int{6, 14, 22, 34, 46}, AtLeastSeconds: 24, AtMostSeconds: 184}, found.Turns, "two seconds for each iteration")
	row := b.page(t, "", compareGo+"?a=1.26.0&b=1.27.0&open="+url.QueryEscape(fullWallTime)).section("row")
	require.Contains(t, row, "That takes 6 to 46 pairs of iterations, in 5 looks at most; about 24s to 3m04s of machine time")
	require.Equal(t, []float64{1, 1.001, 1.002, 1.003, 1.004}, sides["b"])
	require.Len(t, sides["a"], 5)

	none, err := b.nobody.ComparedValues(t.Context(), "go", "1.26.0", "1.27.0", "gin/build/full/gc/x/wall-time")
	require.NoError(t, err)
	require.Empty(t, none.Values)
	for row, status := range map[string]int{"markdown": http.StatusUnprocessableEntity, "gin/%00///x/wall-time": http.StatusUnprocessableEntity} {
		_, err = b.nobody.ComparedValues(t.Context(), "go", "1.26.0", "1.27.0", row)
		var problem *apiclient.Problem
		require.ErrorAs(t, err, &problem)
		require.Equal(t, status, problem.Status)
		require.Contains(t, problem.Detail, "BENCHMARK/PROFILE/SCENARIO/BACKEND/TARGET/METRIC")
	}
}

// Values of another surrounding are listed, and said not to be compared.
func TestValuesOfAnotherSurroundingAreMarked(t *testing.T) {
	t.Parallel()
	b, _ := measured(t)
	r := registration("c2")
	r.HardwareID = "cpu1"
	other, err := b.collector.RegisterCollector(t.Context(), r)
	require.NoError(t, err)
	b.measure(t, "1.27.0", 1, other)
	found, err := b.nobody.ComparedValues(t.Context(), "go", "1.26.0", "1.27.0", fullWallTime)
	require.NoError(t, err)
	require.Len(t, found.Values, 10)
	require.False(t, slices.ContainsFunc(found.Values, func(v apiclient.ComparedValue) bool { return !v.Elsewhere }))
}

// A row opens under its own address: why it was decided so, every value, and how to go on.
func TestARowOpensUnderItsOwnAddress(t *testing.T) {
	t.Parallel()
	b, j := measured(t)
	at := compareGo + "?a=1.25.0&b=1.26.0"
	to := compareGo + "?" + url.Values{"a": {"1.25.0"}, "b": {"1.26.0"}, "open": {fullWallTime}}.Encode()
	require.Contains(t, b.page(t, "", at).links(), to+"#row")

	p := b.page(t, "", to)
	require.Equal(t, http.StatusOK, p.status, p.text())
	p.requireSound(t, "an opened row")
	row := p.section("row")
	for _, words := range []string{
		"wall-time of gin", "undecided", "Not measured in turns: stored results raise a suspicion; needs measuring both in turns",
		"Suspicion stored results differ by", "Least relevant change 1.00 %", "10 values", "1.004 s", "1.205 s", "iteration 5",
		"benchloom submit --adhoc go 1.26.0 --vs 1.25.0 --benchmark gin --profile build --scenario full --backend gc --target x86_64-unknown-linux-gnu --reason WHY",
		"in 5 looks at most; how long an iteration takes is not known",
		"benchloom compare go 1.25.0 1.26.0 --benchmark gin --profile build --scenario full --backend gc --target x86_64-unknown-linux-gnu --metric wall-time",
		"This needs a token with the role writer",
	} {
		require.Contains(t, row, words)
	}
	require.Subset(t, p.links(), []string{
		"/runs/" + string(bench.NewRunID(j.key, "workflow", "activity", 1)) + "#log",
		"/requests/" + string(j.request.ID) + "/again?benchmark=gin", at + "#rows",
		"/projects/go/history?metric=wall-time&q=benchmark%3Agin",
	})
	require.Contains(t, b.page(t, "", "/projects/go/history?metric=wall-time&q=benchmark%3Agin").text(), "2 artifacts, 2 series")
	marks := 0
	p.each("circle", func(n *html.Node) {
		if attribute(n.Parent, "class") == "values" {
			marks++
		}
	})
	require.Equal(t, 10, marks)

	// Measuring in turns makes one request, however often the form is sent.
	signed := b.page(t, api.RoleWriter, to)
	form := "/projects/go/turns"
	fields := signed.fields(form)
	require.Equal(t, fullWallTime, fields.Get("row"))
	fields.Set("reason", "is it so?")
	first := b.form(t, b.cookieOf(t, api.RoleWriter), form, fields)
	require.Equal(t, http.StatusSeeOther, first.status, first.body)
	require.Equal(t, first.header.Get("Location"), b.form(t, b.cookieOf(t, api.RoleWriter), form, fields).header.Get("Location"))
	made, err := b.nobody.Request(t.Context(), first.header.Get("Location")[len("/requests/"):])
	require.NoError(t, err)
	require.Equal(t, []any{bench.AdHoc, "1.26.0", "1.25.0"}, []any{made.Type, made.Tag, made.Versus})
	audit, err := b.admin.Audit(t.Context(), apiclient.AuditQuery{Subject: string(made.ID)})
	require.NoError(t, err)
	require.Len(t, audit.Operations, 1)
	require.Equal(t, []string{"request create", "is it so?"}, []string{audit.Operations[0].Action, audit.Operations[0].Reason})
	require.Equal(t, bench.Selection{Benchmarks: []string{"gin"}, Profiles: []string{"build"}, Scenarios: []string{"full"}, Backends: []string{"gc"}, Targets: []bench.Target{linux}}, made.Selection)
	require.Equal(t, http.StatusForbidden, b.form(t, b.cookieOf(t, api.RoleReader), form, fields).status)
	fields.Set("row", "gin")
	require.Equal(t, http.StatusBadRequest, b.form(t, b.cookieOf(t, api.RoleWriter), form, fields).status)

	// A row that is gone is said to be; an address that is none is refused.
	gone := b.page(t, "", at+"&open="+url.QueryEscape("gin/build/full/gc/x86_64-unknown-linux-gnu/ns%2Fop"))
	require.Equal(t, http.StatusOK, gone.status)
	gone.requireSound(t, "a lost row")
	require.Contains(t, gone.section("row"), "This comparison has no row")
	require.Equal(t, http.StatusBadRequest, b.page(t, "", at+"&open=gin").status)
}

// A verdict may be about an artifact before A. Its row leads to the values on which it rests.
func TestARowLeadsToTheValuesThatDecidedIt(t *testing.T) {
	t.Parallel()
	w := newRandomReleases(t, 0)
	w.inTurns("1.20.0", "1.22.0")
	w.past(t, `update comparison_verdict set against_id = (select id from artifact where tag = '1.20.0')
		where verdict = 'changed' and comparison_id = (select id from comparison where artifact_id = (select id from artifact where tag = '1.22.0'))`)
	compared, err := w.nobody.Compare(t.Context(), apiclient.CompareQuery{Project: "go", A: "1.21.0", B: "1.22.0"})
	require.NoError(t, err)
	decided, listed := 0, 0
	for _, r := range compared.Result.Rows {
		p := w.page(t, "", compareGo+"?"+url.Values{"a": {"1.21.0"}, "b": {"1.22.0"}, "open": {r.ID()}}.Encode())
		p.requireSound(t, r.ID())
		to := compareGo + "?" + url.Values{"a": {"1.20.0"}, "b": {"1.22.0"}, "open": {r.ID()}}.Encode()
		if r.Against == "" {
			require.NotContains(t, p.section("row"), "an artifact before A")
			continue
		}
		decided++
		require.Contains(t, p.section("row"), "The verdict rests on values measured in turns with 1.20.0")
		require.Contains(t, p.links(), to+"#row")
		if strings.Contains(w.page(t, "", to).section("row"), "B in turns") {
			listed++
		}
	}
	require.NotZero(t, decided)
	require.NotZero(t, listed)
}

// A row shows what came before: the medians of earlier artifacts, where B was measured.
func TestARowShowsEarlierValues(t *testing.T) {
	t.Parallel()
	b, _ := measured(t)
	b.measure(t, "1.27.0", 3, b.register(t, "c2"))
	b.measure(t, "1.28.0", 4, b.register(t, "c2"))
	ids := []string{fullWallTime, "gin/build/full/gc/none/wall-time"}
	found, err := b.nobody.EarlierValues(t.Context(), "go", "1.27.0", ids)
	require.NoError(t, err)
	require.Equal(t, []string{"1.25.0", "1.26.0", "1.27.0"}, found.Tags, "and none that came after")
	require.Len(t, found.Rows, 2)
	for i, want := range []float64{1.002, 1.2024, 3.006} {
		require.InDelta(t, want, *found.Rows[0].Values[i], 1e-9)
		require.Nil(t, found.Rows[1].Values[i])
	}
	p := b.page(t, "", compareGo+"?a=1.26.0&b=1.27.0&metric=wall-time")
	p.requireSound(t, "earlier values")
	sparks := 0
	p.each("svg", func(n *html.Node) {
		if attribute(n, "class") == "spark" {
			sparks++
			require.Equal(t, "3 values, from 1.002 s to 3.006 s", attribute(n, "aria-label"))
		}
	})
	require.Equal(t, 2, sparks)
	_, err = b.nobody.EarlierValues(t.Context(), "go", "1.27.0", []string{"gin"})
	require.Error(t, err)
}
