package workers_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/workers"
)

func TestCacheDirs(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dirs, err := workers.CacheDirs(filepath.Join(root, "nowhere"))
	require.NoError(t, err)
	require.Empty(t, dirs)

	for _, d := range []string{"go/mod/deep", "go/build", "rust", "with\nline"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, d), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "file"), nil, 0o600))
	dirs, err = workers.CacheDirs(root)
	require.NoError(t, err)
	require.Equal(t, []string{"go", "go/build", "go/mod", "rust"}, dirs)

	for i := range 1200 {
		require.NoError(t, os.MkdirAll(filepath.Join(root, "rust", fmt.Sprint(i)), 0o755))
	}
	dirs, err = workers.CacheDirs(root)
	require.NoError(t, err)
	require.LessOrEqual(t, len(dirs), 1000)
	require.Subset(t, dirs, []string{"go", "go/mod", "rust"})
}
