package pages

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestADiffIsAtTheCodeHostOfBothCommits(t *testing.T) {
	t.Parallel()
	a, b := comparedSide{Tag: "aaa", Commit: "https://example.org/x/commit/aaa"}, comparedSide{Tag: "bbb", Commit: "https://example.org/x/commit/bbb"}
	require.Equal(t, "https://example.org/x/compare/aaa...bbb", diffAddress(a, b))
	require.Empty(t, diffAddress(comparedSide{Tag: "1.25.0"}, b))
	require.Empty(t, diffAddress(a, comparedSide{Tag: "1.26.0"}))
}
