package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheCommitsBetweenTwoAreListed(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, err := r.RecordCommits(t.Context(), project, line("", "a", "b", "c", "d"))
	require.NoError(t, err)
	all, err := r.CommitsOnBranch(t.Context(), project) // the newest first
	require.NoError(t, err)
	require.Len(t, all, 4)
	for name, test := range map[string]struct {
		a, b  string
		limit int
		want  []string
	}{
		"all":           {all[3], all[0], 9, []string{all[0], all[3], all[1], all[2]}},
		"the other way": {all[0], all[3], 9, []string{all[0], all[3], all[1], all[2]}},
		"neighbours":    {all[2], all[1], 9, []string{all[1], all[2]}},
		"bounded":       {all[3], all[0], 3, []string{all[0], all[3], all[1]}},
		"one unknown":   {all[3], "unknown", 9, []string{all[3]}},
		"unknown":       {"1.0", "2.0", 9, nil},
	} {
		found, err := r.CommitsBetween(t.Context(), project, test.a, test.b, test.limit)
		require.NoError(t, err, name)
		var shas []string
		for _, c := range found {
			shas = append(shas, c.SHA)
		}
		require.Equal(t, test.want, shas, name)
	}
}
