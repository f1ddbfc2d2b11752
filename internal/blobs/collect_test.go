package blobs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/blobs"
)

// What nobody refers to goes, once it is old.
func TestUnusedFilesAreCollected(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, s blobs.Store) {
		kept, gone := put(t, s, "a profile"), put(t, s, "an upload that was refused")
		asked := 0
		used := func(_ context.Context, digests []string) ([]string, error) {
			asked++
			return slices.DeleteFunc(digests, func(d string) bool { return d != string(kept) }), nil
		}
		removed, err := blobs.Collect(t.Context(), s, time.Now().Add(-time.Hour), used)
		require.NoError(t, err)
		require.Zero(t, removed, "young files may be referred to in a moment")
		require.Zero(t, asked)

		removed, err = blobs.Collect(t.Context(), s, time.Now().Add(time.Hour), used)
		require.NoError(t, err)
		require.Equal(t, blobs.Collected{Files: 1, Bytes: int64(len("an upload that was refused"))}, removed)
		_, err = get(t, s, gone)
		require.ErrorIs(t, err, blobs.ErrNotFound)
		content, err := get(t, s, kept)
		require.NoError(t, err)
		require.Equal(t, "a profile", content)
	})
}

// Nothing goes while it is not known what is used.
func TestNothingIsCollectedBlindly(t *testing.T) {
	t.Parallel()
	s := openDirectory(t, t.TempDir(), 1<<20)
	put(t, s, "a profile")
	away := errors.New("the database is away")
	removed, err := blobs.Collect(t.Context(), s, time.Now().Add(time.Hour), func(context.Context, []string) ([]string, error) { return nil, away })
	require.ErrorIs(t, err, away)
	require.Zero(t, removed)
	require.Len(t, list(t, s), 1)
}

// Many files are asked for in parts.
func TestManyFilesAreCollectedInParts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openDirectory(t, dir, 1<<20)
	const files = 1100
	for i := range files {
		content := fmt.Sprint("file ", i)
		file := filePath(dir, digestOf(content))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	}
	most, asked := 0, 0
	removed, err := blobs.Collect(t.Context(), s, time.Now().Add(time.Hour), func(_ context.Context, digests []string) ([]string, error) {
		most, asked = max(most, len(digests)), asked+len(digests)
		return nil, nil
	})
	require.NoError(t, err)
	require.Equal(t, files, removed.Files)
	require.Equal(t, files, asked)
	require.LessOrEqual(t, most, 500)
	require.Empty(t, list(t, s))
}
