package bench_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

func TestAProfileJobIsOneIterationOfOneTestCase(t *testing.T) {
	t.Parallel()
	tc := bench.TestCase{Benchmark: "sort", Target: "x86_64-unknown-linux-gnu"}
	j, err := bench.NewProfileJob("go", "1.26.0", "5f2d", tc, "perf")
	require.NoError(t, err)
	require.Equal(t, bench.KindProfile, j.Kind)
	require.True(t, j.Kind.OwnResults())
	require.True(t, j.Kind.ChildOfRequest())
	require.Contains(t, j.Ref().WorkflowID(), "job/go/1.26.0/sort,perf/")

	for name, c := range map[string]struct{ tag, suite, profiler, want string }{
		"no profiler":          {"1.26.0", "5f2d", "", "names none"},
		"an odd profiler":      {"1.26.0", "5f2d", "per\nf", "profiler"},
		"no artifact":          {"", "5f2d", "perf", "measures no artifact"},
		"no suite":             {"1.26.0", "", "perf", "measures no suite"},
		"no profiler, no case": {"", "", "", "names none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := bench.NewProfileJob("go", c.tag, c.suite, tc, c.profiler)
			require.ErrorIs(t, err, bench.ErrInvalid)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestARequestForAProfileNamesOneTestCase(t *testing.T) {
	t.Parallel()
	by := bench.Submission{Submitter: "ada"}
	one := bench.Selection{Benchmarks: []string{"sort"}}
	r, err := bench.NewProfileRequest("go", "1.26.0", bench.Scope{Selection: one, Profiler: "perf", Versus: "1.25.0"}, by)
	require.NoError(t, err)
	require.Empty(t, r.InTurns(), "it measures nothing")

	for want, scope := range map[string]bench.Scope{
		"name one, such as":                      {Selection: one},
		"a profile is of one test case":          {Profiler: "perf"},
		"cannot be compared with itself":         {Selection: one, Profiler: "perf", Versus: "1.26.0"},
		"one iteration is profiled; leave it":    {Selection: bench.Selection{Benchmarks: one.Benchmarks, Iterations: 2}, Profiler: "perf"},
		"at most one profile, scenario, backend": {Selection: bench.Selection{Benchmarks: []string{"a", "b"}}, Profiler: "perf"},
	} {
		_, err := bench.NewProfileRequest("go", "1.26.0", scope, by)
		require.ErrorContains(t, err, want)
	}
	tracked, err := bench.NewRelease("go", "1.26.0", nil, one, by)
	require.NoError(t, err)
	tracked.Profiler = "perf"
	require.ErrorContains(t, tracked.Validate(), "use type adhoc to profile")
}

func TestAProfileHasTheIDOfItsRun(t *testing.T) {
	t.Parallel()
	id := bench.ProfileIDOf("aaaaaaaaaaaaaaaa-00000001")
	parsed, err := bench.ParseProfileID(string(id))
	require.NoError(t, err)
	require.Equal(t, id, parsed)
	require.Equal(t, id, bench.ProfileIDOf("aaaaaaaaaaaaaaaa-00000001"))
	require.NotEqual(t, id, bench.ProfileIDOf("aaaaaaaaaaaaaaaa-00000002"))
	_, err = bench.ParseProfileID("raaaaaaaaaa")
	require.ErrorContains(t, err, "benchloom profile list")
}
