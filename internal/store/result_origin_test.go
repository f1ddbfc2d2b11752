package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
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
		tell := func() []store.Origin {
			found, err := r.Origins(t.Context(), project, tag, other)
			require.NoError(t, err)
			found = slices.Clone(found)
			for i, o := range found {
				require.NotEmpty(t, o.Run)
				require.Equal(t, o.InTurns, o.Run == runID(turns, 1))
				found[i].Run = ""
				found[i].Suite, found[i].First, found[i].Last = "", o.First.UTC(), o.Last.UTC()
			}
			return append([]store.Origin{}, found...)
		}
		require.Equal(t, want, tell(), tag)
		// Results of earlier versions do not count their collections.
		r.execute(`update test_result set iterations = null, first_collected_at = null, last_collected_at = null where artifact_id = (select id from artifact where tag = '` + tag + `')`)
		require.Equal(t, want, tell(), tag)
	}
}

// What is kept of an artifact is read again after each change, also one that leaves its values as they were.
func TestResultsThatWereMeasuredAgainTellWhere(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request, job := r.oneJob("v1", "gin", "lo")
	r.start(job, 1, r.register("c1"))
	r.block(runID(job, 1), measured("gin", 1, 1), measured("lo", 1, 1))
	runs := func() (names []bench.RunID) {
		for range 2 { // the second time, they may be kept
			found, err := r.Origins(t.Context(), project, "v1", "v0")
			require.NoError(t, err)
			names = nil
			for _, o := range found {
				names = append(names, o.Run)
			}
		}
		return names
	}
	pack := func() {
		_, err := r.PackArtifact(t.Context(), project, "v1")
		require.NoError(t, err)
	}
	first := runID(job, 1)
	require.Equal(t, []bench.RunID{first, first}, runs(), "from rows")
	_, err := r.FinishJob(t.Context(), job.Key, 0, "")
	require.NoError(t, err)
	pack()
	require.Equal(t, []bench.RunID{first, first}, runs())

	again := newJob(request, "gin")
	again.Generation, again.Key = 1, "again00000000000"
	require.NoError(t, r.ExpandRequest(t.Context(), request.ID, store.Expansion{Stage: bench.StageParent, Jobs: storetest.Planned(again)}))
	second := r.start(again, 1, r.register("c1")).Run.ID
	r.block(second, measured("gin", 1, 1))
	require.Equal(t, []bench.RunID{second, first}, runs(), "stale")
	_, err = r.FinishJob(t.Context(), again.Key, 0, "")
	require.NoError(t, err)
	pack()
	require.Equal(t, []bench.RunID{second, first}, runs(), "sheets are what they were")

	_, err = r.InvalidateResults(t.Context(), store.ResultFilter{Project: project, Tag: "v1"}, store.Act{Who: "ada", Reason: "a test"})
	require.NoError(t, err)
	require.Empty(t, runs())
	pack()
	require.Empty(t, runs())
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

// Many read an artifact while its results change: in the end, each reads the newest.
func TestManyReadAnArtifactWhileItChanges(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	request, job := r.oneJob("v1", "gin")
	r.start(job, 1, r.register("c1"))
	r.block(runID(job, 1), measured("gin", 1, 1))
	ended := make(chan struct{})
	var reading errgroup.Group
	for range 4 {
		reading.Go(func() error {
			for {
				samples, err := r.SamplesOf(t.Context(), project, "v1")
				if err == nil && len(samples) != 2 {
					err = fmt.Errorf("%d series instead of the two of a result", len(samples))
				}
				if _, other := r.Origins(t.Context(), project, "v1", "v0"); err == nil {
					err = other
				}
				select {
				case <-ended:
					return err
				default:
				}
				if err != nil {
					return err
				}
			}
		})
	}
	var last bench.RunID
	for n := range 5 {
		again := newJob(request, "gin")
		again.Generation, again.Key = n+1, bench.JobKey(fmt.Sprintf("again%011d", n))
		require.NoError(t, r.ExpandRequest(t.Context(), request.ID, store.Expansion{Stage: bench.StageParent, Jobs: storetest.Planned(again)}))
		last = r.start(again, 1, r.register("c1")).Run.ID
		r.block(last, measured("gin", float64(n), float64(n)))
		_, err := r.FinishJob(t.Context(), again.Key, 0, "")
		require.NoError(t, err)
		_, err = r.PackArtifact(t.Context(), project, "v1")
		require.NoError(t, err)
	}
	close(ended)
	require.NoError(t, reading.Wait())
	samples, err := r.SamplesOf(t.Context(), project, "v1")
	require.NoError(t, err)
	require.Contains(t, [][]float64{samples[0].Values, samples[1].Values}, []float64{4, 4})
	origins, err := r.Origins(t.Context(), project, "v1", "v0")
	require.NoError(t, err)
	require.Equal(t, last, origins[0].Run)
}
