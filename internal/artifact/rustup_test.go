package artifact_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/artifact"
)

const (
	rustHost   = "x86_64-unknown-linux-gnu"
	fakeRustc  = "#!/bin/sh\nprintf 'rustc 1.80.0\\nbinary: rustc\\ncommit-hash: 0123abc\\nhost: " + rustHost + "\\nrelease: 1.80.0\\n'\n"
	fakeRustup = `#!/bin/sh
here=$(dirname "$0")
case "$1 $2" in
"toolchain list") [ -e "$here/installed" ] && echo "1.80.0-` + rustHost + ` (active, default)" || echo "no installed toolchains" ;;
"toolchain install") echo "$@" >> "$here/installed" ;;
"which --toolchain") [ -e "$here/installed" ] || { echo "error: toolchain '$3' is not installed" >&2; exit 1; }
	echo "$here/sysroot/bin/rustc" ;;
esac
`
)

func rustRequest(tag, target, install string) artifact.Request {
	req := artifact.Request{Provider: "rustup", Tag: tag, Target: target}
	if install != "" {
		req.Parameters = map[string]string{"install": install}
	}
	return req
}

func skipWithoutShell(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the programs of this test are shell scripts")
	}
}

func TestRustupInstallsOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	skipWithoutShell(t)
	dir := t.TempDir()
	writeExecutable(t, filepath.Join(dir, "rustup"), fakeRustup)
	writeExecutable(t, filepath.Join(dir, "sysroot", "bin", "rustc"), fakeRustc)
	rustup := &artifact.Rustup{Command: filepath.Join(dir, "rustup")}
	cache := openCache(t, artifact.Options{}, rustup)

	installed, err := rustup.Toolchains(t.Context())
	require.NoError(t, err)
	require.Empty(t, installed)
	for _, install := range []string{"", "false"} {
		_, err := cache.Acquire(t.Context(), rustRequest("1.80.0", rustHost, install), nil)
		require.Equal(t, artifact.NotFound, artifact.KindOf(err))
		require.ErrorContains(t, err, "rustup toolchain install --profile minimal")
	}
	require.NoFileExists(t, filepath.Join(dir, "installed"))

	handle := acquire(t, cache, rustRequest("1.80.0", rustHost, "true"))
	require.Equal(t, filepath.Join(dir, "sysroot"), handle.Dir())
	require.Equal(t, "rustc 1.80.0 0123abc "+rustHost, handle.Identity())
	require.NoError(t, handle.Release())
	installed, err = rustup.Toolchains(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"1.80.0-" + rustHost}, installed)

	_, err = cache.Acquire(t.Context(), rustRequest("1.80.0", rustHost, "yes"), nil)
	require.ErrorContains(t, err, `use "true" or "false"`)
	for _, tag := range []string{"--help", "1.80.0 --force", "../x"} {
		_, err = cache.Acquire(t.Context(), rustRequest(tag, "", ""), nil)
		require.Equal(t, artifact.Invalid, artifact.KindOf(err), tag)
	}
}

func TestWithoutRustup(t *testing.T) {
	t.Parallel()
	cache := openCache(t, artifact.Options{}, &artifact.Rustup{Command: filepath.Join(t.TempDir(), "rustup")})
	_, err := cache.Acquire(t.Context(), rustRequest("1.80.0", "", ""), nil)
	require.Equal(t, artifact.ToolMissing, artifact.KindOf(err))
	require.ErrorContains(t, err, "install rustup on this machine")
}

// This test checks the messages and listings of the real rustup, by which its failures are classified.
func TestTheRealRustup(t *testing.T) {
	t.Parallel()
	skipWithoutShell(t)
	path, err := exec.LookPath("rustup")
	if err != nil {
		t.Skip("needs rustup")
	}
	empty := httptest.NewServer(http.NotFoundHandler())
	defer empty.Close()
	closed := httptest.NewServer(nil)
	closed.Close()
	settings := []string{"RUSTUP_HOME=" + t.TempDir(), "RUSTUP_DIST_SERVER=" + empty.URL, "RUSTUP_TOOLCHAIN="}
	rustup := &artifact.Rustup{Env: settings}
	cache := openCache(t, artifact.Options{}, rustup)

	installed, err := rustup.Toolchains(t.Context())
	require.NoError(t, err)
	require.Empty(t, installed)
	_, err = cache.Acquire(t.Context(), rustRequest("1.50.0", rustHost, ""), nil)
	require.Equal(t, artifact.NotFound, artifact.KindOf(err))
	require.ErrorContains(t, err, "not installed on this machine")
	_, err = cache.Acquire(t.Context(), rustRequest("1.50.0", "", "true"), nil)
	require.Equal(t, artifact.NotFound, artifact.KindOf(err))
	require.ErrorContains(t, err, "no such Rust release")

	away := &artifact.Rustup{Env: append(settings[:len(settings):len(settings)], "RUSTUP_DIST_SERVER="+closed.URL)}
	_, err = openCache(t, artifact.Options{}, away).Acquire(t.Context(), rustRequest("1.50.0", "", "true"), nil)
	require.Equal(t, artifact.Unavailable, artifact.KindOf(err), err)

	// A linked toolchain keeps its own name, whatever the target.
	sysroot := t.TempDir()
	writeExecutable(t, filepath.Join(sysroot, "bin", "rustc"), fakeRustc)
	require.NoError(t, os.Mkdir(filepath.Join(sysroot, "lib"), 0o755)) // rustup looks for it
	link := exec.CommandContext(t.Context(), path, "toolchain", "link", "mine", sysroot)
	link.Env = append(link.Environ(), settings...)
	out, err := link.CombinedOutput()
	require.NoError(t, err, string(out))
	installed, err = rustup.Toolchains(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"mine"}, installed)
	for _, target := range []string{"", rustHost} {
		handle := acquire(t, cache, rustRequest("mine", target, ""))
		resolved, err := filepath.EvalSymlinks(handle.Dir())
		require.NoError(t, err)
		want, err := filepath.EvalSymlinks(sysroot)
		require.NoError(t, err)
		require.Equal(t, want, resolved)
		require.NoError(t, handle.Release())
	}
}
