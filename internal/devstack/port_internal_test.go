package devstack

import (
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A port that was chosen is not chosen again before its process can listen.
func TestAPortIsClaimedForSomeMinutes(t *testing.T) {
	t.Parallel()
	file, now := filepath.Join(t.TempDir(), "20000"), time.Now()
	require.NoError(t, claim(file, now))
	require.ErrorIs(t, claim(file, now), fs.ErrExist)
	require.NoError(t, claim(file, now.Add(claimed+time.Minute)), "the claim has expired")
}

func TestFreePortsDiffer(t *testing.T) {
	t.Parallel()
	seen := make(map[int]bool)
	for range 200 {
		port, err := FreePort("127.0.0.1")
		require.NoError(t, err)
		require.False(t, seen[port], "port %d is returned twice", port)
		seen[port] = true
	}
}
