package hostile_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// What somebody writes into a collector's copy of a suite between two requests is neither
// run nor kept.
func TestAChangedSuiteOfACollectorIsNotRun(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	dir := s.machine(t, "tampered", 21, s.url)
	s.awaitMachine(t, "tampered")
	builds := t.TempDir()
	for _, tag := range []string{"1.0", "2.0"} {
		require.NoError(t, os.MkdirAll(filepath.Join(builds, tag), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(builds, tag, "version"), []byte(tag), 0o644))
	}
	honest, planted := writable(t, "honest"), writable(t, "planted")
	s.apply(t, "tampered", fmt.Sprintf(`name: tampered
artifact: {provider: directory, parameters: {path: %q}}
iterations: 1
benchmarks:
  - {name: one, measure: {run: [sh, -c, "echo once >>%s"]}}
`, builds+"/{tag}", honest))
	measure := func(tag string) {
		t.Helper()
		id := s.submit(t, apiclient.NewRequest{Project: "tampered", Type: bench.AdHoc, Tag: tag, PlacementWish: apiclient.PlacementWish{SizeClass: 21}})
		d := s.await(t, id)
		require.Equal(t, bench.Success, d.Outcome, d.Message)
	}
	measure("1.0")
	require.Equal(t, 1, executed(t, honest))

	changed := 0
	require.NoError(t, filepath.WalkDir(filepath.Join(dir, "suites"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		changed++
		if err := os.Remove(path); err != nil { // it may be read only
			return err
		}
		return os.WriteFile(path, bytes.ReplaceAll(text, []byte(honest), []byte(planted)), 0o644)
	}))
	require.Equal(t, 1, changed, "the collector keeps no copy of the suite")
	measure("2.0")
	require.Zero(t, executed(t, planted), "the planted command was run")
	require.Equal(t, 2, executed(t, honest))
}
