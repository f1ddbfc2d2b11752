package suite_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/suite"
)

const arm = bench.Target("aarch64-unknown-linux-gnu")

// matrix is a suite with every axis and some excluded combinations.
const matrix = `
name: matrix
artifact: {provider: rustup}
targets: [x86_64-unknown-linux-gnu, aarch64-unknown-linux-gnu]
profiles: {check: {}, opt: {}, doc: {}}
backends: {llvm: {}, cranelift: {targets: [x86_64-unknown-linux-gnu]}}
procedures:
  compiletime:
    measure: {run: [cargo]}
    scenarios: {full: {}, incr-full: {}, incr-patched: {}}
    exclude:
      - {profile: doc, scenario: [incr-full, incr-patched], reason: no incremental state}
      - {backend: cranelift, profile: [check, doc], reason: no code}
  runtime: {backends: [llvm], measure: {run: [x]}}
benchmarks:
  - {name: serde, kind: compiletime}
  - {name: huge, kind: compiletime, min_size: 4, exclude: [{scenario: incr-patched, reason: too long}, {target: aarch64-unknown-linux-gnu, profile: opt, reason: broken}]}
  - {name: hash, kind: runtime}
sets:
  small: {benchmarks: [serde], profiles: [check], scenarios: [full], backends: [llvm], iterations: 3}
  fast: {benchmarks: [hash], targets: [x86_64-unknown-linux-gnu]}
`

// outline returns the essentials of plans, in order.
func outline(plans []suite.JobPlan) []string {
	var lines []string
	for _, p := range plans {
		line := string(p.Kind) + " " + p.Target.Arch() + " " + p.Backend + " " + p.Profile + ":"
		for _, tc := range p.TestCases {
			line += " " + tc.Benchmark + "/" + tc.Scenario
		}
		lines = append(lines, line)
	}
	return lines
}

func TestHasKnowsExactlyWhatIsMeasured(t *testing.T) {
	t.Parallel()
	s := load(t, matrix)
	plans, err := s.Expand(bench.Selection{})
	require.NoError(t, err)
	for _, p := range plans {
		for _, tc := range p.TestCases {
			require.True(t, s.Has(tc), "%s", tc)
		}
	}
	for _, change := range []func(*bench.TestCase){
		func(tc *bench.TestCase) { tc.Benchmark = "gone" },
		func(tc *bench.TestCase) { tc.Profile, tc.Scenario = "doc", "incr-full" }, // excluded
		func(tc *bench.TestCase) { tc.Backend, tc.Profile = "cranelift", "check" },
		func(tc *bench.TestCase) { tc.Scenario = "" },
		func(tc *bench.TestCase) { tc.Target = "riscv64gc-unknown-linux-gnu" },
	} {
		tc := plans[0].TestCases[0]
		change(&tc)
		require.False(t, s.Has(tc), "%s", tc)
	}
}

func TestEverythingInAFixedOrder(t *testing.T) {
	t.Parallel()
	s := load(t, matrix)
	plans, err := s.Expand(bench.Selection{})
	require.NoError(t, err)
	require.Equal(t, []string{
		"compiletime x86_64 llvm check: serde/full serde/incr-full serde/incr-patched huge/full huge/incr-full",
		"compiletime x86_64 llvm opt: serde/full serde/incr-full serde/incr-patched huge/full huge/incr-full",
		"compiletime x86_64 llvm doc: serde/full huge/full",
		"compiletime x86_64 cranelift opt: serde/full serde/incr-full serde/incr-patched huge/full huge/incr-full",
		"compiletime aarch64 llvm check: serde/full serde/incr-full serde/incr-patched huge/full huge/incr-full",
		"compiletime aarch64 llvm opt: serde/full serde/incr-full serde/incr-patched",
		"compiletime aarch64 llvm doc: serde/full huge/full",
		"runtime x86_64 llvm : hash/",
		"runtime aarch64 llvm : hash/",
	}, outline(plans))
	require.Equal(t, bench.SizeClass(4), plans[0].MinSize, "the largest of its benchmarks")
	require.Equal(t, bench.SizeClass(1), plans[5].MinSize)
	for _, plan := range plans {
		for _, tc := range plan.TestCases {
			require.Equal(t, []any{plan.Target, plan.Backend, plan.Profile}, []any{tc.Target, tc.Backend, tc.Profile})
			_, err := s.Recipe(tc, testPaths(), 0)
			require.NoError(t, err)
		}
	}
}

func TestSelectionsNarrow(t *testing.T) {
	t.Parallel()
	s := load(t, matrix)
	for name, test := range map[string]struct {
		selection bench.Selection
		want      []string
	}{
		"a benchmark": {
			bench.Selection{Benchmarks: []string{"hash"}, Targets: []bench.Target{arm}},
			[]string{"runtime aarch64 llvm : hash/"},
		},
		"scenarios, in the suite's order whatever is asked": {
			bench.Selection{Benchmarks: []string{"serde"}, Scenarios: []string{"incr-patched", "full", "full"}, Profiles: []string{"check"}, Backends: []string{"llvm"}, Targets: []bench.Target{linux}},
			[]string{"compiletime x86_64 llvm check: serde/full serde/incr-patched"},
		},
		"case does not matter": {
			bench.Selection{Benchmarks: []string{"SERDE"}, Profiles: []string{"Doc"}, Backends: []string{"LLVM"}, Targets: []bench.Target{linux}},
			[]string{"compiletime x86_64 llvm doc: serde/full"},
		},
		"runtime benchmarks have no profile to be left out by": {
			bench.Selection{Profiles: []string{"doc"}, Targets: []bench.Target{linux}},
			[]string{"compiletime x86_64 llvm doc: serde/full huge/full", "runtime x86_64 llvm : hash/"},
		},
		"runtime benchmarks are left out by a backend that is not theirs": {
			bench.Selection{Backends: []string{"cranelift"}, Scenarios: []string{"full"}},
			[]string{"compiletime x86_64 cranelift opt: serde/full huge/full"},
		},
		"a set": {
			bench.Selection{Set: "small", Targets: []bench.Target{linux}},
			[]string{"compiletime x86_64 llvm check: serde/full"},
		},
		"a set with something else in a place of its own": {
			bench.Selection{Set: "Small", Profiles: []string{"opt"}, Targets: []bench.Target{linux}},
			[]string{"compiletime x86_64 llvm opt: serde/full"},
		},
		"a set with targets": {
			bench.Selection{Set: "fast"},
			[]string{"runtime x86_64 llvm : hash/"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plans, err := s.Expand(test.selection)
			require.NoError(t, err)
			require.Equal(t, test.want, outline(plans))
		})
	}
}

func TestUnknownNamesAreErrorsThatListTheValidOnes(t *testing.T) {
	t.Parallel()
	s := load(t, matrix)
	for want, selection := range map[string]bench.Selection{
		`unknown benchmark "serd"; the suite has serde, huge, hash`:                                                       {Benchmarks: []string{"serd"}},
		`unknown profile "debug"; the suite has check, opt, doc`:                                                          {Profiles: []string{"check", "debug"}},
		`unknown scenario "incr"; the suite has full, incr-full, incr-patched`:                                            {Scenarios: []string{"incr"}},
		`unknown backend "gcc"; the suite has llvm, cranelift`:                                                            {Backends: []string{"gcc"}},
		`unknown target "riscv64gc-unknown-linux-gnu"; the suite has x86_64-unknown-linux-gnu, aarch64-unknown-linux-gnu`: {Targets: []bench.Target{"riscv64gc-unknown-linux-gnu"}},
		`unknown set "large"; the suite has small, fast`:                                                                  {Set: "large"},
		`the selection has no test cases`:                                                                                 {Benchmarks: []string{"huge"}, Scenarios: []string{"incr-patched"}},
	} {
		_, err := s.Expand(selection)
		require.ErrorIs(t, err, bench.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
}

func TestASetNamedDefaultIsUsedWhenNothingIsAskedFor(t *testing.T) {
	t.Parallel()
	s := load(t, matrix+"  default: {profiles: [opt], iterations: 9}\n")
	plans, err := s.Expand(bench.Selection{Benchmarks: []string{"serde"}, Targets: []bench.Target{linux}})
	require.NoError(t, err)
	require.Equal(t, []string{
		"compiletime x86_64 llvm opt: serde/full serde/incr-full serde/incr-patched",
		"compiletime x86_64 cranelift opt: serde/full serde/incr-full serde/incr-patched",
	}, outline(plans))

	require.Equal(t, 9, s.Iterations(bench.Selection{}))
	require.Equal(t, 3, s.Iterations(bench.Selection{Set: "small"}), "the set's own")
	require.Equal(t, 0, s.Iterations(bench.Selection{Set: "fast"}), "left to the suite")
	require.Equal(t, 2, s.Iterations(bench.Selection{Set: "small", Iterations: 2}))
}

func TestWhatIsNotMeasuredHasNoRecipe(t *testing.T) {
	t.Parallel()
	s := load(t, matrix)
	for _, tc := range []bench.TestCase{
		{Benchmark: "huge", Profile: "check", Scenario: "incr-patched", Backend: "llvm", Target: linux},
		{Benchmark: "serde", Profile: "opt", Scenario: "full", Backend: "cranelift", Target: arm},
		{Benchmark: "serde", Profile: "opt", Scenario: "full", Backend: "llvm", Target: "riscv64gc-unknown-linux-gnu"},
	} {
		_, err := s.Recipe(tc, testPaths(), 0)
		require.ErrorIs(t, err, bench.ErrInvalid)
		require.ErrorContains(t, err, "the suite does not measure "+tc.String())
	}
}

func TestBenchmarksWithoutParametersHaveOneTestCase(t *testing.T) {
	t.Parallel()
	s := load(t, "name: plain\nartifact: {provider: goroot}\ntargets: [x86_64-unknown-linux-gnu]\nprocedures: {compiletime: {measure: {run: [x]}}}\nbenchmarks: [{name: a}]\n")
	plans, err := s.Expand(bench.Selection{})
	require.NoError(t, err)
	require.Equal(t, []suite.JobPlan{{
		Kind: bench.KindCompileTime, Target: linux, MinSize: 1,
		TestCases: []bench.TestCase{{Benchmark: "a", Target: linux}},
	}}, plans)
}

func TestASuiteThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	document := "name: large\nartifact: {provider: goroot}\nprocedures:\n  compiletime:\n    measure: {run: [x]}\n    scenarios: {" + list("s", 50) + "}\nprofiles: {" + list("p", 50) + "}\nbackends: {" + list("b", 5) + "}\nbenchmarks: [{name: a}]\n"
	_, err := loadText(document)
	require.ErrorContains(t, err, "the suite has 25000 combinations of benchmarks, profiles, scenarios, backends and targets; at most 20000 are possible")
}
