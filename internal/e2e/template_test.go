package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
)

// nightly has a node of each kind that needs no repository.
const nightly = `
description: Prepare, measure, compare, ask, tell.
parameters:
  tag: {type: string, example: c2}
nodes:
  - name: prepare
    command: {target: %[1]s, steps: [{run: [sh, -c, "echo prepared > made"]}, {run: [test, -e, %[2]s]}, {run: [cat, made]}], failure: ["^nothing$$"]}
  - name: clean
    needs: {node: prepare, on: any}
    command: {target: %[1]s, steps: [{run: ["true"]}]}
  - name: measure
    needs: prepare
    benchmark: {tag: "${tag}", target: %[1]s}
  - name: compare
    needs: measure
    compare: {tag: "${tag}", baseline: c1}
  - name: agree
    needs: compare
    sign-off: {question: "Publish ${tag}?", limit: 1h}
  - name: tell
    needs: agree
    notify: {tag: "${tag}", text: published}
`

// The graph of a stored template runs: what fails is repaired by a retrigger, and what waits
// for a person keeps no other request waiting.
func TestAGraphOfATemplateRuns(t *testing.T) {
	t.Parallel()
	s := startStack(t, "--collectors", "2x1", "--share-cores")
	shell := newShellSuite(t, 2)
	for _, tag := range []string{"c1", "c2"} {
		shell.artifact(t, tag, 1000)
	}
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{})
	first := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Master, Tag: "c1"})
	require.Equal(t, bench.Success, s.await(t, first.ID, ended).Outcome)

	folder, there := t.TempDir(), filepath.Join(t.TempDir(), "there")
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "graphs"), 0o755))
	target, err := bench.HostTarget(runtime.GOOS, runtime.GOARCH)
	require.NoError(t, err)
	template := fmt.Sprintf(nightly, target, there)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "graphs", "nightly.yaml"), []byte(template), 0o644))
	_, code := s.run(t, "definitions", "push", folder, "shell")
	require.Zero(t, code)

	in := apiclient.GraphCall{Template: "nightly", Parameters: []string{"tag=c2"}, Act: apiclient.Act{IdempotencyKey: "tonight"}}
	started, err := s.api.RunGraph(t.Context(), "shell", in, false)
	require.NoError(t, err)
	require.True(t, started.Request.Created)
	again, err := s.api.RunGraph(t.Context(), "shell", in, false)
	require.NoError(t, err)
	require.Equal(t, started.Graph, again.Graph)
	require.False(t, again.Request.Created)
	id := started.Request.ID

	nodes := s.awaitNodes(t, id, map[string]graph.Status{"prepare": graph.Failure, "clean": graph.Success, "measure": graph.Blocked})
	require.Equal(t, graph.InputFailed, nodes["measure"].Reason.Code)
	require.NotNil(t, nodes["measure"].Until, "it is not blocked for ever")

	require.NoError(t, os.WriteFile(there, nil, 0o644))
	repair := apiclient.Retrigger{Act: apiclient.Act{Reason: "there now", IdempotencyKey: "repair"}, Jobs: []bench.JobKey{nodes["prepare"].Job}, Downstream: "none"}
	for repeated := range 2 {
		done, err := s.api.Retrigger(t.Context(), string(id), repair, false)
		require.NoError(t, err)
		require.Equal(t, repeated == 1, done.Operation.Repeated)
	}
	nodes = s.awaitNodes(t, id, map[string]graph.Status{"prepare": graph.Success, "measure": graph.Success, "compare": graph.Success, "agree": graph.Ready, "tell": graph.Blocked})
	require.Contains(t, nodes["compare"].Message, "c2 compared with c1")
	require.Equal(t, "Publish c2?", nodes["agree"].Question)

	// Another request completes meanwhile.
	other := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Master, Tag: "c2", Parent: "c1"})
	require.Equal(t, bench.Success, s.await(t, other.ID, ended).Outcome)

	stdout, code := s.run(t, "graph", "sign-off", string(id), "--reason", "looks good")
	require.Zero(t, code, stdout)
	detail := s.await(t, id, ended)
	require.Equal(t, bench.Success, detail.Outcome, detail.Message)
	require.Equal(t, "6 of 6 nodes succeeded", detail.Message)
	nodes = s.awaitNodes(t, id, map[string]graph.Status{"tell": graph.Success})
	require.Contains(t, nodes["tell"].Message, "published")
	require.Contains(t, nodes["agree"].Message, "looks good")

	// What was measured and what needs that runs again; the person is asked again.
	measured := apiclient.Retrigger{Jobs: []bench.JobKey{nodes["measure"].Job}, Downstream: "all"}
	_, err = s.api.Retrigger(t.Context(), string(id), measured, false)
	require.NoError(t, err)
	s.awaitNodes(t, id, map[string]graph.Status{"measure": graph.Success, "compare": graph.Success, "agree": graph.Ready, "tell": graph.Blocked})
	_, err = s.api.SignOff(t.Context(), string(id), apiclient.SignOff{Node: "agree"})
	require.NoError(t, err)
	nodes = s.awaitNodes(t, id, map[string]graph.Status{"agree": graph.Failure, "tell": graph.Blocked})
	require.Equal(t, graph.InputFailed, nodes["tell"].Reason.Code)
	_, code = s.run(t, "request", "cancel", string(id))
	require.Zero(t, code)
	require.Equal(t, bench.Cancelled, s.await(t, id, ended).Outcome)
	s.awaitNodes(t, id, map[string]graph.Status{"tell": graph.Cancelled})
}

// awaitNodes waits until the nodes of a request's graphs that count by now have these states,
// and returns them by their names.
func (s *stack) awaitNodes(t *testing.T, id bench.RequestID, want map[string]graph.Status) map[string]apiclient.GraphNode {
	t.Helper()
	var nodes map[string]apiclient.GraphNode
	var got map[string]graph.Status
	reached := func() bool {
		nodes, got = make(map[string]apiclient.GraphNode), make(map[string]graph.Status)
		set, err := s.api.Graph(t.Context(), string(id))
		if err != nil {
			return false // not written yet
		}
		for _, n := range set.Nodes {
			if n.Replaced || n.Input {
				continue
			}
			nodes[n.Name] = n
			if _, asked := want[n.Name]; asked {
				got[n.Name] = n.State
			}
		}
		return maps.Equal(want, got)
	}
	require.Eventually(t, reached, ended, 200*time.Millisecond, "last seen: %v", &got)
	return nodes
}

// A graph of which some node turns out to be impossible fails at once, and says which.
func TestAGraphThatCannotBeWrittenFails(t *testing.T) {
	t.Parallel()
	s := startStack(t)
	_, err := s.api.ApplyProject(t.Context(), apiclient.Project{Name: "lost"}, false)
	require.NoError(t, err)
	target, err := bench.HostTarget(runtime.GOOS, runtime.GOARCH)
	require.NoError(t, err)
	template := fmt.Sprintf(`nodes: [{name: check, command: {target: %s, checkouts: [{repository: %s, revision: main}], steps: [{run: ["true"]}]}}]`, target, filepath.Join(t.TempDir(), "gone"))
	_, err = s.api.PushDefinitions(t.Context(), "lost", apiclient.DefinitionsPush{Files: map[string]string{"graphs/check.yaml": template}}, false)
	require.NoError(t, err)
	started, err := s.api.RunGraph(t.Context(), "lost", apiclient.GraphCall{Template: "check"}, false)
	require.NoError(t, err)
	detail := s.await(t, started.Request.ID, ended)
	require.Equal(t, bench.Failure, detail.Outcome)
	require.Contains(t, detail.Message, "node check: ")
	require.Contains(t, detail.Message, "gone")
}

// The first graph of the docs does what they say, for who types it.
func TestTheFirstGraphOfTheDocs(t *testing.T) {
	t.Parallel()
	s := startStack(t)
	docs, dir := filepath.FromSlash("../../docs/graphs.md"), t.TempDir()
	typed := func(script string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-euc", script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(s.bin)+string(os.PathListSeparator)+os.Getenv("PATH"), "BENCHLOOM_STATE_DIR="+s.dir, "BENCHLOOM_URL=", "BENCHLOOM_TOKEN=")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	out := typed(docScript(t, docs, "## Your first graph"))
	found := regexp.MustCompile(`graph (r[a-z0-9]+)-1 of 3 nodes runs`).FindStringSubmatch(out)
	require.Len(t, found, 2, out)
	id := bench.RequestID(found[1])
	s.awaitNodes(t, id, map[string]graph.Status{"hello": graph.Success, "agree": graph.Ready, "tell": graph.Blocked})
	out = typed(strings.ReplaceAll(docScript(t, docs, "When `hello` has succeeded"), "r7k2m4q9xt2", string(id)))
	require.Contains(t, out, "Did it say hello?")
	require.Equal(t, bench.Success, s.await(t, id, ended).Outcome)
	nodes := s.awaitNodes(t, id, map[string]graph.Status{"tell": graph.Success})
	require.Contains(t, nodes["tell"].Message, "It did.")
}

// docScript returns the first block of shell commands after a text.
func docScript(t *testing.T, file, after string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), after)
	require.True(t, found, after)
	_, block, found := strings.Cut(section, "\n```sh\n")
	require.True(t, found, after)
	script, _, found := strings.Cut(block, "```\n")
	require.True(t, found, after)
	return script
}
