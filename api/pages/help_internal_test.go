package pages

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheGlossaryIsRead(t *testing.T) {
	t.Parallel()
	words := readGlossary("# Glossary\n\nThe terms.\n\n**A/B (`x`).** Comparing\n*two* with `go test`. See\n[size classes](a.md).\n\n**Last.** Near [this](b.md) one.\n")
	require.Equal(t, []word{
		{ID: "w-a-b-x", Term: "A/B (x)", Text: []phrase{{Text: "Comparing "}, {Text: "two", Strong: true}, {Text: " with "}, {Text: "go test", Code: true}, {Text: "."}}},
		{ID: "w-last", Term: "Last", Text: []phrase{{Text: "Near this one."}}},
	}, words)
}

func TestEachWordOfTheGlossaryIsShown(t *testing.T) {
	t.Parallel()
	require.Greater(t, len(glossary()), 150)
	seen := make(map[string]bool)
	for _, w := range glossary() {
		require.False(t, seen[w.ID], "%s is there twice", w.ID)
		seen[w.ID] = true
		text := plain(w.Text)
		require.NotEmpty(t, text, w.Term)
		require.NotContains(t, text, "](", w.Term)
		require.NotContains(t, text, "**", w.Term)
		require.True(t, strings.HasSuffix(text, ".") || strings.HasSuffix(text, ")"), "%s: %s", w.Term, text)
	}
}
