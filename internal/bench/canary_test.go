package bench_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

func TestCanariesMeasureWhatIsShort(t *testing.T) {
	t.Parallel()
	compiled := func(benchmark, scenario string) bench.TestCase {
		return bench.TestCase{Benchmark: benchmark, Profile: "opt", Scenario: scenario, Backend: "gc", Target: "x86_64-unknown-linux-gnu"}
	}
	gin, ginAgain, chi, echo, fiber := compiled("gin", "full"), compiled("gin", "none"), compiled("chi", "full"), compiled("echo", "full"), compiled("fiber", "full")
	run := bench.TestCase{Benchmark: "sort", Target: "x86_64-unknown-linux-gnu"}
	for name, c := range map[string]struct {
		seconds map[bench.TestCase]float64
		want    []string // benchmarks; nil: no canary
	}{
		"nothing is known":             {nil, nil},
		"the shortest alone":           {map[bench.TestCase]float64{gin: 2, run: 3}, []string{"gin"}},
		"what is run":                  {map[bench.TestCase]float64{gin: 2, run: 1}, []string{"sort"}},
		"three alike":                  {map[bench.TestCase]float64{gin: 0.1, ginAgain: 0.2, chi: 0.3, echo: 0.4, fiber: 0.5, run: 0.6}, []string{"gin", "chi", "echo"}},
		"as many as there is time for": {map[bench.TestCase]float64{gin: 2, chi: 2.2, echo: 2.3}, []string{"gin", "chi"}},
		"exactly two minutes":          {map[bench.TestCase]float64{gin: 120. / 28}, []string{"gin"}},
		"too long":                     {map[bench.TestCase]float64{gin: 4.3}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			selection, ok := bench.CanaryCases(c.seconds)
			require.Equal(t, c.want != nil, ok)
			require.Equal(t, c.want, selection.Benchmarks)
			if ok && c.want[0] == "gin" {
				require.Equal(t, [][]string{{"opt"}, {"full"}, {"gc"}}, [][]string{selection.Profiles, selection.Scenarios, selection.Backends})
			}
		})
	}
}

func TestACanaryIsARequestForOneMachine(t *testing.T) {
	t.Parallel()
	c := bench.Collector{Name: "c1", Target: "x86_64-unknown-linux-gnu", SizeClass: 2, Pool: "main"}
	for _, tag := range []string{"1.0.0", strings.Repeat("f", 128)} {
		r, err := bench.NewCanary("go", tag, c, bench.Selection{Benchmarks: []string{"gin"}}, "idle")
		require.NoError(t, err, "its second tag is one as well")
		require.NotEqual(t, r.Tag, r.Versus)
		require.Equal(t, bench.SizeClass(2), r.SizeClass)
		require.Equal(t, &bench.Constraints{Machines: []string{"c1"}, Canary: true}, r.Constraints)
		of, err := bench.Constraints{CPUs: 2}.And(*r.Constraints)
		require.NoError(t, err)
		require.True(t, of.Canary, "a project's constraints keep it one")
	}
	pool := bench.Pool{Target: c.Target, SizeClass: 2, Name: "main"}
	own := bench.ForCanaries(pool, "c1").TaskQueue()
	require.NotEqual(t, own, bench.Place{Pool: pool, Set: []string{"c1"}}.TaskQueue())
	require.True(t, bench.IsSet(own))
}
