package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/store"
)

// Sheets that are given are packed as those of rows are; given those of the rows, nothing
// changes.
func TestSheetsThatAreGivenArePacked(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	collector := r.register("one")
	for _, tag := range []string{"v1", "v2"} {
		_, job := r.oneJob(tag, "gin", "kit")
		plan := r.start(job, 1, collector)
		r.block(plan.Run.ID, measured("gin", 1, r.float()), measured("kit", r.float()))
		_, err := r.FinishJob(t.Context(), job.Key, 0, "")
		require.NoError(t, err)
	}
	_, err := r.PackResults(t.Context(), project)
	require.NoError(t, err)
	sheets, err := r.Sheets(t.Context(), project, []string{"v2", "v1"}, nil)
	require.NoError(t, err)
	require.Len(t, sheets[0].Sheets, 2)

	less := store.ArtifactSheets{Tag: "v1", Sheets: sheets[1].Sheets[:1]}
	require.NoError(t, r.PackSheets(t.Context(), project, []store.ArtifactSheets{less}))
	wrong, err := r.CheckPacked(t.Context(), project, 0, 10)
	require.NoError(t, err)
	require.Len(t, wrong.Differences, 3, "a sheet and its two histories lack v1")

	require.NoError(t, r.PackSheets(t.Context(), project, sheets))
	sound, err := r.CheckPacked(t.Context(), project, 0, 10)
	require.NoError(t, err)
	require.Equal(t, store.PackedCheck{Artifacts: 2, Sheets: 4, Points: 8}, sound)

	sheets[1].Tag = "v3"
	require.ErrorIs(t, r.PackSheets(t.Context(), project, sheets), store.ErrNotFound)
}
