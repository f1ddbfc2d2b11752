package store_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// sessionsOf returns the wall times of the sessions of two artifacts.
func (r record) sessionsOf(a, b string) []store.SessionInTurns {
	r.t.Helper()
	sessions, err := r.SessionsInTurns(r.t.Context(), project, a, b)
	require.NoError(r.t, err)
	var walls []store.SessionInTurns
	for _, s := range sessions {
		if s.Metric == bench.WallTime {
			walls = append(walls, s)
		}
	}
	return walls
}

// Each run that measured both is a session of its own, whichever of them is called first, and whatever each has besides.
func TestSessionsInTurnsArePairsByIteration(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.plain("v1", []float64{1, 1}, "gin")
	r.plain("v2", []float64{2, 2}, "gin")
	require.Empty(t, r.sessionsOf("v1", "v2"), "measured apart")
	require.Empty(t, r.sessionsOf("v1", "v9"))
	require.Empty(t, r.sessionsOf("v1", "v1"))

	c := r.register("c1")
	for n, values := range [][2][]float64{{{10, 11}, {20, 21}}, {{12, 13, 14}, {22, 23}}} {
		_, job := r.inTurns("v2", "v1", "gin")
		r.start(job, 1, c)
		marked := measured("gin", values[1]...)
		if n == 1 {
			marked.Collections[1].Disturbed = "steal: 12 %"
		}
		r.block(runID(job, 1), of("v1", measured("gin", values[0]...)), of("v2", marked))
		_, err := r.FinishJob(t.Context(), job.Key, 0, "")
		require.NoError(t, err)
	}
	there, back := r.sessionsOf("v1", "v2"), r.sessionsOf("v2", "v1")
	require.Len(t, there, 2)
	require.Len(t, back, 2)
	require.NotEqual(t, there[0].Run, there[1].Run)
	require.Equal(t, []float64{10, 11}, there[0].A)
	require.Equal(t, []float64{20, 21}, there[0].B)
	require.Equal(t, []bool{false, false}, there[0].Disturbed)
	require.Equal(t, []float64{12, 13}, there[1].A, "the third has no counterpart")
	require.Equal(t, []bool{false, true}, there[1].Disturbed)
	require.Zero(t, there[0].Comparison, "a person asked for it")
	values := func(export func(context.Context, string, []string, func(bench.ExportedCollection) error) error) (out []float64) {
		require.NoError(t, export(t.Context(), project, []string{"v1"}, func(c bench.ExportedCollection) error {
			out = append(out, c.Values[bench.WallTime])
			require.Equal(t, c.Values[bench.WallTime] > 9, c.InTurns == "v1 v2")
			return nil
		}))
		return out
	}
	require.Equal(t, []float64{1, 1}, values(r.ExportCollections), "its own")
	require.Equal(t, []float64{10, 11, 12, 13, 14}, values(r.ExportInTurns))
	for i := range there {
		require.Equal(t, there[i].A, back[i].B)
		require.Equal(t, there[i].B, back[i].A)
	}

	_, err := r.InvalidateResults(t.Context(), store.ResultFilter{Project: project, Tag: "v2"}, byAda)
	require.NoError(t, err)
	require.Empty(t, r.sessionsOf("v1", "v2"), "what is invalid is no evidence")
}

// All valid comparisons of two artifacts are read, whichever of them is the baseline.
func TestComparisonsOfTwoArtifacts(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, c := r.comparing()
	there, err := r.Comparisons(t.Context(), project, c.Baseline, c.Tag)
	require.NoError(t, err)
	require.Len(t, there, 1)
	require.Equal(t, []any{c.ID, c.Baseline, c.Tag, len(c.Rows)}, []any{there[0].ID, there[0].Baseline, there[0].Tag, len(there[0].Rows)})
	back, err := r.Comparisons(t.Context(), project, c.Tag, c.Baseline)
	require.NoError(t, err)
	require.Equal(t, there, back)
	none, err := r.Comparisons(t.Context(), project, c.Tag, "v9")
	require.NoError(t, err)
	require.Empty(t, none)
}
