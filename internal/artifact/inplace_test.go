package artifact_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/artifact"
)

func TestALocalGoroot(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the toolchain of this test is a shell script")
	}
	roots := t.TempDir()
	const script = "#!/bin/sh\necho go version devel go1.99-abcdef linux/amd64\n"
	mine := filepath.Join(roots, "mine")
	writeExecutable(t, filepath.Join(mine, "bin", "go"), script)
	cache := openCache(t, artifact.Options{}, artifact.GOROOT{})
	request := func(tag string, parameters map[string]string) artifact.Request {
		return artifact.Request{Provider: "goroot", Tag: tag, Parameters: parameters}
	}

	// The directory is used in place, however the tag leads to it.
	var identity string
	for _, req := range []artifact.Request{
		request(mine, nil),
		request("mine", map[string]string{"path": filepath.Join(roots, "{tag}")}),
		request("experiment", map[string]string{"path.experiment": mine, "path": "/elsewhere/{tag}"}),
	} {
		handle := acquire(t, cache, req)
		require.Equal(t, mine, handle.Dir())
		require.Contains(t, handle.Identity(), "go version devel go1.99-abcdef linux/amd64; bin/go ")
		if identity != "" {
			require.Equal(t, identity, handle.Identity())
		}
		identity = handle.Identity()
		require.NoError(t, handle.Release())
	}
	require.Empty(t, storedTags(t, cache))

	// After a rebuild or a change of VERSION it is another artifact.
	require.NoError(t, os.Chtimes(filepath.Join(mine, "bin", "go"), time.Time{}, time.Unix(1, 0)))
	rebuilt := acquire(t, cache, request(mine, nil)).Identity()
	require.NotEqual(t, identity, rebuilt)
	require.NoError(t, os.WriteFile(filepath.Join(mine, "VERSION"), []byte("go1.99"), 0o644))
	require.NotEqual(t, rebuilt, acquire(t, cache, request(mine, nil)).Identity())

	require.NoError(t, os.Mkdir(filepath.Join(roots, "empty"), 0o755))
	for name, c := range map[string]struct {
		req  artifact.Request
		kind artifact.Kind
		says string
	}{
		"no directory": {request(filepath.Join(roots, "gone"), nil), artifact.NotFound, "no directory " + filepath.Join(roots, "gone")},
		"a file":       {request(filepath.Join(mine, "VERSION"), nil), artifact.NotFound, "is not a directory"},
		"not a goroot": {request(filepath.Join(roots, "empty"), nil), artifact.NotFound, "src/make.bash"},
		"no path":      {request("1.25.3", nil), artifact.Invalid, `set the parameter "path.1.25.3"`},
		"relative":     {request("1", map[string]string{"path": "builds/{tag}"}), artifact.Invalid, "not absolute"},
	} {
		_, err := cache.Acquire(t.Context(), c.req, nil)
		require.ErrorContains(t, err, c.says, name)
		require.Equal(t, c.kind, artifact.KindOf(err), name)
	}
}

func TestADirectory(t *testing.T) {
	t.Parallel()
	builds := t.TempDir()
	dir := filepath.Join(builds, "abc", "x86_64-unknown-linux-gnu")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	cache := openCache(t, artifact.Options{}, artifact.Directory{})
	req := artifact.Request{Provider: "directory", Tag: "abc", Target: "x86_64-unknown-linux-gnu",
		Parameters: map[string]string{"path": filepath.Join(builds, "{tag}", "{target}")}}

	_, err := cache.Acquire(t.Context(), req, nil)
	require.ErrorContains(t, err, "is empty")
	require.Equal(t, artifact.NotFound, artifact.KindOf(err))

	file := filepath.Join(dir, "compiler")
	require.NoError(t, os.WriteFile(file, []byte("1"), 0o755))
	handle := acquire(t, cache, req)
	require.Equal(t, dir, handle.Dir())
	require.Regexp(t, "^files:[0-9a-f]{64}$", handle.Identity())
	require.Equal(t, handle.Identity(), acquire(t, cache, req).Identity())

	require.NoError(t, os.Chtimes(file, time.Time{}, time.Unix(1, 0)))
	changed := acquire(t, cache, req)
	require.NotEqual(t, handle.Identity(), changed.Identity())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "library"), nil, 0o644))
	require.NotEqual(t, changed.Identity(), acquire(t, cache, req).Identity())

	// A tag must not lead out of the template's directory.
	for _, tag := range []string{"../abc", "/etc", `..\abc`, "a/../../b"} {
		req.Tag = tag
		_, err := cache.Acquire(t.Context(), req, nil)
		require.ErrorContains(t, err, "does not fit into a path", tag)
		require.Equal(t, artifact.Invalid, artifact.KindOf(err))
	}
	req.Tag, req.Target = "abc", ""
	_, err = cache.Resolve(req)
	require.ErrorContains(t, err, "target is empty")
	_, err = cache.Resolve(artifact.Request{Provider: "directory", Tag: "abc"})
	require.ErrorContains(t, err, "no directory given")
}
