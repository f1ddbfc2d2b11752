package collection_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A suite that is measured no more leaves nothing on a collector's disk for ever; one that
// is in use keeps its caches.
func TestUnusedCachesAreRemoved(t *testing.T) {
	t.Parallel()
	b := setup(t)
	old, since := time.Now().Add(-40*24*time.Hour), time.Now().Add(-30*24*time.Hour)
	dir := func(root, name string, used time.Time) string {
		t.Helper()
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Join(path, "module", "deep"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(path, "module", "file"), []byte("content"), 0o400))
		require.NoError(t, os.Chtimes(path, used, used))
		return path
	}
	suites := filepath.Join(filepath.Dir(b.CacheDir), "suites")
	gone := []string{dir(filepath.Join(b.CacheDir, "golang"), "go", old), dir(suites, "0123", old)}
	stay := []string{dir(filepath.Join(b.CacheDir, "golang"), "rustc", time.Now()), dir(suites, "4567", time.Now())}
	interrupted := dir(filepath.Join(b.CacheDir, "shell"), ".removed-shell", old) // by the end of an earlier process

	removed, err := b.RemoveUnused(t.Context(), since)
	require.NoError(t, err)
	require.ElementsMatch(t, append(gone, interrupted), removed)
	for _, path := range removed {
		require.NoDirExists(t, path)
	}
	for _, path := range stay {
		require.FileExists(t, filepath.Join(path, "module", "file"))
	}
	again, err := b.RemoveUnused(t.Context(), since)
	require.NoError(t, err)
	require.Empty(t, again)
}
