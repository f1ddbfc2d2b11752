package bench_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

func TestFailoverIsADurationOrNever(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"": 5 * time.Minute, "never": 0, "90s": 90 * time.Second, "720h": 720 * time.Hour} {
		c := bench.ProjectConfig{FailoverAfter: text}
		require.NoError(t, c.Check(), text)
		require.Equal(t, want, c.Failover(), text)
	}
	for _, text := range []string{"0", "0s", "500ms", "-5m", "721h", "5", "soon"} {
		require.ErrorContains(t, bench.ProjectConfig{FailoverAfter: text}.Check(), "failover_after \""+text+"\": use a duration from 1s to 720h", text)
	}
}

func TestBenchmarkSetsAreDisjoint(t *testing.T) {
	t.Parallel()
	const arm = bench.Target("aarch64-unknown-linux-gnu")
	set := func(name string, targets []bench.Target, benchmarks ...string) bench.BenchmarkSet {
		return bench.BenchmarkSet{Name: name, Pool: "pool-" + name, Benchmarks: benchmarks, Targets: targets}
	}
	for name, c := range map[string]struct {
		sets []bench.BenchmarkSet
		want string // error; empty: none
	}{
		"two":                         {[]bench.BenchmarkSet{set("a", nil, "gin", "sort"), set("b", nil, "tar")}, ""},
		"the same on other targets":   {[]bench.BenchmarkSet{set("a", []bench.Target{linux}, "gin"), set("b", []bench.Target{arm}, "gin")}, ""},
		"a benchmark in two sets":     {[]bench.BenchmarkSet{set("a", nil, "gin"), set("b", nil, "sort", "gin")}, `benchmark set "b": benchmark gin is in benchmark set a as well`},
		"in two sets of one target":   {[]bench.BenchmarkSet{set("a", nil, "gin"), set("b", []bench.Target{arm}, "gin")}, "benchmark gin is in benchmark set a as well"},
		"a benchmark twice":           {[]bench.BenchmarkSet{set("a", nil, "gin", "gin")}, "it has benchmark gin twice"},
		"two sets of a name":          {[]bench.BenchmarkSet{set("a", nil, "gin"), set("a", nil, "sort")}, "two have this name"},
		"an empty set":                {[]bench.BenchmarkSet{set("a", nil)}, "it has no benchmarks"},
		"a name that is none":         {[]bench.BenchmarkSet{set("A b", nil, "gin")}, `benchmark set "A b"`},
		"a pool that cannot be one":   {[]bench.BenchmarkSet{{Name: "a", Pool: "x/y", Benchmarks: []string{"gin"}}}, `pool "x/y"`},
		"a target that cannot be one": {[]bench.BenchmarkSet{set("a", []bench.Target{"arm"}, "gin")}, `target "arm"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := bench.ProjectConfig{BenchmarkSets: c.sets}.Check()
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, bench.ErrInvalid)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestBenchmarkSetsCoverAllBenchmarks(t *testing.T) {
	t.Parallel()
	const arm = bench.Target("aarch64-unknown-linux-gnu")
	c := bench.ProjectConfig{BenchmarkSets: []bench.BenchmarkSet{
		{Name: "a", Pool: "one", Benchmarks: []string{"gin", "sort"}, Targets: []bench.Target{linux}},
		{Name: "b", Pool: "two", Benchmarks: []string{"tar"}, Targets: []bench.Target{linux}},
	}}
	require.NoError(t, c.CheckBenchmarkSets([]bench.Target{linux, arm}, []string{"tar", "sort", "gin"}), "a target without sets binds nothing")
	require.Empty(t, c.BenchmarkSetsOf(arm))
	require.Len(t, c.BenchmarkSetsOf(linux), 2)

	err := c.CheckBenchmarkSets([]bench.Target{linux}, []string{"gin", "sort", "tar", "uniq", "wc"})
	require.ErrorIs(t, err, bench.ErrInvalid)
	require.ErrorContains(t, err, "no set has uniq, wc")
	err = c.CheckBenchmarkSets([]bench.Target{linux}, []string{"gin", "tar"})
	require.ErrorContains(t, err, `benchmark set "a": the suite has no benchmark sort; it has gin, tar`)
}
