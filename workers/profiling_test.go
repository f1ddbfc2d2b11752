package workers_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/workers"
)

// Of the agents of a host, one has the lock; it passes on when that ends.
func TestP14CollectorsOfAHostShareALock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, second := workers.NewHostLock(path), workers.NewHostLock(path)
	for range 2 {
		held, err := first.TryLock()
		require.NoError(t, err)
		require.True(t, held)
		held, err = second.TryLock()
		require.NoError(t, err)
		require.False(t, held)
		require.NoError(t, first.Unlock())
		first, second = second, first
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o644), info.Mode().Perm(), "other accounts can open it")
}

// What lies at the lock's place is nobody's promise.
func TestALockThatCannotBeOpenedIsAnError(t *testing.T) {
	t.Parallel()
	_, err := workers.NewHostLock(filepath.Join(t.TempDir(), "nowhere", "lock")).TryLock()
	require.ErrorIs(t, err, os.ErrNotExist)
}
