package definitions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/definitions"
	"github.com/benchloom/benchloom/internal/graph"
)

// folder returns files by name, from names and contents in turn.
func folder(contents ...string) fstest.MapFS {
	files := fstest.MapFS{}
	for i := 0; i < len(contents); i += 2 {
		files[contents[i]] = &fstest.MapFile{Data: []byte(contents[i+1])}
	}
	return files
}

func read(t testing.TB, files fstest.MapFS) *definitions.Folder {
	t.Helper()
	f, err := definitions.Read(files)
	require.NoError(t, err)
	return f
}

const branchesYAML = `switches:
  pgo: {type: bool, default: false, description: Profile-guided builds.}
  shards: {type: int, default: 2, minimum: 0}
branches:
  main:
    protected: true
    switches: {pgo: true}
    parameters: {iterations: 10}
  "release/*": {protected: true}
  try:
    switches: {shards: 0}
  moved:
    definitions: https://example.org/definitions.git@v2
`

const buildYAML = `description: Build the tool.
parameters:
  tag: {type: string}
  target: {type: string}
  flags: {type: list, default: []}
build:
  tag: "${tag}"
  target: "${target}"
  repository: https://example.org/tool.git
  command: [make, "${flags}", "PGO=${switches.pgo}"]
  env: {PRICE: "$$5"}
`

const nightlyYAML = `description: Build, measure, agree, tell.
parameters:
  tag: {type: string, example: v1.2.3}
  targets: {type: list, default: [x86_64-unknown-linux-gnu, aarch64-unknown-linux-gnu]}
  iterations: {type: int, default: 5, minimum: 1, maximum: 50}
nodes:
  - name: build-${target}
    for: {target: "${targets}"}
    job: build
    with: {tag: "${tag}", target: "${target}", flags: [-j2, "${branch}"]}
  - name: measure-${target}-${set}
    for: {target: "${targets}", set: [demo, long]}
    if: set == 'demo' || switches.pgo
    needs: build-${target}
    benchmark: {tag: "${tag}", target: "${target}", set: "${set}", iterations: "${iterations}"}
  - name: agree
    if: branch != 'try'
    needs: ["measure-*"]
    limit: 12h
    sign-off: {question: "Publish ${tag}?", limit: 2h}
  - name: tell
    latest: true
    needs:
      - {node: agree, on: resolved, optional: true}
      - {node: "measure-*", on: any}
    notify: {tag: "${tag}"}
`

func example() fstest.MapFS {
	return folder("branches.yaml", branchesYAML, "jobs/build.yaml", buildYAML, "graphs/nightly.yaml", nightlyYAML, "README.md", "Not a definition.")
}

func expand(t testing.TB, f *definitions.Folder, branch string, parameters map[string]definitions.Value) *definitions.Expansion {
	t.Helper()
	e, err := f.Expand(t.Context(), definitions.Call{Template: "nightly", Branch: branch, Parameters: parameters})
	require.NoError(t, err)
	return e
}

func TestATemplateBecomesAGraph(t *testing.T) {
	t.Parallel()
	f := read(t, example())
	e := expand(t, f, "main", map[string]definitions.Value{"tag": "v1"})
	require.Equal(t, [][]string{
		{"build-aarch64-unknown-linux-gnu", "build-x86_64-unknown-linux-gnu"},
		{"measure-aarch64-unknown-linux-gnu-demo", "measure-aarch64-unknown-linux-gnu-long", "measure-x86_64-unknown-linux-gnu-demo", "measure-x86_64-unknown-linux-gnu-long"},
		{"agree"},
		{"tell"},
	}, e.Graph.Layers())
	build, ok := e.Graph.Node("build-x86_64-unknown-linux-gnu")
	require.True(t, ok)
	require.JSONEq(t, `{"kind":"build","definition":{"tag":"v1","target":"x86_64-unknown-linux-gnu","repository":"https://example.org/tool.git",
		"command":["make","-j2","main","PGO=true"],"env":["PRICE=$5"],"output":".","timeout_seconds":1800}}`, string(build.Job.Canonical()))
	measure, _ := e.Graph.Node("measure-x86_64-unknown-linux-gnu-long")
	require.JSONEq(t, `{"kind":"benchmark","definition":{"tag":"v1","target":"x86_64-unknown-linux-gnu","selection":{"set":"long"},"iterations":10}}`, string(measure.Job.Canonical()))
	agree, _ := e.Graph.Node("agree")
	require.Equal(t, 12*time.Hour, agree.Limit())
	tell, _ := e.Graph.Node("tell")
	require.True(t, tell.Latest)
	require.Contains(t, e.Graph.Inputs("tell"), graph.Edge{From: "agree", To: "tell", Condition: graph.OnResolved})
	require.Len(t, e.Graph.Inputs("tell"), 5)
	require.True(t, e.Rule.Protected)
	require.False(t, e.Rule.Customise)
	require.Equal(t, int64(10), e.Parameters["iterations"], "the branch overrides the default")

	// On a branch without the switch, and without the node that others may need.
	e = expand(t, f, "try", map[string]definitions.Value{"tag": "v1", "targets": []string{"x86_64-unknown-linux-gnu"}, "iterations": int64(3)})
	require.Equal(t, []string{"build-x86_64-unknown-linux-gnu", "measure-x86_64-unknown-linux-gnu-demo", "tell"}, e.Graph.Order())
	require.True(t, e.Rule.Customise)
	require.Equal(t, int64(3), e.Parameters["iterations"])

	// A pattern of branches, and one that nobody named.
	require.Equal(t, "release/*", expand(t, f, "release/1.0", map[string]definitions.Value{"tag": "v1"}).Rule.Name)
	_, err := f.Expand(t.Context(), definitions.Call{Template: "nightly", Branch: "other", Parameters: map[string]definitions.Value{"tag": "v1"}})
	require.ErrorContains(t, err, `the branch "other" is not in branches.yaml, which has main, release/*, try, moved`)
}

// The same folder and parameters give the same bytes; whatever matters gives others.
func TestTheSameTemplateAndParametersGiveTheSameGraph(t *testing.T) {
	t.Parallel()
	first := read(t, example())
	one := expand(t, first, "main", map[string]definitions.Value{"tag": "v1"})
	for range 20 {
		f := read(t, example())
		require.Equal(t, first.Hash(), f.Hash())
		again := expand(t, f, "main", map[string]definitions.Value{"tag": "v1"})
		require.Equal(t, string(one.Graph.Canonical()), string(again.Graph.Canonical()))
		encoded, err := json.Marshal(again)
		require.NoError(t, err)
		want, err := json.Marshal(one)
		require.NoError(t, err)
		require.Equal(t, string(want), string(encoded))
	}
	require.NotEqual(t, one.Hash, expand(t, first, "main", map[string]definitions.Value{"tag": "v2"}).Hash)

	// Only definitions count to the folder's hash.
	files := example()
	files["README.md"] = &fstest.MapFile{Data: []byte("Another text.")}
	files[".git/config.yaml"] = &fstest.MapFile{Data: []byte("a: 1")}
	require.Equal(t, first.Hash(), read(t, files).Hash())
	files["jobs/build.yaml"] = &fstest.MapFile{Data: []byte(buildYAML + "# A comment.\n")}
	changed := read(t, files)
	require.NotEqual(t, first.Hash(), changed.Hash())
	require.Equal(t, one.Hash, expand(t, changed, "main", map[string]definitions.Value{"tag": "v1"}).Hash, "the graph is the same")
}

func TestCheckTriesEveryBranch(t *testing.T) {
	t.Parallel()
	tried, err := read(t, example()).Check(t.Context())
	require.NoError(t, err)
	require.Len(t, tried, 3)
	for i, branch := range []string{"main", "release/*", "try"} {
		require.Equal(t, branch, tried[i].Branch)
		require.Equal(t, "nightly", tried[i].Template)
		require.Positive(t, tried[i].Nodes)
		require.Len(t, tried[i].Hash, 64)
	}

	// What fails on one branch only is found, with the branch and the loop.
	files := example()
	files["graphs/nightly.yaml"] = &fstest.MapFile{Data: []byte(strings.Replace(nightlyYAML, "set == 'demo' || switches.pgo", "10 / switches.shards > 1", 1))}
	_, err = read(t, files).Check(t.Context())
	require.EqualError(t, err, `graphs/nightly.yaml:13:9: the condition "10 / switches.shards > 1" fails: division by zero (on branch try, target = x86_64-unknown-linux-gnu, set = demo)`)

	files["graphs/nightly.yaml"] = &fstest.MapFile{Data: []byte(strings.Replace(nightlyYAML, "example: v1.2.3", "description: A tag.", 1))}
	_, err = read(t, files).Check(t.Context())
	require.EqualError(t, err, `graphs/nightly.yaml:3:3: the parameter "tag" has neither default nor example, so the template cannot be checked; give one of them`)

	// A template may be for some branches only.
	files["graphs/nightly.yaml"] = &fstest.MapFile{Data: []byte("branches: [try]\n" + nightlyYAML)}
	f := read(t, files)
	tried, err = f.Check(t.Context())
	require.NoError(t, err)
	require.Len(t, tried, 1)
	_, err = f.Expand(t.Context(), definitions.Call{Template: "nightly", Branch: "main"})
	require.ErrorContains(t, err, `not for the branch "main"; it is for try`)
}

func TestWithoutAFileOfBranches(t *testing.T) {
	t.Parallel()
	f := read(t, folder("graphs/one.yaml", "nodes:\n  - {name: a, if: \"branch == 'b1'\", notify: {tag: x}}\n  - {name: b, notify: {tag: x}}\n"))
	for branch, nodes := range map[string]int{"b1": 2, "b2": 1} {
		e, err := f.Expand(t.Context(), definitions.Call{Template: "one", Branch: branch})
		require.NoError(t, err)
		require.Equal(t, nodes, e.Graph.Len())
		require.Equal(t, definitions.Branch{Name: branch, Customise: true}, e.Rule)
	}
	require.Empty(t, f.Branches())
	require.Equal(t, "one", f.Templates()[0].Name)
	require.Empty(t, f.JobTemplates())
}

// Each wrong call names the parameter and what there is.
func TestParametersThatAreRefused(t *testing.T) {
	t.Parallel()
	f := read(t, example())
	for says, parameters := range map[string]map[string]definitions.Value{
		`has no parameter "tags"; it has tag, targets, iterations`:          {"tag": "v1", "tags": "v2"},
		`needs a value for its parameter "tag" (string)`:                    {},
		"iterations is 51; use at most 50":                                  {"tag": "v1", "iterations": int64(51)},
		"iterations is 0; use at least 1":                                   {"tag": "v1", "iterations": int64(0)},
		"iterations is of type int, and the value of type string":           {"tag": "v1", "iterations": "5"},
		"iterations is of type int, and float64 is no value of a parameter": {"tag": "v1", "iterations": 5.0},
		"tag is of type string, and the value of type bool":                 {"tag": true},
		`tag "not a tag"`: {"tag": "not a tag"},
	} {
		_, err := f.Expand(t.Context(), definitions.Call{Template: "nightly", Branch: "main", Parameters: parameters})
		require.ErrorIs(t, err, bench.ErrInvalid)
		require.ErrorContains(t, err, says)
	}
	_, err := f.Expand(t.Context(), definitions.Call{Template: "weekly", Branch: "main"})
	require.ErrorContains(t, err, `no graph template "weekly"; there are nightly`)

	parameters, err := f.ParseParameters("nightly", []string{"tag=v1", "targets=a,b", "iterations=7"})
	require.NoError(t, err)
	require.Equal(t, map[string]definitions.Value{"tag": "v1", "targets": []string{"a", "b"}, "iterations": int64(7)}, parameters)
	parameters, err = f.ParseParameters("nightly", []string{`targets=["a,b"]`})
	require.NoError(t, err)
	require.Equal(t, []string{"a,b"}, parameters["targets"])
	for says, one := range map[string]string{
		"write name=value": "tag", `"x" is no value of the parameter iterations, which is of type int`: "iterations=x",
	} {
		_, err := f.ParseParameters("nightly", []string{one})
		require.ErrorContains(t, err, says)
	}
	_, err = f.ParseParameters("nightly", []string{"tag=a", "tag=b"})
	require.ErrorContains(t, err, "given twice")
}

// Each mistake is told with its place.
func TestFoldersThatAreRefused(t *testing.T) {
	t.Parallel()
	node := func(rest string) string { return "nodes:\n  - name: a\n    " + rest + "\n" }
	for _, c := range []struct{ file, text, says string }{
		{"graphs/g.yaml", "", "graphs/g.yaml:1:1: the file is empty"},
		{"graphs/g.yaml", "nodes: [", "this is not YAML"},
		{"graphs/g.yaml", "nodes: []\n---\nnodes: []\n", "a second YAML document"},
		{"graphs/g.yaml", "\xff", "not UTF-8"},
		{"graphs/g.yaml", strings.Repeat("[", 600), "more than 500 brackets"},
		{"graphs/g.yaml", "description: x", `graphs/g.yaml:1:1: the key "nodes" is missing`},
		{"graphs/g.yaml", "nodes: x", "graphs/g.yaml:1:8: this is a string; write a list"},
		{"graphs/g.yaml", "nodes: []\nmore: 1", `graphs/g.yaml:2:1: unknown key "more"; allowed here: description, parameters, branches, nodes`},
		{"graphs/g.yaml", node("notify: {tag: x}\n    notify: {tag: y}"), `graphs/g.yaml:4:5: the key "notify" appears twice; first in line 3`},
		{"graphs/g.yaml", node("notify: {tag: x, txt: y}"), `graphs/g.yaml:3:22: unknown key "txt"; allowed here: tag, text`},
		{"graphs/g.yaml", node("notify: {tag: x}\n    if: !switch"), "graphs/g.yaml:4:9: a value cannot begin with '!'"},
		{"graphs/g.yaml", node("notify: &a {tag: x}"), "anchors and aliases are not supported"},
		{"graphs/g.yaml", node("notify: {tag: x}\n    limit:"), `the key "limit" has no value`},
		{"graphs/g.yaml", node("notify: {tag: x}\n    limit: 5"), `"5" is not a duration`},
		{"graphs/g.yaml", node("notify: {tag: x}\n    latest: maybe"), "write true or false"},
		{"graphs/g.yaml", node("needs: b"), "the node has no job; name a job template with 'job', or write one of benchmark, build"},
		{"graphs/g.yaml", node("notify: {tag: x}\n    compare: {tag: x}"), `a second kind of job`},
		{"graphs/g.yaml", node("notify: {tag: x}\n    job: j"), "the node has a job template and a job of its own"},
		{"graphs/g.yaml", node("job: nothing"), `graphs/g.yaml:3:10: there is no job template "nothing"; there are j`},
		{"graphs/g.yaml", node("job: j\n    with: {tag: x, tags: y}"), `graphs/g.yaml:4:20: the job template j has no parameter "tags"`},
		{"graphs/g.yaml", node("job: j"), `the job template j needs a value for its parameter "tag" (string); give one in 'with'`},
		{"graphs/g.yaml", node("notify: {tag: x}\n    with: {tag: x}"), "'with' fills in a job template"},
		{"graphs/g.yaml", node("notify: {tag: \"${tga}\"}"), "graphs/g.yaml:3:19: the variable ${tga} is unknown here; known are branch"},
		{"graphs/g.yaml", node("notify: {tag: \"$tag\"}"), "after '$' comes a variable, such as ${tag}; write $$ for a dollar sign"},
		{"graphs/g.yaml", node("notify: {tag: \"-x\"}"), `graphs/g.yaml:3:5: job of kind notify: invalid value: tag "-x"`},
		{"graphs/g.yaml", node("notify: {tag: x}\n    if: brnch == 'x'"), "graphs/g.yaml:4:9: condition: undeclared reference to 'brnch' (in container ''); known are branch"},
		{"graphs/g.yaml", node("notify: {tag: x}\n    if: branch == 'x' && switches.y"), "graphs/g.yaml:4:26: condition: undeclared reference to 'switches'"},
		{"graphs/g.yaml", node("notify: {tag: x}\n    if: branch + 'x'"), "the condition gives string; write one that is true or false"},
		{"graphs/g.yaml", node("notify: {tag: x}\n    if: branch =="), "graphs/g.yaml:4:18: condition: Syntax error"},
		{"graphs/g.yaml", node("notify: {tag: x}\n    if: timestamp('2026-01-01T00:00:00Z').getHours('Europe/Berlin') == 1"), "undeclared reference to 'timestamp'"},
		{"graphs/g.yaml", node("notify: {tag: x}\n    if: branch == '" + strings.Repeat("x", 3000) + "'"), "expression code point size exceeds limit"},
		{"graphs/g.yaml", node("notify: {tag: x}\n    if: " + strings.Repeat("(", 200) + "true" + strings.Repeat(")", 200)), "condition: expression recursion limit exceeded"},
		{"graphs/g.yaml", node("notify: {tag: x}\n    if: 5"), "this is a number; write a condition"},
		{"graphs/g.yaml", node("notify: {tag: x}\n    for: {t: x}"), "this is no list; write one, or a parameter of type list"},
		{"graphs/g.yaml", node("notify: {tag: x}\n    for: {branch: [x]}"), `the name "branch" is reserved`},
		{"graphs/g.yaml", node("notify: {tag: x}\n    needs: [{node: b, on: sometimes}]"), "use success, resolved or any"},
		{"graphs/g.yaml", "parameters: {a: {type: text}}\n" + node("notify: {tag: x}"), `type "text" is unknown; use string, int, bool or list (of strings)`},
		{"graphs/g.yaml", "parameters: {A: {type: int}}\n" + node("notify: {tag: x}"), `"A" cannot be a name`},
		{"graphs/g.yaml", "parameters: {a: {type: int, default: x}}\n" + node("notify: {tag: x}"), "graphs/g.yaml:1:38: a is of type int, and this is a string"},
		{"graphs/g.yaml", "parameters: {a: {type: string, one_of: [x], default: y}}\n" + node("notify: {tag: x}"), `a cannot be "y"; use x`},
		{"graphs/g.yaml", "parameters: {a: {type: string, minimum: 1}}\n" + node("notify: {tag: x}"), "minimum is for parameters of type int"},
		{"graphs/g.yaml", "branches: [other]\n" + node("notify: {tag: x}"), `branches.yaml has no branch "other"`},
		{"graphs/G.yaml", node("notify: {tag: x}"), `invalid value: template "G"`},
		{"graphs/sub/g.yaml", node("notify: {tag: x}"), "graphs/sub/g.yaml: this file defines nothing here"},
		{"branchs.yaml", "branches: {}", "branchs.yaml: this file defines nothing here; definitions are branches.yaml, graphs/NAME.yaml and jobs/NAME.yaml"},
		{"jobs/k.yaml", "parameters: {}", "jobs/k.yaml:1:1: the template defines no job"},
		{"jobs/k.yaml", "command: {target: \"${branch}\", steps: [{run: make}]}", `write a command as a list, such as [go, build, ./...]`},
		{"jobs/k.yaml", "benchmark: {tag: x, target: x86_64-unknown-linux-gnu, iterations: many}", "jobs/k.yaml:1:67: this is a string; write a whole number"},
		{"jobs/k.yaml", "benchmark: {tag: x, target: x86_64-unknown-linux-gnu, constraints: {memory: lots}}", "memory"},
		{"branches.yaml", "branches: {main: {protected: true, customise: true}}", "branches.yaml:1:47: the branch is protected: nobody may customise its graphs"},
		{"branches.yaml", "switches: {a: {type: bool}}\nbranches: {main: {}}", `the switch "a" has no default`},
		{"branches.yaml", "branches: {main: {switches: {a: 1}}}", `the switch "a" is not declared`},
		{"branches.yaml", "branches: {main: {parameters: {a: 1}}}", `branches.yaml:1:32: no graph template has a parameter "a"`},
		{"branches.yaml", "branches: {main: {definitions: \"x@-y\"}}", "write repository@revision, or a local directory"},
	} {
		files := folder("branches.yaml", "branches: {main: {}}", "jobs/j.yaml", "parameters: {tag: {type: string}}\nnotify: {tag: \"${tag}\"}", "graphs/first.yaml", node("notify: {tag: x}"))
		files[c.file] = &fstest.MapFile{Data: []byte(c.text)}
		_, err := definitions.Read(files)
		require.ErrorIs(t, err, bench.ErrInvalid, "%s", c.text)
		require.ErrorContains(t, err, c.says, "%s", c.text)
	}
	_, err := definitions.Read(folder("jobs/j.yaml", "notify: {tag: x}"))
	require.EqualError(t, err, "graphs: the folder has no graph template; write one as graphs/NAME.yaml")
}

// What only shows in the graph is told with the place in the template.
func TestGraphsThatATemplateCannotMake(t *testing.T) {
	t.Parallel()
	for says, text := range map[string]string{
		"graphs/g.yaml:2:5: invalid value: the graph has a cycle, so none of its nodes could begin: a → b → a": `nodes:
  - {name: a, needs: b, notify: {tag: x}}
  - {name: b, needs: a, notify: {tag: x}}
`,
		`graphs/g.yaml:2:5: invalid value: two nodes are named "a"`: `nodes:
  - {name: a, for: {n: ["1", "2"]}, notify: {tag: x}}
`,
		`graphs/g.yaml:2:23: the node "a" needs "b", which the graph does not have on branch main; name another, or write {node: "b", optional: true}`: `nodes:
  - {name: a, needs: [b], notify: {tag: x}}
`,
		`the node "a" needs "b-*"`: `nodes:
  - {name: a, needs: ["b-*"], notify: {tag: x}}
`,
		`the node "a" needs "b" on success and on any`: `nodes:
  - {name: a, needs: [b, {node: "b*", on: any}], notify: {tag: x}}
  - {name: b, notify: {tag: x}}
`,
		"the graph has no nodes, so there is nothing to run": `nodes:
  - {name: a, if: false, notify: {tag: x}}
`,
		"${l} is a list and cannot be a part of a text": `parameters: {l: {type: list, default: [x]}}
nodes:
  - {name: "a-${l}", notify: {tag: x}}
`,
		`graphs/g.yaml:3:35: tag is of type string, and this is a list`: `parameters: {l: {type: list, default: [x]}}
nodes:
  - {name: a, job: j, with: {tag: "${l}"}}
`,
		`invalid value: node "-x"`: `nodes:
  - {name: "-${n}", for: {n: [x]}, notify: {tag: x}}
`,
	} {
		f := read(t, folder("graphs/g.yaml", text, "jobs/j.yaml", "parameters: {tag: {type: string}}\nnotify: {tag: \"${tag}\"}"))
		_, err := f.Expand(t.Context(), definitions.Call{Template: "g", Branch: "main"})
		require.ErrorIs(t, err, bench.ErrInvalid)
		require.ErrorContains(t, err, says)
	}
}

// A template of 10,001 nodes is refused with the number, one of 10,000 is not, and loops
// that go round for ever are stopped.
func TestTooManyNodes(t *testing.T) {
	t.Parallel()
	f := read(t, folder("graphs/g.yaml", `parameters:
  a: {type: list}
  b: {type: list}
nodes:
  - {name: "n-${i}-${j}", for: {i: "${a}", j: "${b}"}, notify: {tag: x}}
`))
	list := func(n int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = fmt.Sprint(i)
		}
		return out
	}
	call := func(a, b int) error {
		_, err := f.Expand(t.Context(), definitions.Call{Template: "g", Branch: "main", Parameters: map[string]definitions.Value{"a": list(a), "b": list(b)}})
		return err
	}
	require.NoError(t, call(100, 100))
	require.ErrorContains(t, call(73, 137), "the graph has 10001 nodes; at most 10000 are allowed")
	require.ErrorContains(t, call(10_000, 10_000), "go round more than 100000 times")
	require.ErrorContains(t, call(10_001, 1), "a has 10001 entries; use at most 10000")
}

// A few lines that would make gigabytes, or take for ever, are stopped.
func TestTemplatesThatMakeTooMuch(t *testing.T) {
	t.Parallel()
	many := "[" + strings.Repeat("x, ", 9_000) + "x]"
	for says, text := range map[string]string{
		"its variables make more than 4 MB of this": "parameters: {l: {type: list, default: " + many + "}}\nnodes:\n  - {name: a, command: {target: x86_64-unknown-linux-gnu, steps: [{run: [" + strings.Repeat("\"${l}\", ", 9_000) + "x]}]}}\n",
		"the jobs of this template have more than 32 MB together": "parameters: {l: {type: list, default: " + many + "}}\nnodes:\n  - {name: \"a\", for: {a: \"${l}\"}, notify: {tag: x, text: \"" +
			strings.Repeat("y", 1000) + "\"}}\n  - {name: \"b\", for: {a: \"${l}\"}, command: {target: x86_64-unknown-linux-gnu, steps: [{run: [\"${l}\", \"" + strings.Repeat("z", 60_000) + "\"]}]}}\n",
		"the nodes have more than 500000 needs": "parameters: {l: {type: list, default: " + many + "}}\nnodes:\n  - {name: \"a\", for: {a: \"${l}\"}, needs: [" + strings.Repeat("a, ", 100) + "a], notify: {tag: x}}\n",
	} {
		_, err := read(t, folder("graphs/g.yaml", text)).Expand(t.Context(), definitions.Call{Template: "g", Branch: "main"})
		require.ErrorIs(t, err, bench.ErrInvalid)
		require.ErrorContains(t, err, says)
	}
	names := make([]string, 9_000)
	for i := range names {
		names[i] = fmt.Sprint(i)
	}
	f := read(t, folder("graphs/g.yaml", "parameters: {l: {type: list}}\nnodes:\n  - {name: \"n-${i}\", for: {i: \"${l}\"}, needs: {node: \"*-x\", optional: true}, notify: {tag: x}}\n"))
	_, err := f.Expand(t.Context(), definitions.Call{Template: "g", Branch: "main", Parameters: map[string]definitions.Value{"l": names}})
	require.ErrorContains(t, err, "more than 10000000 names are compared with patterns")
}

// CEL always ends, but may take longer than the world lasts.
func TestConditionsThatTakeTooLong(t *testing.T) {
	t.Parallel()
	forever := "l.all(a, l.all(b, l.all(c, l.all(d, a + b + c + d != 'x'))))"
	template := func(condition string) *definitions.Folder {
		return read(t, folder("graphs/g.yaml", "parameters: {l: {type: list, default: ["+strings.Repeat("y, ", 250)+"y]}}\nnodes:\n  - {name: \"a-${i}\", for: {i: [a"+strings.Repeat(", a", 30)+"]}, if: \""+condition+"\", notify: {tag: x}}\n"))
	}
	call := definitions.Call{Template: "g", Branch: "main"}
	_, err := template(forever).Expand(t.Context(), call)
	require.ErrorIs(t, err, bench.ErrInvalid)
	require.ErrorContains(t, err, "takes more than 1000000 steps; make it simpler, or its lists shorter (on branch main, i = a)")

	// Each alone is allowed, all together are not.
	_, err = template("l.all(a, l.all(b, a + b != 'x')) && i == 'x'").Expand(t.Context(), call)
	require.ErrorContains(t, err, "the conditions of this template take more than 5000000 steps together")

	// A caller that has no time left is told its reason.
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the caller left")
	cancel(gone)
	_, err = template(forever).Expand(ctx, call)
	require.ErrorIs(t, err, gone)
	require.NotErrorIs(t, err, bench.ErrInvalid)
}

func TestDifferencesOfFolders(t *testing.T) {
	t.Parallel()
	before := read(t, example())
	d, err := definitions.Diff(t.Context(), before, read(t, example()))
	require.NoError(t, err)
	require.True(t, d.Empty())

	files := example()
	files["graphs/nightly.yaml"] = &fstest.MapFile{Data: []byte(strings.Replace(nightlyYAML, "default: 5", "default: 6", 1))}
	files["graphs/new.yaml"] = &fstest.MapFile{Data: []byte("branches: [main]\nnodes: [{name: a, notify: {tag: x}}]\n")}
	files["branches.yaml"] = &fstest.MapFile{Data: []byte(strings.NewReplacer("  try:\n", "  try:\n    customise: false\n", "{pgo: true}", "{pgo: true, shards: 3}").Replace(branchesYAML) + "  late: {}\n")}
	d, err = definitions.Diff(t.Context(), before, read(t, files))
	require.NoError(t, err)
	require.False(t, d.Empty())
	require.Equal(t, []string{"branch late is new", "branch main: switches.shards was 2, is 3", "branch try may no longer be customised"}, d.Branches)
	seen := map[string][]string{}
	for _, g := range d.Graphs {
		seen[g.Template+" on "+g.Branch+" "+g.Only] = g.Words
	}
	require.Len(t, seen, 4)
	require.Contains(t, seen, "new on main to")
	require.Contains(t, seen, "nightly on late to")
	require.NotContains(t, seen, "nightly on main ", "the branch overrides the default that changed")
	require.Equal(t, []string{
		"measure-aarch64-unknown-linux-gnu-demo: iterations was 5, is 6", "measure-x86_64-unknown-linux-gnu-demo: iterations was 5, is 6",
	}, seen["nightly on try "])
	require.Contains(t, seen, "nightly on release/* ")
}

// thousand has a template whose parameters make 1,000 jobs in layers.
const thousandYAML = `parameters:
  tag: {type: string}
  items: {type: list}
nodes:
  - name: build
    build: {tag: "${tag}", target: x86_64-unknown-linux-gnu, repository: https://example.org/tool.git, command: [make, all]}
  - name: measure-${item}
    for: {item: "${items}"}
    if: item != 'none' && branch == 'main'
    needs: build
    job: measure
    with: {tag: "${tag}", item: "${item}"}
  - name: compare
    needs: [{node: "measure-*", on: resolved}]
    compare: {tag: "${tag}"}
`

// A graph from a stored template takes below 100 ms for 1,000 jobs.
func BenchmarkExpandAThousandJobs(b *testing.B) {
	f := read(b, folder("graphs/nightly.yaml", thousandYAML, "jobs/measure.yaml", `parameters:
  tag: {type: string}
  item: {type: string}
benchmark: {tag: "${tag}", target: x86_64-unknown-linux-gnu, benchmarks: ["${item}"], iterations: 5, constraints: {cpus: 2, labels: {rack: a}}}
`))
	items := make([]string, 998)
	for i := range items {
		items[i] = fmt.Sprintf("b%03d", i)
	}
	for b.Loop() {
		e := expand(b, f, "main", map[string]definitions.Value{"tag": "v1", "items": items})
		require.Equal(b, 1000, e.Graph.Len())
	}
}

// A folder is the same from its files as from a directory, and as strict.
func TestAFolderFromItsFiles(t *testing.T) {
	t.Parallel()
	folder := read(t, example())
	texts := folder.Files()
	require.ElementsMatch(t, []string{"branches.yaml", "graphs/nightly.yaml", "jobs/build.yaml"}, slices.Collect(maps.Keys(texts)), "other files do not count")
	again, err := definitions.FromFiles(texts)
	require.NoError(t, err)
	require.Equal(t, folder.Hash(), again.Hash())
	parameters := map[string]definitions.Value{"tag": "v1"}
	require.Equal(t, expand(t, folder, "main", parameters).Hash, expand(t, again, "main", parameters).Hash)
	rule, err := again.Rule("moved")
	require.NoError(t, err)
	require.Equal(t, "https://example.org/definitions.git@v2", rule.Definitions)

	for name, want := range map[string]string{
		"README.md": "README.md: this file defines nothing here", "graphs/../x.yaml": "this file defines nothing here", "/graphs/x.yaml": "this file defines nothing here",
		"graphs/Not A Name.yaml": "graphs/Not A Name.yaml: ", "jobs/deep/x.yaml": "this file defines nothing here", "graphs/x.yml": "this file defines nothing here",
	} {
		texts := folder.Files()
		texts[name] = buildYAML
		_, err := definitions.FromFiles(texts)
		require.ErrorIs(t, err, bench.ErrInvalid, name)
		require.ErrorContains(t, err, want)
	}
	_, err = definitions.FromFiles(map[string]string{"graphs/a.yaml": strings.Repeat("# much\n", 2<<20)})
	require.ErrorContains(t, err, "more than 8 MB")
	_, err = definitions.FromFiles(nil)
	require.ErrorContains(t, err, "the folder has no graph template")
}
