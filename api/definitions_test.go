package api_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/graph"
)

const (
	definedBranches = "branches:\n  main: {protected: true}\n  try: {}\n  moved: {definitions: 'far@v2'}\n"
	definedNightly  = `description: Measure and tell.
parameters:
  tag: {type: string, example: v1}
  targets: {type: list, default: [x86_64-unknown-linux-gnu]}
nodes:
  - name: measure-${target}
    for: {target: "${targets}"}
    benchmark: {tag: "${tag}", target: "${target}"}
  - {name: tell, needs: "measure-*", notify: {tag: "${tag}"}}
`
)

func defined() map[string]string {
	return map[string]string{"branches.yaml": definedBranches, "graphs/nightly.yaml": definedNightly}
}

func TestTemplatesOfAProject(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	_, err := b.reader.Templates(t.Context(), "go", "")
	require.ErrorContains(t, err, "project go has no graph templates; give it some with 'benchloom definitions push DIR go'")
	why := apiclient.Act{Reason: "the first"}

	dry, err := b.writer.PushDefinitions(t.Context(), "go", apiclient.DefinitionsPush{Act: why, Files: defined()}, true)
	require.NoError(t, err)
	require.True(t, dry.DryRun)
	require.Len(t, dry.Graphs, 2, "on main and try")
	_, err = b.reader.Templates(t.Context(), "go", "")
	require.Error(t, err)
	first, err := b.writer.PushDefinitions(t.Context(), "go", apiclient.DefinitionsPush{Act: why, Files: defined()}, false)
	require.NoError(t, err)
	require.True(t, first.Changed)
	require.Equal(t, dry.Hash, first.Hash)
	again, err := b.writer.PushDefinitions(t.Context(), "go", apiclient.DefinitionsPush{Act: why, Files: defined()}, false)
	require.NoError(t, err)
	require.False(t, again.Changed, "the same definitions change nothing")
	require.Equal(t, first.Hash, again.Hash)

	list, err := b.reader.Templates(t.Context(), "go", "")
	require.NoError(t, err)
	require.Equal(t, []any{first.Hash, "wanda", true}, []any{list.Definitions.Hash, list.Definitions.PushedBy, list.Definitions.Current})
	require.Len(t, list.Templates, 1)
	nightly := list.Templates[0]
	require.Equal(t, []any{"nightly", "Measure and tell.", 2}, []any{nightly.Name, nightly.Description, len(nightly.Parameters)})
	require.Nil(t, nightly.Parameters[0].Default)
	require.Equal(t, []any{"x86_64-unknown-linux-gnu"}, nightly.Parameters[1].Default)

	// The graph that a template makes needs no checkout.
	made, err := b.reader.Template(t.Context(), "go", "nightly", apiclient.TemplateQuery{Parameters: []string{"tag=a<b", "targets=x86_64-unknown-linux-gnu,aarch64-unknown-linux-gnu"}})
	require.ErrorContains(t, err, `tag "a<b"`)
	require.Empty(t, made.Graph)
	made, err = b.reader.Template(t.Context(), "go", "nightly", apiclient.TemplateQuery{Parameters: []string{"tag=v1", "targets=x86_64-unknown-linux-gnu,aarch64-unknown-linux-gnu"}})
	require.NoError(t, err)
	g, err := graph.Parse(made.Graph)
	require.NoError(t, err, "as it is encoded")
	require.Equal(t, []any{3, made.GraphHash}, []any{g.Len(), g.Hash()})
	require.True(t, made.Rule.Protected)
	for query, want := range map[string]string{
		"": "needs a value for its parameter", "?param=tag=v1&branch=other": "is not in branches.yaml", "?param=tag": "write name=value", "?definitions=abc": "was not given the definitions",
		"?param=tag=v1&branch=moved": "branch moved uses the definitions of far@v2, which project go was not given; push them with 'benchloom definitions push DIR go --source far@v2'",
	} {
		r := b.send(t, "reader", http.MethodGet, "/api/v1/projects/go/templates/nightly"+query, "")
		require.GreaterOrEqual(t, r.status, 400, query)
		require.Less(t, r.status, 500, query)
		require.Contains(t, r.body, want, query)
	}
	require.Contains(t, b.send(t, "reader", http.MethodGet, "/api/v1/projects/go/templates/weekly", "").body, "there is no graph template")

	// A branch that uses definitions of another place gets those from there; others stay.
	far := defined()
	far["graphs/nightly.yaml"] = strings.Replace(definedNightly, "name: tell", "name: told", 1)
	pushed, err := b.writer.PushDefinitions(t.Context(), "go", apiclient.DefinitionsPush{Act: why, Files: far, Source: "far@v2"}, false)
	require.NoError(t, err)
	_, err = b.writer.PushDefinitions(t.Context(), "go", apiclient.DefinitionsPush{Act: why, Files: defined()}, false)
	require.NoError(t, err)
	for branch, want := range map[string]string{"main": first.Hash, "try": first.Hash, "moved": pushed.Hash} {
		made, err := b.reader.Template(t.Context(), "go", "nightly", apiclient.TemplateQuery{Branch: branch, Parameters: []string{"tag=v1"}})
		require.NoError(t, err, branch)
		require.Equal(t, want, made.Definitions, branch)
	}
	// Many at once read the same folder, which the service keeps.
	var group errgroup.Group
	hashes := make([]string, 8)
	for i := range hashes {
		group.Go(func() error {
			made, err := b.reader.Template(t.Context(), "go", "nightly", apiclient.TemplateQuery{Parameters: []string{"tag=v" + strconv.Itoa(i%2)}})
			hashes[i] = made.GraphHash
			return err
		})
	}
	require.NoError(t, group.Wait())
	require.Equal(t, hashes[:2], hashes[6:])
	made, err = b.reader.Template(t.Context(), "go", "nightly", apiclient.TemplateQuery{Definitions: pushed.Hash[:12], Parameters: []string{"tag=v1"}})
	require.NoError(t, err)
	require.Equal(t, pushed.Hash, made.Definitions, "those that were asked for")
	all, err := b.reader.Definitions(t.Context(), "go", 2, "")
	require.NoError(t, err)
	require.Len(t, all.Definitions, 2)
	rest, err := b.reader.Definitions(t.Context(), "go", 2, all.Next)
	require.NoError(t, err)
	require.Len(t, rest.Definitions, 1)
	require.Empty(t, rest.Next)
}

func TestDefinitionsThatAreNotTaken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	send := func(who, body string) reply {
		return b.send(t, who, http.MethodPost, "/api/v1/projects/go/definitions", body)
	}
	for body, want := range map[string]string{
		`{"files": {}}`: "the folder has no graph template",
		`{"files": {"graphs/a.yaml": "nodes: 3"}}`: "graphs/a.yaml:1:8",
		`{"files": {"readme.md": "x"}}`:            "readme.md: this file defines nothing here",
		`{"files": {"graphs/a.yaml": "nodes:\n  - {name: a, needs: b, notify: {tag: v}}\n  - {name: b, needs: a, notify: {tag: v}}\n"}}`: "cycle",
		`{"files": {"graphs/a.yaml": "nodes:\n  - {name: a, if: 1/0 > 1, notify: {tag: v}}\n"}}`:                                         "graphs/a.yaml:2:",
		`{"file": {}}`: "unexpected property",
	} {
		r := send("writer", body)
		require.Equal(t, http.StatusUnprocessableEntity, r.status, r.body)
		require.Contains(t, r.body, want)
	}
	require.Equal(t, http.StatusForbidden, send("reader", `{"files": {}}`).status)
	_, err := b.reader.Templates(t.Context(), "go", "")
	require.ErrorContains(t, err, "has no graph templates", "nothing was stored")
}

// A graph of a thousand jobs from a stored template: LO-2 asks for less than 100 ms.
func BenchmarkAGraphOfAThousandJobs(b *testing.B) {
	w := setup(b)
	w.project(b)
	files := map[string]string{"graphs/wide.yaml": "parameters:\n  tags: {type: list, example: [v1]}\nnodes:\n  - name: measure-${tag}\n    for: {tag: \"${tags}\"}\n    benchmark: {tag: \"${tag}\", target: x86_64-unknown-linux-gnu}\n"}
	_, err := w.writer.PushDefinitions(b.Context(), "go", apiclient.DefinitionsPush{Files: files}, false)
	require.NoError(b, err)
	var tags []string
	for i := range 1000 {
		tags = append(tags, fmt.Sprintf("v%d", i))
	}
	var longest time.Duration
	for b.Loop() {
		began := time.Now()
		_, err := w.reader.Template(b.Context(), "go", "wide", apiclient.TemplateQuery{Parameters: []string{"tags=" + strings.Join(tags, ",")}})
		require.NoError(b, err)
		longest = max(longest, time.Since(began))
	}
	b.ReportMetric(longest.Seconds()*1000, "longest-ms")
}
