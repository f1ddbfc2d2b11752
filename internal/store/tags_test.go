package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/store"
)

func TestCommitsThatBeginLikeThat(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	sha := func(end string) string { return strings.Repeat("a", 40-len(end)) + end }
	r.plain(sha("1"), []float64{1}, "gin")
	r.plain("aaaaaaa-rc1", []float64{1}, "gin")
	_, err := r.RecordCommits(t.Context(), project, []store.Commit{{SHA: sha("1")}, {SHA: sha("2")}, {SHA: strings.Repeat("b", 40)}})
	require.Error(t, err, "they do not belong together")
	_, err = r.RecordCommits(t.Context(), project, []store.Commit{
		{SHA: sha("2"), Parent: sha("1"), CommittedAt: time.Now()}, {SHA: sha("1"), Parent: strings.Repeat("b", 40), CommittedAt: time.Now()},
	})
	require.NoError(t, err)
	for prefix, want := range map[string][]string{
		"aaaaaaa":     {sha("1"), sha("2")},
		sha("2")[:39]: {sha("1"), sha("2")},
		sha("2"):      {sha("2")},
		"aaaaaaa-rc1": {"aaaaaaa-rc1"},
		"ccccccc":     nil,
		"bbbbbbb":     nil, // known as a parent only
		"aaaaaaa%":    nil,
	} {
		got, err := r.CommitsLike(t.Context(), project, prefix)
		require.NoError(t, err)
		require.Equal(t, append([]string{}, want...), got, prefix)
	}
	other, err := r.CommitsLike(t.Context(), "another", "aaaaaaa")
	require.NoError(t, err)
	require.Empty(t, other)
}
