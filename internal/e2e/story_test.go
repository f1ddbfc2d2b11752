package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
)

// goProgram waits while a file is there, so that a test can look at a run.
const goProgram = `package main

import (
	"os"
	"time"
)

func main() {
	for {
		if _, err := os.Stat(%q); err != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if log, err := os.OpenFile(%q, os.O_APPEND|os.O_WRONLY, 0); err == nil {
		log.WriteString(os.Args[1] + "\n")
		log.Close()
	}
}
`

const goProgramSuite = `name: prog
artifact:
  provider: build
  parameters:
    repository: %[1]s
    command: [sh, -c, "%[2]s"]
    output: out
iterations: 2
procedures:
  runtime: {measure: {run: ["${artifact}/prog", "${name}"]}}
benchmarks:
  - {name: b1, kind: runtime, vars: {name: b1}}
  - {name: b2, kind: runtime, vars: {name: b2}}
  - {name: b3, kind: runtime, vars: {name: b3}}
  - {name: b4, kind: runtime, vars: {name: b4}}
  - {name: b5, kind: runtime, vars: {name: b5}}
  - {name: b6, kind: runtime, vars: {name: b6}}
`

const goProgramGraph = `
description: Build, check, measure, compare, ask, tell.
parameters:
  tag: {type: string, example: v2}
nodes:
  - name: build
    build: {tag: "${tag}", target: %[1]s, repository: %[2]s, command: [sh, -c, "%[3]s"], output: out}
  - name: check
    needs: build
    command: {target: %[1]s, checkouts: [{repository: %[2]s, revision: "${tag}", path: src}], steps: [{run: [test, -e, %[4]s]}, {run: [sh, -c, "mkdir out; cat src/go.mod >out/checked.txt"]}], uploads: ["out/*.txt"]}
  - name: measure
    needs: check
    benchmark: {tag: "${tag}", target: %[1]s, iterations: 2, chunks: {min: 3, max: 4}}
  - name: compare
    needs: measure
    compare: {tag: "${tag}", baseline: v1}
  - name: agree
    needs: compare
    sign-off: {question: "Publish ${tag}?", limit: 1h}
  - name: tell
    needs: agree
    notify: {tag: "${tag}", text: published}
`

// A project's graph from its template to the notice, on collectors that come and go, with
// what people do to it on the way.
func TestLongStoryOfAGraph(t *testing.T) {
	t.Parallel()
	s := startStack(t, "--collectors", "1x1", "--share-cores")
	scratch := t.TempDir()
	require.NoError(t, os.Chmod(scratch, 0o777))
	held, there, log := filepath.Join(scratch, "held"), filepath.Join(scratch, "there"), filepath.Join(scratch, "log")
	repository := newGitRepository(t)
	require.NoError(t, os.WriteFile(filepath.Join(repository.dir, "go.mod"), []byte("module example.org/prog\n\ngo 1.24\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(repository.dir, "main.go"), fmt.Appendf(nil, goProgram, held, log), 0o644))
	for i, tag := range []string{"v1", "v2", "v3"} {
		require.NoError(t, os.WriteFile(filepath.Join(repository.dir, "version.go"), fmt.Appendf(nil, "package main\n\nconst version = %d\n", i), 0o644))
		repository.git(t, "add", ".")
		repository.commit(t, tag)
		repository.git(t, "tag", tag)
	}
	compiler, err := exec.LookPath("go")
	require.NoError(t, err)
	cache := goEnv(t, "GOCACHE")
	if isolating() { // where builds write no file of others
		cache = "`pwd`/.cache"
	}
	build := fmt.Sprintf("HOME=/tmp GOCACHE=%s GOPROXY=off GOFLAGS= CGO_ENABLED=0 %s build -o out/prog .", cache, compiler)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "suite.yaml"), fmt.Appendf(nil, goProgramSuite, repository.dir, build), 0o644))
	s.applyProject(t, "prog", dir, bench.ProjectConfig{})
	first := s.submit(t, apiclient.NewRequest{Project: "prog", Type: bench.Release, Tag: "v1"})
	require.Equal(t, bench.Success, s.await(t, first.ID, ended).Outcome)

	target, err := bench.HostTarget(runtime.GOOS, runtime.GOARCH)
	require.NoError(t, err)
	folder := t.TempDir()
	push := func(text string) {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Join(folder, "graphs"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "graphs", "nightly.yaml"), []byte(text), 0o644))
		out, code := s.run(t, "definitions", "push", folder, "prog")
		require.Zero(t, code, out)
	}
	template := fmt.Sprintf(goProgramGraph, target, repository.dir, build, there)
	push(template)

	// Two jobs are customised.
	out, code := s.run(t, "graph", "run", "prog", "nightly", "--param", "tag=v2", "--set", "measure:iterations=3", "--set", "check:constraints.cpus=1", "--key", "tonight", "-o", "json")
	require.Zero(t, code, out)
	var started apiclient.StartedGraph
	require.NoError(t, json.Unmarshal([]byte(out), &started))
	require.Len(t, started.Customised, 2)
	id := started.Request.ID

	// The template changes; what runs does not.
	push(strings.Replace(template, "published", "told", 1))

	// A job fails, and is run again.
	nodes := s.awaitNodes(t, id, map[string]graph.Status{"build": graph.Success, "check": graph.Failure, "tell": graph.Blocked})
	list, err := s.api.Graphs(t.Context(), "prog", apiclient.GraphQuery{Customised: true})
	require.NoError(t, err)
	require.Len(t, list.Graphs, 1)
	require.Len(t, s.graphOf(t, id).Template.Customised, 2)
	require.NoError(t, os.WriteFile(there, nil, 0o644))
	require.NoError(t, os.WriteFile(held, nil, 0o644))
	require.NoError(t, os.WriteFile(log, nil, 0o666))
	require.NoError(t, os.Chmod(log, 0o666))
	check := nodes["check"].Job
	for repeated := range 2 {
		done, err := s.api.Rerun(t.Context(), string(id), apiclient.Retrigger{Act: apiclient.Act{Reason: "there now", IdempotencyKey: "repair"}, Jobs: []bench.JobKey{check}}, false)
		require.NoError(t, err)
		require.Equal(t, repeated == 1, done.Operation.Repeated)
	}
	nodes = s.awaitNodes(t, id, map[string]graph.Status{"check": graph.Success})
	require.Equal(t, []any{check, 1, 1}, []any{nodes["check"].Job, nodes["check"].Reruns, nodes["check"].Passed})

	checked, err := s.api.Job(t.Context(), check)
	require.NoError(t, err)
	run := checked.Runs[len(checked.Runs)-1].ID
	out, code = s.run(t, "run", "files", string(run))
	require.Zero(t, code, out)
	require.Contains(t, out, "out/checked.txt")
	out, code = s.run(t, "run", "files", string(run), "out/checked.txt")
	require.Zero(t, code, out)
	require.Contains(t, out, "module example.org/prog")

	// A collector comes, takes a chunk, dies, and comes again.
	running := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool { return len(s.chunks(t, id)[graph.Running]) == n }, ended, 50*time.Millisecond, "chunks: %v", func() any { return s.chunks(t, id) })
	}
	running(1)
	pool := s.collector(t, "local-1").Pool
	guest := s.launchCollector(t, "guest", pool)
	running(2)
	require.NoError(t, guest.command.Process.Kill())
	<-guest.exited
	s.launchCollector(t, "guest", pool)
	require.NoError(t, os.Remove(held))
	nodes = s.awaitNodes(t, id, map[string]graph.Status{"compare": graph.Success, "agree": graph.Ready, "tell": graph.Blocked})
	require.Contains(t, nodes["compare"].Message, "v2 compared with v1")
	counted, cases := make(map[bench.JobKey]int), make(map[string]int)
	for _, n := range s.chunks(t, id)[graph.Success] {
		job, err := s.api.Job(t.Context(), n.Job)
		require.NoError(t, err)
		counted[n.Job] = len(job.TestCases)
		for _, tc := range job.TestCases {
			cases[tc.Benchmark]++
		}
	}
	require.GreaterOrEqual(t, len(counted), 3)
	require.Equal(t, map[string]int{"b1": 1, "b2": 1, "b3": 1, "b4": 1, "b5": 1, "b6": 1}, cases, "each item counts once: %v", counted)
	for series, n := range s.collections(t, "prog") {
		if strings.HasPrefix(series, "v2 ") {
			require.Equal(t, 3, n, series)
		}
	}

	// Another request completes while the sign-off waits.
	other := s.submit(t, apiclient.NewRequest{Project: "prog", Type: bench.Release, Tag: "v3"})
	require.Equal(t, bench.Success, s.await(t, other.ID, ended).Outcome)
	require.Equal(t, graph.Ready, s.graphNodes(t, id)["agree"].State)
	out, code = s.run(t, "graph", "sign-off", string(id), "--reason", "looks good")
	require.Zero(t, code, out)
	detail := s.await(t, id, ended)
	require.Equal(t, bench.Success, detail.Outcome, detail.Message)
	require.Contains(t, s.graphNodes(t, id)["tell"].Message, "published", "as its template was when it began")

	// A portion runs again, asked for twice with one key.
	before := s.executions(t, log)
	in := apiclient.Retrigger{Act: apiclient.Act{Reason: "a noisy machine", IdempotencyKey: "portion"}, Jobs: []bench.JobKey{check}, Downstream: "portion", Select: "kind=benchmark,benchmark=b2"}
	for repeated := range 2 {
		done, err := s.api.Retrigger(t.Context(), string(id), in, false)
		require.NoError(t, err)
		require.Equal(t, repeated == 1, done.Operation.Repeated)
		require.Equal(t, 2, done.Operation.Jobs, "%s", done.Operation.Message)
	}
	require.Equal(t, bench.Success, s.await(t, id, ended).Outcome)
	after := s.executions(t, log)
	require.Equal(t, before["b2"]+3, after["b2"])
	after["b2"] = before["b2"]
	require.True(t, maps.Equal(before, after), "only the portion ran: %v, then %v", before, after)
}

func (s *stack) graphOf(t *testing.T, id bench.RequestID) apiclient.GraphDetail {
	t.Helper()
	set, err := s.api.Graph(t.Context(), string(id))
	require.NoError(t, err)
	return set
}

// graphNodes returns the nodes of a request's graphs that count by now, by their names.
func (s *stack) graphNodes(t *testing.T, id bench.RequestID) map[string]apiclient.GraphNode {
	t.Helper()
	out := make(map[string]apiclient.GraphNode)
	for _, n := range s.graphOf(t, id).Nodes {
		if !n.Replaced && !n.Input {
			out[n.Name] = n
		}
	}
	return out
}

// chunks returns the chunks of the node measure that have test cases, by their states.
func (s *stack) chunks(t *testing.T, id bench.RequestID) map[graph.Status][]apiclient.GraphNode {
	t.Helper()
	out := make(map[graph.Status][]apiclient.GraphNode)
	for _, n := range s.graphOf(t, id).Nodes {
		if n.Name == "measure" && n.TestCases > 0 {
			out[n.State] = append(out[n.State], n)
		}
	}
	return out
}

// executions counts the lines of a log.
func (s *stack) executions(t *testing.T, log string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	out := make(map[string]int)
	for line := range strings.FieldsSeq(string(text)) {
		out[line]++
	}
	return out
}
