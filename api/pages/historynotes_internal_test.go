package pages

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A new suite makes all lines begin anew: that is said once, and each line names it by its number.
func TestRemarksOnManyLinesAreSaidOnce(t *testing.T) {
	t.Parallel()
	suite, kernel := historyNote{7, "another suite"}, historyNote{3, "another kernel"}
	rare := historyNote{5, "failed once"}
	line := func(notes ...historyNote) historyLine { return historyLine{Notes: notes} }
	h := historyView{Charts: []historyChart{
		{keptChart: keptChart{Lines: []historyLine{line(kernel, suite), line(kernel, rare, suite)}}},
		{keptChart: keptChart{Lines: []historyLine{line(kernel), line(rare, suite), line()}}},
	}}
	h.shareNotes()
	require.Equal(t, []sharedNote{{kernel, 3}, {suite, 3}}, h.Notes, "in the order of their artifacts")
	require.Equal(t, []lineRemarks{{Shared: "notes 1–2"}, {Own: []string{"failed once"}, Shared: "notes 1–2"}}, h.Charts[0].Remarks)
	require.Equal(t, []lineRemarks{{Shared: "note 1"}, {Own: []string{"failed once"}, Shared: "note 2"}, {}}, h.Charts[1].Remarks)
	require.Len(t, h.Charts[0].Lines[0].Notes, 2, "kept drawings stay as they are")
}

func TestNumbersInRanges(t *testing.T) {
	t.Parallel()
	for want, numbers := range map[string][]int{"": nil, "4": {4}, "1–2": {2, 1}, "1–3, 5, 7–8": {1, 2, 3, 5, 7, 8}} {
		require.Equal(t, want, ranges(numbers))
	}
}
