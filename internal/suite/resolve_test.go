package suite_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/suite"
)

func testPaths() suite.Paths {
	return suite.Paths{Suite: "/s", Artifact: "/a", Prepared: "/p", Work: "/w", Cache: "/c", CPUs: 2}
}

const linux = bench.Target("x86_64-unknown-linux-gnu")

// layered is a suite that sets everything at every level.
const layered = `
name: layered
artifact: {provider: go-toolchain}
iterations: 7
warmups: 1
timeouts: {prepare: 1m, measure: 2m}
pass_env: [HTTP_PROXY]
vars: {who: suite, flags: [], all: ["${flags}", last]}
env: {A: suite, B: suite, CPUS: "${cpus}", HERE: "${work}/x"}
requires: [{command: gcc, reason: needs gcc}]
profiles:
  build: {vars: {who: profile}, env: {B: "${who}"}}
  race: {vars: {flags: [-race, "-p=${cpus}"]}, requires: [{run: [cc, --version], reason: needs a compiler}]}
backends:
  gc: {}
  v3: {env: {GOAMD64: v3}}
procedures:
  compiletime:
    timeouts: {measure: 3m}
    files: programs/${benchmark}
    prepare:
      - {run: [fetch, "${who}"], pass_env: [NO_PROXY, HTTP_PROXY], env: {C: step}}
      - {copy: {from: "${cache}/mod", to: leaf}}
      - {write: {file: leaf/note, text: "costs $$5"}}
    hardlink: [gocache]
    before: [{remove: out}]
    measure:
      run: ["${artifact}/bin/go", build, "${all}", "${scenario}"]
      network: true
      dir: leaf
      env: {GOPROXY: "off"}
      sizes: {"size:binary": "out/*", "size:none": "${nothing}"}
    vars: {nothing: ""}
    scenarios:
      full: {}
      patched:
        vars: {who: scenario}
        env: {A: "${who}"}
        prepare: [{run: [warm], dir: leaf}]
        before: [{append: {file: leaf/x.go, text: "// ${who}"}}, {run: [ask], network: true}]
benchmarks:
  - name: plain
  - name: special
    vars: {who: special}
    iterations: 3
    warmups: 0
    timeouts: {prepare: 5m}
    scenarios:
      full: {measure: {run: [own, "${who}"]}}
      patched: {before: [{replace: {file: leaf/x.go, old: a, new: b}}]}
      extra: {}
  - name: fast
    kind: runtime
    measure: {run: ["${prepared}/bench.test"], output: benchfmt, metrics: [ns/op]}
sets: {quick: {iterations: 2}}
`

var layeredFiles = []string{"programs/plain/x.go", "programs/special/x.go"}

func TestPreparationSaysEverythingInAbsolutePaths(t *testing.T) {
	t.Parallel()
	s := load(t, layered, layeredFiles...)
	got, err := s.Preparation(suite.Variant{Benchmark: "plain", Profile: "build", Backend: "v3", Target: linux}, testPaths())
	require.NoError(t, err)
	// While preparing, ${work} is ${prepared}.
	env := []string{"A=suite", "B=profile", "CPUS=2", "GOAMD64=v3", "HERE=/p/x"}
	require.Equal(t, suite.Preparation{
		Files:    "/s/programs/plain",
		Requires: []suite.Requirement{{Command: "gcc", Env: env, Reason: "needs gcc"}},
		Steps: []suite.Step{
			{
				Run: []string{"fetch", "profile"}, Dir: "/p", PassEnv: []string{"HTTP_PROXY", "NO_PROXY"},
				Env: []string{"A=suite", "B=profile", "C=step", "CPUS=2", "GOAMD64=v3", "HERE=/p/x"},
			},
			{Copy: &suite.FileCopy{From: "/c/mod", To: "/p/leaf"}},
			{Write: &suite.FileText{File: "/p/leaf/note", Text: "costs $5"}},
		},
		Hardlink: []string{"/p/gocache"},
		Timeout:  time.Minute,
	}, got)
}

func TestRequirementsAddUp(t *testing.T) {
	t.Parallel()
	s := load(t, layered, layeredFiles...)
	got, err := s.Preparation(suite.Variant{Benchmark: "special", Profile: "race", Backend: "gc", Target: linux}, testPaths())
	require.NoError(t, err)
	require.Len(t, got.Requires, 2)
	require.Equal(t, []string{"cc", "--version"}, got.Requires[1].Run)
	require.Equal(t, 5*time.Minute, got.Timeout)
}

func TestRecipeOfAProcedure(t *testing.T) {
	t.Parallel()
	s := load(t, layered, layeredFiles...)
	got, err := s.Recipe(bench.TestCase{Benchmark: "plain", Profile: "race", Scenario: "patched", Backend: "gc", Target: linux}, testPaths(), 0)
	require.NoError(t, err)
	env := []string{"A=scenario", "B=suite", "CPUS=2", "HERE=/w/x"}
	require.Equal(t, suite.Recipe{
		Prepare: []suite.Step{{Run: []string{"warm"}, Dir: "/w/leaf", Env: env}},
		Before:  []suite.Step{{Append: &suite.FileText{File: "/w/leaf/x.go", Text: "// scenario"}}, {Run: []string{"ask"}, Dir: "/w", Env: env, Network: true}},
		Measure: suite.Measurement{
			Network: true,
			Run:     []string{"/a/bin/go", "build", "-race", "-p=2", "last", "patched"},
			Dir:     "/w/leaf", Env: []string{"A=scenario", "B=suite", "CPUS=2", "GOPROXY=off", "HERE=/w/x"},
			Sizes: map[bench.Metric]string{"size:binary": "/w/out/*"},
		},
		Iterations: 7, Warmups: 1, Timeout: 3 * time.Minute,
	}, got)
}

func TestABenchmarkSaysItDifferently(t *testing.T) {
	t.Parallel()
	s := load(t, layered, layeredFiles...)
	tc := bench.TestCase{Benchmark: "special", Profile: "build", Scenario: "full", Backend: "gc", Target: linux}

	full, err := s.Recipe(tc, testPaths(), 0)
	require.NoError(t, err)
	require.Equal(t, []string{"own", "special"}, full.Measure.Run)
	require.Equal(t, []suite.Step{{Remove: "/w/out"}}, full.Before, "the procedure's")
	require.Equal(t, 3, full.Iterations)
	require.Zero(t, full.Warmups)

	tc.Scenario = "patched"
	patched, err := s.Recipe(tc, testPaths(), 11)
	require.NoError(t, err)
	require.Equal(t, []suite.Step{{Replace: &suite.Replacement{File: "/w/leaf/x.go", Old: "a", New: "b"}}}, patched.Before)
	require.Equal(t, []string{"/a/bin/go", "build", "last", "patched"}, patched.Measure.Run)
	require.Contains(t, patched.Measure.Env, "A=special", "a benchmark's variable wins over a scenario's")
	require.Equal(t, 11, patched.Iterations)

	tc.Scenario = "extra"
	_, err = s.Recipe(tc, testPaths(), 0)
	require.NoError(t, err)
}

func TestRuntimeBenchmarksHaveNoParameters(t *testing.T) {
	t.Parallel()
	s := load(t, layered, layeredFiles...)
	got, err := s.Recipe(bench.TestCase{Benchmark: "fast", Target: linux}, testPaths(), 0)
	require.NoError(t, err)
	require.Equal(t, suite.OutputBenchfmt, got.Measure.Output)
	require.Equal(t, []string{"/p/bench.test"}, got.Measure.Run)
	require.Equal(t, []bench.Metric{"ns/op"}, got.Measure.Metrics)

	_, err = s.Recipe(bench.TestCase{Benchmark: "fast", Profile: "build", Target: linux}, testPaths(), 0)
	require.ErrorContains(t, err, `benchmark fast has no profile, but "build" was requested`)
}

func TestASuiteRecordsOnlyTheOutputWhereItSaysSo(t *testing.T) {
	t.Parallel()
	s := load(t, `name: lines
artifact: {provider: directory, parameters: {path: "/builds/{tag}"}}
metrics: {aggregate: {ns/op: median}}
benchmarks:
  - {name: own, measure: {run: ["${artifact}/bench.test"], output: benchfmt, record: output}}
  - {name: all, measure: {run: ["${artifact}/bench.test"], output: benchfmt, record: all}}
`)
	for name, want := range map[string]bool{"own": true, "all": false} {
		got, err := s.Recipe(bench.TestCase{Benchmark: name, Target: linux}, testPaths(), 0)
		require.NoError(t, err)
		require.Equal(t, want, got.Measure.OnlyOutput, name)
	}
	require.Equal(t, suite.AggregateMedian, s.Aggregation("Parse/large ns/op"), "for every line")
	require.Equal(t, suite.AggregateMax, s.Aggregation("Parse/large MB/s"))
}

func TestRecipesOfUnknownTestCasesAreRefused(t *testing.T) {
	t.Parallel()
	s := load(t, layered, layeredFiles...)
	good := bench.TestCase{Benchmark: "plain", Profile: "build", Scenario: "full", Backend: "gc", Target: linux}
	for want, change := range map[string]func(*bench.TestCase){
		`unknown benchmark "other"; the suite has plain, special, fast`:  func(tc *bench.TestCase) { tc.Benchmark = "other" },
		`unknown profile "opt"; the suite has build, race`:               func(tc *bench.TestCase) { tc.Profile = "opt" },
		`profile "BUILD": write it as the suite does`:                    func(tc *bench.TestCase) { tc.Profile = "BUILD" },
		`unknown backend ""; the suite has gc, v3`:                       func(tc *bench.TestCase) { tc.Backend = "" },
		`unknown scenario of plain "extra"; the suite has full, patched`: func(tc *bench.TestCase) { tc.Scenario = "extra" },
	} {
		tc := good
		change(&tc)
		_, err := s.Recipe(tc, testPaths(), 0)
		require.ErrorIs(t, err, bench.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
}

// A few short lines could otherwise fill memory or take for ever.
func TestExpansionOfVariablesIsBounded(t *testing.T) {
	t.Parallel()
	document := func(seed string) string {
		var vars strings.Builder
		fmt.Fprintf(&vars, "vars:\n  v0: %q\n", seed)
		for i := range 15 {
			fmt.Fprintf(&vars, "  v%d: %q\n", i+1, strings.Repeat(fmt.Sprintf("${v%d}", i), 10))
		}
		return "name: bomb\nartifact: {provider: goroot}\nbenchmarks: [{name: a, measure: {run: [\"${v15}\"]}}]\n" + vars.String()
	}
	for _, seed := range []string{"", "0123456789"} {
		_, err := loadText(document(seed))
		require.ErrorIs(t, err, bench.ErrInvalid)
		require.Regexp(t, "longer than|contains more than", err.Error())
	}
}
