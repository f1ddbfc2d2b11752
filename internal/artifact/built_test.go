package artifact_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/artifact"
)

// shelf is a source that has one archive for every key.
type shelf struct {
	archive []byte
	sum     string
	err     error
	fetched atomic.Int32
}

func (s *shelf) FetchBuild(_ context.Context, _ string, w io.Writer, _ artifact.ProgressFunc) (string, error) {
	s.fetched.Add(1)
	if s.err != nil {
		return "", s.err
	}
	_, err := w.Write(s.archive)
	return s.sum, err
}

// packed returns the archive of a directory and its sum.
func packed(t *testing.T, dir string, skip ...string) ([]byte, string) {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, artifact.Pack(t.Context(), dir, &out, skip...))
	sum := sha256.Sum256(out.Bytes())
	return out.Bytes(), hex.EncodeToString(sum[:])
}

// tree creates a small build output.
func tree(t *testing.T, age time.Duration) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "bin"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "empty"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "junk"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "junk", "x"), []byte("x"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", "tool"), []byte("#!/bin/sh\n"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data"), []byte("data"), 0o600))
	require.NoError(t, os.Symlink("bin/tool", filepath.Join(dir, "link")))
	then := time.Now().Add(-age)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "data"), then, then))
	return dir
}

var buildKey = strings.Repeat("ab", 32)

func built(tag, key string) artifact.Request {
	return artifact.Request{Provider: "build", Tag: tag, Target: "x86_64-unknown-linux-gnu", Parameters: map[string]string{"key": key}}
}

func TestEqualContentGivesEqualArchives(t *testing.T) {
	t.Parallel()
	first, sum := packed(t, tree(t, 0), "junk")
	second, again := packed(t, tree(t, 100*time.Hour), "junk")
	require.Equal(t, sum, again)
	require.Equal(t, first, second)
}

func TestABuildIsFetchedOnceForAllItsTags(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	s.archive, s.sum = packed(t, tree(t, 0), "junk")
	cache, err := artifact.Open(artifact.Options{Dir: t.TempDir(), Providers: []artifact.Provider{&artifact.Built{Source: s}}})
	require.NoError(t, err)
	for _, tag := range []string{"v1", "v2", "v1"} {
		h, err := cache.Acquire(t.Context(), built(tag, buildKey), nil)
		require.NoError(t, err)
		require.Equal(t, "build:"+buildKey, h.Identity())
		text, err := os.ReadFile(filepath.Join(h.Dir(), "link"))
		require.NoError(t, err)
		require.Equal(t, "#!/bin/sh\n", string(text))
		info, err := os.Stat(filepath.Join(h.Dir(), "bin", "tool"))
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&0o111)
		require.DirExists(t, filepath.Join(h.Dir(), "empty"))
		require.NoDirExists(t, filepath.Join(h.Dir(), "junk"))
		require.NoError(t, h.Release())
	}
	require.EqualValues(t, 1, s.fetched.Load())
}

func TestABuildThatCannotBeHad(t *testing.T) {
	t.Parallel()
	gone := &artifact.Error{Kind: artifact.NotFound, Artifact: "build", Reason: "it is stored no more"}
	archive, sum := packed(t, tree(t, 0))
	for name, c := range map[string]struct {
		shelf *shelf
		key   string
		kind  artifact.Kind
	}{
		"no key":         {&shelf{}, "", artifact.Invalid},
		"gone":           {&shelf{err: gone}, buildKey, artifact.NotFound},
		"another sum":    {&shelf{archive: archive, sum: strings.Repeat("0", 64)}, buildKey, artifact.Corrupt},
		"cut off":        {&shelf{archive: archive[:len(archive)/2], sum: sum}, buildKey, artifact.Corrupt},
		"no archive":     {&shelf{archive: []byte("hello"), sum: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}, buildKey, artifact.Corrupt},
		"too many files": {&shelf{archive: archive, sum: sum}, buildKey, artifact.Invalid},
		"broken source":  {&shelf{err: errors.New("boom")}, buildKey, artifact.Unclassified},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cache, err := artifact.Open(artifact.Options{Dir: t.TempDir(), Providers: []artifact.Provider{&artifact.Built{Source: c.shelf, MaxEntries: 6}}})
			require.NoError(t, err)
			_, err = cache.Acquire(t.Context(), built("v1", c.key), nil)
			require.Error(t, err)
			require.Equal(t, c.kind, artifact.KindOf(err), err)
		})
	}
}

func TestWhatCannotBePacked(t *testing.T) {
	t.Parallel()
	for name, link := range map[string]string{"absolute": "/etc/passwd", "climbing": "../outside"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := tree(t, 0)
			require.NoError(t, os.Symlink(link, filepath.Join(dir, "bad")))
			err := artifact.Pack(t.Context(), dir, io.Discard)
			require.ErrorIs(t, err, artifact.ErrUnpackable)
			require.ErrorContains(t, err, "bad leads to "+link)
		})
	}
	require.ErrorIs(t, artifact.Pack(t.Context(), t.TempDir(), io.Discard), artifact.ErrUnpackable)
	deep := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(deep, strings.Repeat("d/", 65)), 0o755))
	err := artifact.Pack(t.Context(), deep, io.Discard)
	require.ErrorIs(t, err, artifact.ErrUnpackable)
	require.ErrorContains(t, err, "has 129 bytes and 65 parts; at most 1024 and 64 are allowed")
	crowd := tree(t, 0) // seven files, links and directories
	require.NoError(t, artifact.PackAtMost(t.Context(), crowd, 7))
	err = artifact.PackAtMost(t.Context(), crowd, 6)
	require.ErrorIs(t, err, artifact.ErrUnpackable)
	require.ErrorContains(t, err, "files and directories")
	require.ErrorIs(t, artifact.Pack(t.Context(), filepath.Join(t.TempDir(), "nothing"), io.Discard), os.ErrNotExist)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, artifact.Pack(ctx, tree(t, 0), io.Discard), context.Canceled)
}
