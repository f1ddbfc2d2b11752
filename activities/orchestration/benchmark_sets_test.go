package orchestration_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// The benchmarks of a project with benchmark sets are measured on the pool that
// their set is bound to, whatever else is registered.
func TestBenchmarkSetsBindJobsToPools(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"benchmark_sets": [
		{"name": "a", "pool": "refuge", "benchmarks": ["sort"]},
		{"name": "b", "pool": "main", "benchmarks": ["gin"]}]}`)
	b.register("c1")
	b.registerIn("r1", refuge)
	b.registerIn("largest", bench.Pool{Target: target, SizeClass: 16, Name: "largest"})
	jobs := b.jobs(b.running("1.26.0"))
	require.Len(t, jobs, 2)
	for _, j := range jobs {
		want := map[string]string{"gin": pool.TaskQueue(), "sort": refuge.TaskQueue()}[j.TestCases[0].Benchmark]
		require.Len(t, j.TestCases, 1)
		require.Equal(t, want, j.TaskQueue)
	}
}

// Without benchmark sets of its target a request has one job per kind, backend
// and profile, with all benchmarks.
func TestBenchmarkSetsOfAnotherTargetBindNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"benchmark_sets": [{"name": "a", "pool": "nowhere", "benchmarks": ["gin", "sort"], "targets": ["aarch64-unknown-linux-gnu"]}]}`)
	b.register("c1")
	for _, j := range b.jobs(b.running("1.26.0")) {
		require.Equal(t, pool.TaskQueue(), j.TaskQueue)
	}
}

func TestInvalidBenchmarkSetsFailTheRequest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ config, want string }{
		"incomplete":     {`{"benchmark_sets": [{"name": "a", "pool": "main", "benchmarks": ["gin"]}]}`, "no set has sort"},
		"not in suite":   {`{"benchmark_sets": [{"name": "a", "pool": "main", "benchmarks": ["gin", "sort", "tar"]}]}`, "the suite has no benchmark tar"},
		"pool not known": {`{"benchmark_sets": [{"name": "a", "pool": "nowhere", "benchmarks": ["gin", "sort"]}]}`, "no collector is registered that can run x86_64-unknown-linux-gnu in pool nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, c.config)
			b.register("c1")
			out, err := b.Expand(t.Context(), protocol.ExpandInput{Request: b.admitted("1.26.0"), Stage: bench.StageOwn})
			if err == nil {
				require.Contains(t, out.Failed, c.want)
				return
			}
			var application *temporal.ApplicationError
			require.ErrorAs(t, err, &application)
			require.Equal(t, protocol.ErrTypePermanent, application.Type())
			require.ErrorContains(t, err, c.want)
		})
	}
}
