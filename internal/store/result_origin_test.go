package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// A comparison tells of each result where it comes from, also of those measured in turns, but
// of none that it does not read.
func TestResultsTellWhereTheyWereMeasured(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	none, err := r.Origins(t.Context(), project, "v1", "v2")
	require.NoError(t, err)
	require.Empty(t, none)

	r.plain("v1", []float64{1, 1, 1}, "gin", "lo")
	r.plain("v2", []float64{2, 2}, "gin")
	_, turns := r.inTurns("v2", "v1", "gin")
	r.start(turns, 1, r.register("c2"))
	r.block(runID(turns, 1), of("v1", measured("gin", 1, 1, 1, 1)), of("v2", measured("gin", 2, 2, 2, 2)))
	_, others := r.inTurns("v2", "v0", "gin")
	r.start(others, 1, r.register("c2"))
	r.block(runID(others, 1), of("v0", measured("gin", 1)), of("v2", measured("gin", 2)))

	for tag, want := range map[string][]store.Origin{
		"v1": {origin("gin", "c1", 3, false), origin("gin", "c2", 4, true), origin("lo", "c1", 3, false)},
		"v2": {origin("gin", "c1", 2, false), origin("gin", "c2", 4, true)},
		"v0": {},
	} {
		other := map[string]string{"v1": "v2", "v2": "v1", "v0": "v1"}[tag]
		found, err := r.Origins(t.Context(), project, tag, other)
		require.NoError(t, err)
		for i, o := range found {
			require.NotEmpty(t, o.Run)
			require.Equal(t, o.InTurns, o.Run == runID(turns, 1))
			found[i].Run = ""
			found[i].Suite, found[i].First, found[i].Last = "", o.First.UTC(), o.Last.UTC()
		}
		require.Equal(t, want, append([]store.Origin{}, found...), tag)
	}
}

func origin(benchmark, collector string, iterations int, inTurns bool) store.Origin {
	return store.Origin{
		TestCase: testCase(benchmark), Surrounding: bench.Surrounding{SizeClass: 2, HardwareID: "zen4"}, Pool: "small", Collector: collector,
		Iterations: iterations, First: measuredAt, Last: measuredAt.Add(time.Duration(iterations-1) * time.Second), InTurns: inTurns,
	}
}

func TestTheNextArtifactIsTheFirstThatWasComparedWithOne(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	for _, tag := range []string{"v1", "v2", "v3"} {
		r.plain(tag, []float64{1}, "gin")
		request, err := r.RequestByTag(t.Context(), project, tag)
		require.NoError(t, err)
		baseline := map[string]string{"v2": "v1", "v3": "v1"}[tag]
		require.NoError(t, r.CompleteRequest(t.Context(), request.ID, bench.Success, baseline, nil, ""))
	}
	for tag, want := range map[string]string{"v1": "v2", "v2": "", "v9": ""} {
		next, err := r.NextCompared(t.Context(), project, tag)
		require.NoError(t, err)
		require.Equal(t, want, next, tag)
	}
}
