//go:build linux

package blobs_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/blobs"
)

func openDirectory(t *testing.T, dir string, most int64) *blobs.Directory {
	t.Helper()
	s, err := blobs.OpenDirectory(t.Context(), dir, most)
	require.NoError(t, err)
	return s
}

func filePath(dir string, digest blobs.Digest) string {
	return filepath.Join(dir, string(digest[:2]), string(digest))
}

// uploads returns the files that are being received.
func uploads(t *testing.T, dir string) []os.DirEntry {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "incoming"))
	require.NoError(t, err)
	return entries
}

func TestNobodyElseReadsTheDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "deep", "blobs")
	put(t, openDirectory(t, dir, most), "a profile")
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := entry.Info()
		require.NoError(t, err)
		want := fs.FileMode(0o600)
		if entry.IsDir() {
			want = 0o700
		}
		require.Equal(t, want, info.Mode().Perm(), path)
		return nil
	}))
}

func TestADamagedFileIsNotReadToItsEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openDirectory(t, dir, most)
	for content, damaged := range map[string]string{"a profile": "a profil", "another": "an0ther"} {
		digest := put(t, s, content)
		require.NoError(t, os.WriteFile(filePath(dir, digest), []byte(damaged), 0o600))
		_, err := get(t, s, digest)
		require.ErrorIs(t, err, blobs.ErrDamaged)
		put(t, s, content)
		back, err := get(t, s, digest)
		require.NoError(t, err, "storing it again mends it")
		require.Equal(t, content, back)
	}
}

func TestOtherFilesAreLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openDirectory(t, dir, most)
	digest := put(t, s, "one")
	for _, name := range []string{"README", string(digest[:2]) + "/notes", "xyz"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("mine"), 0o600))
	}
	require.Equal(t, map[blobs.Digest]int64{digest: 3}, list(t, s))
}

func TestAStoreThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for name, open := range map[string]func() error{
		"without a directory": func() error { _, err := blobs.OpenDirectory(t.Context(), "", most); return err },
		"without room":        func() error { _, err := blobs.OpenDirectory(t.Context(), t.TempDir(), 0); return err },
		"below a file": func() error {
			_, err := blobs.OpenDirectory(t.Context(), filepath.Join(file, "blobs"), most)
			return err
		},
	} {
		require.Error(t, open(), name)
	}
}

// A process that is killed while it receives a file leaves nothing that is taken for one, and the next one removes the rest.
func TestAKilledProcessLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	receiving := exec.CommandContext(t.Context(), os.Args[0])
	receiving.Env = append(os.Environ(), putForEver+"="+dir)
	receiving.Stderr = os.Stderr
	out, err := receiving.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, receiving.Start())
	_, err = io.ReadFull(out, make([]byte, len(halfway)))
	require.NoError(t, err)

	s := openDirectory(t, dir, most)
	require.Len(t, uploads(t, dir), 1, "another process does not touch what is being received")
	put(t, s, "meanwhile")
	require.Len(t, uploads(t, dir), 1)

	require.NoError(t, receiving.Process.Kill())
	require.Error(t, receiving.Wait())
	require.Equal(t, map[blobs.Digest]int64{digestOf("meanwhile"): 9}, list(t, s))
	put(t, s, "afterwards")
	require.Empty(t, uploads(t, dir), "the next upload removes what was left")
}

const (
	// putForEver names the directory into which a process of this test stores a file that never ends.
	putForEver = "BENCHLOOM_TEST_PUT_FOR_EVER"
	halfway    = "halfway\n"
)

// uploadForEver stores half of a file, says so, and waits to be killed.
func uploadForEver(dir string) {
	s, err := blobs.OpenDirectory(context.Background(), dir, most)
	if err == nil {
		_, _, err = s.Put(context.Background(), io.MultiReader(strings.NewReader(strings.Repeat("x", most/4)), &stuck{}), most)
	}
	fmt.Fprintln(os.Stderr, "the upload ended:", err)
	os.Exit(1)
}

type stuck struct{}

func (*stuck) Read([]byte) (int, error) {
	fmt.Fprint(os.Stdout, halfway)
	<-make(chan struct{})
	return 0, io.EOF
}

func TestAFullDiskLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("mounting a small file system: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, 0)) })
	s := openDirectory(t, dir, most)
	kept := put(t, s, strings.Repeat("x", 64<<10))
	_, _, err := s.Put(t.Context(), strings.NewReader(strings.Repeat("y", 512<<10)), most)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Empty(t, uploads(t, dir))
	require.Equal(t, map[blobs.Digest]int64{kept: 64 << 10}, list(t, s))
	put(t, s, strings.Repeat("z", 64<<10))
}
