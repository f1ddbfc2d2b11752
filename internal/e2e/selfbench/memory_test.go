package main

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGrowthCountsThePeak(t *testing.T) {
	t.Parallel()
	const size = 64 << 20
	m, err := memoryBefore(map[string]int{"self": os.Getpid(), postgresProcess: os.Getpid()})
	require.NoError(t, err)
	much := make([]byte, size)
	for i := range much {
		much[i] = 1 // a page counts once it is written
	}
	growth, err := m.growth()
	require.NoError(t, err)
	runtime.KeepAlive(much)
	require.Equal(t, []string{postgresProcess, "self"}, []string{growth[0].process, growth[1].process})
	require.Equal(t, []string{unitPSS, unitGrowth}, []string{growth[0].unit, growth[1].unit})
	for _, g := range growth {
		require.Greater(t, g.bytes, int64(size/2), g.process)
	}

	_, err = memoryBefore(map[string]int{"gone": 1 << 30})
	require.ErrorContains(t, err, "gone")
}
