package collection_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/diskspace"
)

// A suite that keeps too much loses it, before those that keep little; else the longest unused goes first.
func TestCachesAreBoundedTogether(t *testing.T) {
	t.Parallel()
	b := setup(t)
	// keep makes a cache of some hundred kilobytes that was used some hours ago.
	keep := func(name string, size, hours int) string {
		t.Helper()
		dir, used := filepath.Join(b.CacheDir, name), time.Now().Add(-time.Duration(hours)*time.Hour)
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), bytes.Repeat([]byte("x"), size*100_000), 0o644))
		require.NoError(t, os.Chtimes(dir, used, used))
		return dir
	}
	old, young, pinned := keep("golang/go", 5, 3), keep("golang/rust", 4, 1), keep("other/go", 2, -1000)
	greedy := keep("greedy/go", 20, 0)
	bound := func(bytes, files int64) []string {
		t.Helper()
		b.CacheLimit = diskspace.Usage{Bytes: bytes, Files: files}
		removed, err := b.BoundCaches(t.Context())
		require.NoError(t, err)
		for _, dir := range removed {
			require.NoDirExists(t, dir)
		}
		return removed
	}
	require.Empty(t, bound(0, 0), "there is no limit")
	require.Equal(t, []string{greedy}, bound(1_500_000, 0))
	require.Equal(t, []string{pinned}, bound(1_000_000, 0), "one that claims to be of the future")
	require.Empty(t, bound(1_000_000, 4), "a file and a directory each")
	require.Equal(t, []string{old}, bound(0, 3))
	require.FileExists(t, filepath.Join(young, "file"))
}

// The bound holds for a cache that the last job has filled, when the next one begins.
func TestACacheThatAJobHasFilledIsGoneBeforeTheNext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.CacheLimit = diskspace.Usage{Bytes: 1_000_000}
	_, err := b.run(b.job("v1", "keeps"), 1)
	require.NoError(t, err)
	cache := filepath.Join(b.CacheDir, "go", "shell")
	require.FileExists(t, filepath.Join(cache, "kept"))

	require.NoError(t, os.WriteFile(filepath.Join(cache, "more"), bytes.Repeat([]byte("x"), 2_000_000), 0o644))
	_, err = b.run(b.job("v1", "one"), 1)
	require.NoError(t, err)
	require.NoDirExists(t, cache)
}
