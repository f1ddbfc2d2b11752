package suite_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/suite"
)

// count returns the number of a suite's benchmarks of a kind.
func count(s *suite.Suite, kind bench.JobKind) int {
	return len(slices.DeleteFunc(s.Benchmarks(), func(name string) bool { return s.Kind(name) != kind }))
}

// resolveEverything resolves all test cases of a selection.
func resolveEverything(t *testing.T, s *suite.Suite, selection bench.Selection) (cases int) {
	t.Helper()
	plans, err := s.Expand(selection)
	require.NoError(t, err)
	for _, plan := range plans {
		for _, tc := range plan.TestCases {
			_, err := bench.NewTestCase(tc)
			require.NoError(t, err)
			_, err = s.Preparation(suite.VariantOf(tc), testPaths())
			require.NoError(t, err)
			_, err = s.Recipe(tc, testPaths(), s.Iterations(selection))
			require.NoError(t, err)
			cases++
		}
	}
	return cases
}

func TestTheSuitesThatComeWithBenchloom(t *testing.T) {
	t.Parallel()
	for name, least := range map[string]struct{ compiletime, runtime int }{
		"go":    {compiletime: 8, runtime: 8},
		"rustc": {compiletime: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := "../../suites/" + name
			report, err := suite.Check(dir)
			require.NoError(t, err)
			require.Empty(t, messages(report))

			s, err := suite.LoadDir(dir)
			require.NoError(t, err)
			require.Equal(t, name, s.Name())
			require.GreaterOrEqual(t, count(s, bench.KindCompileTime), least.compiletime)
			require.GreaterOrEqual(t, count(s, bench.KindRuntime), least.runtime)
			require.Contains(t, s.Sets(), "demo")
			require.Equal(t, 5, s.Iterations(bench.Selection{Set: "demo"}))

			all := resolveEverything(t, s, bench.Selection{
				Benchmarks: s.Benchmarks(), Profiles: s.Profiles(), Scenarios: s.Scenarios(), Backends: s.Backends(),
			})
			for _, set := range append(s.Sets(), "") {
				require.LessOrEqual(t, resolveEverything(t, s, bench.Selection{Set: set}), all)
			}
		})
	}
}

// A measured command must neither reach the network nor see the variables of
// steps that download.
func TestTheGoSuiteMeasuresOffline(t *testing.T) {
	t.Parallel()
	s, err := suite.LoadDir("../../suites/go")
	require.NoError(t, err)
	plans, err := s.Expand(bench.Selection{Targets: []bench.Target{linux}})
	require.NoError(t, err)
	for _, plan := range plans {
		for _, tc := range plan.TestCases {
			recipe, err := s.Recipe(tc, testPaths(), 0)
			require.NoError(t, err)
			if plan.Kind == bench.KindCompileTime {
				require.Contains(t, recipe.Measure.Env, "GOPROXY=off", tc)
				require.Contains(t, recipe.Measure.Env, "GOCACHE=/w/gocache", tc)
			}
			for _, step := range slices.Concat(recipe.Prepare, recipe.Before) {
				require.Empty(t, step.PassEnv, tc)
				if step.Run != nil {
					require.Contains(t, step.Env, "GOPROXY=off", tc)
				}
			}
		}
	}
}

// Modules are pinned, and none is part of the repository.
func TestTheGoSuitePinsItsModules(t *testing.T) {
	t.Parallel()
	s, err := suite.LoadDir("../../suites/go")
	require.NoError(t, err)
	for _, name := range s.Benchmarks() {
		variant := suite.Variant{Benchmark: name, Backend: "gc", Target: linux}
		if s.Kind(name) == bench.KindCompileTime {
			variant.Profile = "build"
		}
		prepared, err := s.Preparation(variant, testPaths())
		require.NoError(t, err)
		require.True(t, slices.ContainsFunc(prepared.Steps, func(step suite.Step) bool {
			return slices.Contains(step.Run, "download") && strings.Contains(step.Run[len(step.Run)-1], "@v")
		}), name)
	}
}

func TestTheProfilersOfTheSuitesThatComeWithBenchloom(t *testing.T) {
	t.Parallel()
	load := func(name string) *suite.Suite {
		s, err := suite.LoadDir("../../suites/" + name)
		require.NoError(t, err)
		return s
	}
	golang, rust := load("go"), load("rustc")
	require.Equal(t, []string{"cachegrind", "callgrind", "dhat", "perf", "pprof-cpu"}, golang.Profilers("shfmt"))
	require.Equal(t, []string{"cachegrind", "callgrind", "dhat", "perf", "pprof-allocs", "pprof-cpu", "pprof-heap", "pprof-mutex"}, golang.Profilers("fft"))
	require.Equal(t, []string{"cachegrind", "callgrind", "dhat", "perf", "self-profile"}, rust.Profilers("traits"))

	compile := bench.TestCase{Benchmark: "shfmt", Profile: "build", Scenario: "full", Backend: "gc", Target: linux}
	p, err := golang.Profiling(compile, "pprof-cpu", testPaths())
	require.NoError(t, err)
	require.Equal(t, []string{"build", "-o", "/w/out/", "-toolexec=sh '/s/profile-tool.sh' '/w/profiles'", "./cmd/shfmt"}, p.Measure.Run[1:])
	require.Contains(t, p.Measure.Env, "GOPROXY=off", "a profile is made offline, too")

	heap, err := golang.Profiling(bench.TestCase{Benchmark: "fft", Backend: "gc", Target: linux}, "pprof-heap", testPaths())
	require.NoError(t, err)
	require.Equal(t, "inuse_space", heap.Type)

	program, err := rust.ProfilerProgram(bench.TestCase{Benchmark: "traits", Profile: "debug", Scenario: "full", Backend: "llvm", Target: linux}, "perf")
	require.NoError(t, err)
	require.Equal(t, "perf", program.Name, "the suite's own is placed like the common one")
}
