package collection_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/activities/collection"
	"github.com/benchloom/benchloom/internal/failpoint"
)

// spoolChild names the directory of the spool in which this program, started again,
// writes one block.
const spoolChild = "SPOOL_ONE_BLOCK"

func spoolOneBlock(dir string) int {
	spool, err := collection.OpenSpool(dir)
	if err == nil {
		spool.Points = failpoint.FromEnvironment(os.Getenv)
		err = spool.Put(context.Background(), runA, 2, blockOf("gin", 2))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A collector that is killed while it writes a block leaves the whole block, or nothing.
func TestAKillWhileABlockIsSpooled(t *testing.T) {
	t.Parallel()
	for point, want := range map[string][]int{failpoint.Spooling: {1}, failpoint.Spooled: {1, 2}} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			dir, points := t.TempDir(), t.TempDir()
			spool, err := collection.OpenSpool(dir)
			require.NoError(t, err)
			require.NoError(t, spool.Put(t.Context(), runA, 1, blockOf("gin", 1)))
			require.NoError(t, os.WriteFile(filepath.Join(points, "hold-"+point), nil, 0o600))
			child := exec.CommandContext(t.Context(), os.Args[0])
			child.Env = append(os.Environ(), spoolChild+"="+dir, failpoint.Env+"="+points)
			child.Stderr = os.Stderr
			require.NoError(t, child.Start())
			require.Eventually(t, func() bool {
				_, err := os.Stat(filepath.Join(points, "reached-"+point))
				return err == nil
			}, 2*time.Minute, time.Millisecond)
			require.NoError(t, child.Process.Kill())
			require.Error(t, child.Wait())

			spool, err = collection.OpenSpool(dir)
			require.NoError(t, err)
			list, err := spool.List()
			require.NoError(t, err)
			var numbers []int
			for _, b := range list {
				numbers = append(numbers, b.Number)
				block, err := spool.Read(b)
				require.NoError(t, err)
				require.Equal(t, blockOf("gin", float64(b.Number)), block)
			}
			require.Equal(t, want, numbers)
			files, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, files, len(want), "nothing half-written is left")
		})
	}
}
