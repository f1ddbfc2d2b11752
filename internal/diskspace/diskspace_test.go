package diskspace_test

import (
	"math"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/diskspace"
)

const gib = 1 << 30

func TestTheReserveIsATwentiethOfTheFileSystem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reserve      diskspace.Reserve
		space        diskspace.Space
		bytes, files int64
	}{
		{diskspace.Reserve{}, diskspace.Space{Size: 20 * gib, Files: 1000}, gib, 50},
		{diskspace.Reserve{}, diskspace.Space{Size: 4000 * gib, Files: 1 << 30}, 2 * gib, 20_000},
		{diskspace.Reserve{}, diskspace.Space{Size: 64 << 20}, 64 << 20 / 20, 0},
		{diskspace.Reserve{Bytes: 5 * gib}, diskspace.Space{Size: 20 * gib, Files: 1000}, 5 * gib, 50},
		{diskspace.Reserve{Bytes: -1}, diskspace.Space{Size: 20 * gib, Files: 1000}, 0, 0},
	} {
		bytes, files := c.reserve.Of(c.space)
		require.Equal(t, []int64{c.bytes, c.files}, []int64{bytes, files})
	}
}

func TestAFileSystemIsShortBelowTheReserve(t *testing.T) {
	t.Parallel()
	space := diskspace.Space{Size: 20 * gib, Free: gib, Files: 1000, FreeFiles: 50}
	require.NoError(t, diskspace.Reserve{}.Check("/state", space))
	space.Free--
	err := diskspace.Reserve{}.Check("/state", space)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.EqualError(t, err, "the file system of /state has 1024 MiB left, less than the reserve of 1.0 GiB: free space there, or change --disk-reserve")
	require.NoError(t, diskspace.Reserve{Bytes: -1}.Check("/state", space))
	space.Free, space.FreeFiles = gib, 49
	require.EqualError(t, diskspace.Reserve{}.Check("/state", space), "the file system of /state has 49 files left, less than the reserve of 50: free space there, or change --disk-reserve")
}

func TestThisMachinesFileSystemIsRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	space, err := diskspace.Of(dir)
	require.NoError(t, err)
	require.Positive(t, space.Size)
	require.LessOrEqual(t, space.Free, space.Size)
	require.NoError(t, diskspace.Reserve{Bytes: -1}.Look(dir))
	require.ErrorIs(t, diskspace.Reserve{Bytes: math.MaxInt64}.Look(dir), syscall.ENOSPC)
	require.NoError(t, diskspace.Reserve{Bytes: math.MaxInt64}.Look(filepath.Join(dir, "none")), "not known")
}

func TestLinkedFilesCountOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	empty, err := diskspace.Measure(t.Context(), dir, time.Time{})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), make([]byte, 1<<20), 0o644))
	require.NoError(t, os.Link(filepath.Join(dir, "file"), filepath.Join(dir, "sub", "link")))
	require.NoError(t, os.Symlink("/", filepath.Join(dir, "root")))
	used, err := diskspace.Measure(t.Context(), dir, time.Time{})
	require.NoError(t, err)
	require.InDelta(t, 1<<20, used.Bytes-empty.Bytes, 64<<10)
	require.EqualValues(t, 2, used.Files-empty.Files, "the file and the symbolic link")
	_, err = diskspace.Measure(t.Context(), filepath.Join(dir, "none"), time.Time{})
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A file may say that it is old; when it was changed, it cannot hide.
func TestFilesThatWereChangedSinceCount(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, make([]byte, 1<<20), 0o644))
	old := time.Now().Add(-24 * time.Hour)
	require.NoError(t, os.Chtimes(file, old, old))
	used, err := diskspace.Measure(t.Context(), dir, time.Now().Add(-time.Hour))
	require.NoError(t, err)
	require.GreaterOrEqual(t, used.Bytes, int64(1<<20))
	later, err := diskspace.Measure(t.Context(), dir, time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.Zero(t, later)
}
