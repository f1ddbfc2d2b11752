package bench_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"1.25.0", "1.26.0", "1.26.1", "v2.0.0", strings.Repeat("x", 500)}
	for name, want := range map[string][]string{
		"1.26.0":                 {"1.26.0", "1.26.1", "1.25.0"},
		"1.26":                   {"1.26.0", "1.26.1", "1.25.0"},
		"V2.0.0":                 {"v2.0.0", "1.26.0", "1.25.0"},
		"completely unlike":      {},
		strings.Repeat("y", 500): {},
	} {
		got := bench.Nearest(name, known, 3)
		require.Subset(t, want, got, name)
		if len(want) > 0 {
			require.Equal(t, want[0], got[0], name)
		}
	}
	require.Empty(t, bench.Nearest("1.26.0", nil, 3))
	require.Equal(t, 0, bench.Distance("Go", "gO"))
	require.Equal(t, 3, bench.Distance("kitten", "sitting"))
	require.Equal(t, 3, bench.Distance("", "abc"))
}
