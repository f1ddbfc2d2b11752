package simulate_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/sizeclass"
	"github.com/benchloom/benchloom/internal/sizeclass/simulate"
)

const example = `{"classes":[1,2,4,8],"policy":{"exponent":0.5,"timeout_multiplier":1.5,"minimum":"10s","history":32},
	"original_timeout":"30m","runs":500,"seed":1,
	"shape":{"durations":{"1":"60s","2":"60s","4":"60s","8":"60s"},"noise":0.1,"fails_below":0,"fails_after":"5s","drift_at":0,"durations_after":{}}}`

func TestDecode(t *testing.T) {
	t.Parallel()
	in, err := simulate.Decode([]byte(example))
	require.NoError(t, err)
	require.Equal(t, sizeclass.Defaults(), in.Policy)
	require.Equal(t, 500, in.Runs)

	in, err = simulate.Decode([]byte(`{"classes":[1],"shape":{"durations":{"1":"1s"}}}`))
	require.NoError(t, err)
	require.Equal(t, 500, in.Runs)
	require.Equal(t, 30*time.Minute, time.Duration(in.OriginalTimeout))
}

func TestInvalidInputsAreRefusedByName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ old, replaced, want string }{
		{`"noise"`, `"nose"`, "nose: there is no such field"},
		{`"exponent"`, `"convergence"`, "convergence: there is no such field"},
		{`"exponent":0.5`, `"exponent":0`, "exponent 0: use a number above 0"},
		{`"minimum":"10s"`, `"minimum":"0s"`, "minimum 0s: use a duration"},
		{`"minimum":"10s"`, `"minimum":10`, "policy.minimum: number is not a duration"},
		{`[1,2,4,8]`, `[]`, "classes: no size class"},
		{`[1,2,4,8]`, `[1,4,2,8]`, "classes: size classes [1 4 2 8] are not in ascending order"},
		{`[1,2,4,8]`, `[0,2,4,8]`, `classes: invalid value: size class "0"`},
		{`[1,2,4,8]`, `[1,2,4]`, "shape.durations.8: is not one of the classes"},
		{`[1,2,4,8]`, `[1,2,4,8,16]`, "shape.durations.16: is missing"},
		{`"1":"60s"`, `"one":"60s","1":"60s"`, "shape.durations.one: is not one of the classes"},
		{`"1":"60s"`, `"1":"0s"`, "shape.durations.1: 0s: use a duration above 0"},
		{`"1":"60s"`, `"1":"1 minute"`, `shape.durations: "1 minute" is not a duration`},
		{`"30m"`, `"0s"`, "original_timeout: 0s: use a duration above 0"},
		{`"30m"`, `"3h"`, "original_timeout: 3h0m0s: use a duration above 0 of at most 2h0m0s"},
		{`"runs":500`, `"runs":0`, "runs: 0: use a number from 1"},
		{`"runs":500`, `"runs":1000001`, "runs: 1000001: use a number from 1"},
		{`"seed":1`, `"seed":-1`, "seed: number -1 is not what belongs there"},
		{`"noise":0.1`, `"noise":-1`, "shape.noise: -1: use a number from 0"},
		{`"fails_below":0`, `"fails_below":-1`, "shape.fails_below: -1: use a size class"},
		{`"fails_below":0,"fails_after":"5s"`, `"fails_below":4`, "shape.fails_after: 0s: use a duration above 0"},
		{`"drift_at":0`, `"drift_at":-1`, "shape.drift_at: -1: use the number of a run"},
		{`"drift_at":0`, `"drift_at":9`, "shape.durations_after.1: is missing"},
		{`"durations_after":{}`, `"durations_after":{"1":"1s"}`, "shape.drift_at: 0: name the run"},
		{`"noise":0.1`, `"tail":{"probability":0.1}`, "shape.tail.factor: 0: use a number above 0"},
		{`"noise":0.1`, `"bimodal":{"probability":2,"factor":2}`, "shape.bimodal.probability: 2: use a number from 0 to 1"},
		{`"noise":0.1`, `"failure_rate":1.5`, "shape.failure_rate: 1.5: use a share"},
		{`{"classes"`, `[{"classes"`, "it is not JSON"},
		{`{}}}`, `{}}} true`, "there is more after it"},
	} {
		text := strings.Replace(example, c.old, c.replaced, 1)
		require.NotEqual(t, example, text, c.old)
		_, err := simulate.Decode([]byte(text))
		require.ErrorIs(t, err, simulate.ErrInput, c.want)
		require.ErrorContains(t, err, c.want)
	}
}

func TestEveryAttemptCounts(t *testing.T) {
	t.Parallel()
	in, err := simulate.Decode([]byte(`{"classes":[1,2],"runs":60,"shape":{"durations":{"1":"1m","2":"1m"},"fails_below":2,"fails_after":"5s"}}`))
	require.NoError(t, err)
	result, err := simulate.Simulate(in, rand.New(rand.NewPCG(1, 0)))
	require.NoError(t, err)
	require.Equal(t, simulate.Run{Class: 2, Outcome: simulate.Success, LatencySeconds: 65, CoreSeconds: 125}, result.Runs[0])
	require.Equal(t, simulate.Run{Class: 2, Outcome: simulate.Success, LatencySeconds: 60, CoreSeconds: 120}, result.Runs[1])

	require.Len(t, result.Summary, 3)
	first := result.Summary[0]
	require.Equal(t, "1-10", first.Runs)
	require.Equal(t, []simulate.Share{{Class: 2, Runs: 10}}, first.Ended)
	require.InDelta(t, 120+0.5*float64(first.Escalated), first.CoreSeconds, 1e-9)
	require.Equal(t, "11-50", result.Summary[1].Runs)
	require.Equal(t, "51-60", result.Summary[2].Runs)

	in.Runs = 3
	result, err = simulate.Simulate(in, rand.New(rand.NewPCG(1, 0)))
	require.NoError(t, err)
	require.Len(t, result.Summary, 1)
	require.Equal(t, "1-3", result.Summary[0].Runs)
}

func TestTheSameSeedGivesTheSameRuns(t *testing.T) {
	t.Parallel()
	in, err := simulate.Decode([]byte(example))
	require.NoError(t, err)
	in.Runs = 50
	with := func(seed uint64) simulate.Result {
		result, err := simulate.Simulate(in, rand.New(rand.NewPCG(seed, 0)))
		require.NoError(t, err)
		return result
	}
	first, again := with(1), with(1)
	require.Equal(t, first, again)
	require.NotEqual(t, first.Runs, with(2).Runs)
}

func TestStepwiseSimulation(t *testing.T) {
	t.Parallel()
	in, err := simulate.Decode([]byte(strings.NewReplacer(`"history":32`, `"stepwise":true`, `"fails_below":0`, `"fails_below":4`).Replace(example)))
	require.NoError(t, err)
	result, err := simulate.Simulate(in, rand.New(rand.NewPCG(1, 0)))
	require.NoError(t, err)
	var passed []int
	for _, a := range result.Attempts()[0] {
		passed = append(passed, int(a.Class))
	}
	require.Equal(t, []int{1, 2, 4, 8}, passed)
}
