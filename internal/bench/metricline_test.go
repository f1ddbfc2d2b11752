package bench_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

func TestALineHasMetricsOfItsOwn(t *testing.T) {
	t.Parallel()
	m, err := bench.LineMetric("Parse/small", "MB/s")
	require.NoError(t, err)
	line, unit := m.Split()
	require.Equal(t, "Parse/small", line)
	require.Equal(t, bench.Metric("MB/s"), unit)
	require.Equal(t, bench.HigherIsBetter, m.Direction())
	require.False(t, m.Exact())
	require.False(t, m.Explains())

	for _, line := range []string{"", "a b", "a\nb"} {
		_, err := bench.LineMetric(line, "ns/op")
		require.ErrorIs(t, err, bench.ErrInvalid, line)
	}
	_, err = bench.LineMetric("Parse", "ns per op")
	require.ErrorIs(t, err, bench.ErrInvalid)

	line, unit = bench.WallTime.Split()
	require.Empty(t, line)
	require.Equal(t, bench.WallTime, unit)
}

func TestAUnitMeansAllLines(t *testing.T) {
	t.Parallel()
	m, err := bench.LineMetric("Parse/small", "ns/op")
	require.NoError(t, err)
	require.True(t, m.Matches("ns/op"))
	require.True(t, m.Matches("Parse/small ns/op"))
	require.True(t, m.Matches("parse/SMALL NS/op"))
	require.False(t, m.Matches("Parse/small"))
	require.False(t, m.Matches("B/op"))
	require.True(t, bench.WallTime.Matches("Wall-Time"))
}
