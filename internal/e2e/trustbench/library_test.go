package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Releases differ in a comment, pairs in the rounds alone, and the next start goes on with the same repository.
func TestTheLibraryHasTheRevisionsOfTrials(t *testing.T) {
	t.Parallel()
	l, err := openLibrary(t.Context(), filepath.Join(t.TempDir(), "library"))
	require.NoError(t, err)
	git := func(args ...string) string {
		out, err := l.git(t.Context(), args...)
		require.NoError(t, err)
		return out
	}
	first, err := l.release(t.Context())
	require.NoError(t, err)
	baseline, slow, err := l.pair(t.Context(), 10)
	require.NoError(t, err)
	l, err = openLibrary(t.Context(), l.dir)
	require.NoError(t, err)
	second, err := l.release(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"v0.0.1", "v0.0.2"}, []string{first, second})
	require.Contains(t, git("show", first+":rounds.go"), "rounds = 1000")
	require.Contains(t, git("show", second+":rounds.go"), "rounds = 1000")
	require.NotEqual(t, git("rev-parse", first+"^{tree}"), git("rev-parse", second+"^{tree}"), "each release is built")
	require.Contains(t, git("show", slow+":rounds.go"), "rounds = 1100")

	again, slowAgain, err := l.pair(t.Context(), 10)
	require.NoError(t, err)
	require.NotEqual(t, baseline, again, "nothing was measured of its artifacts")
	for one, other := range map[string]string{baseline: again, slow: slowAgain} {
		require.Equal(t, git("rev-parse", one+"^{tree}"), git("rev-parse", other+"^{tree}"), "it is built once")
	}

	vet := exec.Command("go", "vet", "./...")
	vet.Dir, vet.Env = l.dir, append(os.Environ(), "GOPROXY=off", "GOWORK=off")
	out, err := vet.CombinedOutput()
	require.NoError(t, err, string(out))
}
