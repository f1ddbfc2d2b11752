package plan_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
	"github.com/benchloom/benchloom/internal/plan"
)

func TestChunksAreSizedByMachinesAndDurations(t *testing.T) {
	t.Parallel()
	even := func(n int) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = 10
		}
		return out
	}
	for name, c := range map[string]struct {
		ask  plan.ChunkAsk
		want int
	}{
		"a machine that is alone leans to the minimum": {plan.ChunkAsk{Seconds: even(12), Min: 3, Max: 6, Idle: 1}, 4},
		"and takes all without one":                    {plan.ChunkAsk{Seconds: even(12), Min: 1, Max: 6, Idle: 1}, 12},
		"many machines share up to the maximum":        {plan.ChunkAsk{Seconds: even(12), Min: 1, Max: 6, Idle: 40}, 2},
		"a handful share":                              {plan.ChunkAsk{Seconds: even(12), Min: 1, Max: 6, Idle: 3}, 4},
		"the last part has the rest":                   {plan.ChunkAsk{Seconds: even(5), Formed: 5, Min: 1, Max: 6, Idle: 9}, 5},
		"long ones count more":                         {plan.ChunkAsk{Seconds: []float64{60, 10, 10, 10, 10, 10, 10}, Min: 2, Max: 2, Idle: 1}, 1},
		"and short ones less":                          {plan.ChunkAsk{Seconds: []float64{10, 10, 10, 10, 10, 10, 60}, Min: 2, Max: 2, Idle: 1}, 6},
		"what was never measured counts as average":    {plan.ChunkAsk{Seconds: []float64{0, 0, 10, 10}, Min: 2, Max: 2, Idle: 1}, 2},
		"nothing was measured":                         {plan.ChunkAsk{Seconds: make([]float64, 8), Min: 4, Max: 8, Idle: 2}, 2},
		"one block for each":                           {plan.ChunkAsk{Seconds: []float64{1, 1, 1000}, Min: 3, Max: 3, Idle: 1}, 1},
	} {
		require.Equal(t, c.want, plan.ChunkSize(c.ask), name)
	}
}

// However machines come and go, there are between Min and Max parts, and each block is in one.
func TestRandomChunksCoverAllBlocks(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5000) {
		random := rand.New(rand.NewPCG(seed, 3))
		left := make([]float64, 1+random.IntN(40))
		for i := range left {
			left[i] = float64(random.IntN(4)) * 100 * random.Float64()
		}
		most := 1 + random.IntN(len(left))
		least := 1 + random.IntN(most)
		formed := 0
		for len(left) > 0 {
			n := plan.ChunkSize(plan.ChunkAsk{Seconds: left, Formed: formed, Min: least, Max: most, Idle: 1 + random.IntN(8)})
			require.Positive(t, n, "seed %d", seed)
			require.LessOrEqual(t, n, len(left), "seed %d", seed)
			left, formed = left[n:], formed+1
		}
		require.GreaterOrEqual(t, formed, least, "seed %d", seed)
		require.LessOrEqual(t, formed, most, "seed %d", seed)
	}
}

// A benchmark that allows it is divided into parts of whole blocks, each a job of its own.
func TestABenchmarkIsDividedIntoChunks(t *testing.T) {
	t.Parallel()
	divided := func(c *graph.Chunks) []bench.PlannedJob {
		jobs, err := planNode(t, node(t, "measure", graph.Benchmark{Tag: "c7", Target: linux, Chunks: c}))
		require.NoError(t, err)
		return jobs
	}
	one := divided(nil)
	require.Equal(t, one, divided(&graph.Chunks{Min: 1, Max: 1}))
	whole := make(map[bench.JobKind]bench.PlannedJob)
	for _, j := range one {
		require.Empty(t, j.ChunkSet)
		whole[j.Kind] = j
	}
	keys, cases := make(map[bench.JobKey]bool), make(map[bench.TestCase]int)
	parts := make(map[bench.JobKey]int)
	owner := make(map[bench.TestCase]int) // chunk by block
	for _, j := range divided(&graph.Chunks{Min: 2, Max: 100}) {
		require.NoError(t, j.Validate())
		require.False(t, keys[j.Key])
		keys[j.Key] = true
		for _, tc := range j.TestCases {
			cases[tc]++
			if j.ChunkSet != "" {
				chunk, known := owner[plan.Block(tc)]
				require.True(t, !known || chunk == j.Chunk, "a block is measured as a whole")
				owner[plan.Block(tc)] = j.Chunk
			}
		}
		if j.ChunkSet == "" {
			continue
		}
		parts[j.ChunkSet]++
		require.Equal(t, parts[j.ChunkSet], j.Chunk)
		require.Equal(t, []any{whole[j.Kind].At(), "", 2}, []any{j.At(), j.Shape, j.ChunkMin})
		require.Contains(t, j.Ref().WorkflowID(), fmt.Sprintf("/chunk-%d", j.Chunk))
	}
	require.NotEmpty(t, parts)
	for _, j := range one {
		for _, tc := range j.TestCases {
			require.Equal(t, 1, cases[tc], tc)
			delete(cases, tc)
		}
	}
	require.Empty(t, cases)
}
