package collection_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/activities/collection"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

var (
	runA = bench.NewRunID("aaaaaaaaaaaaaaaa", "workflow", "activity", 1)
	runB = bench.NewRunID("bbbbbbbbbbbbbbbb", "workflow", "activity", 1)
)

func blockOf(benchmark string, seconds float64) apiclient.Block {
	return apiclient.Block{Results: []apiclient.TestCaseResult{{
		TestCase: bench.TestCase{Benchmark: benchmark, Target: "x86_64-unknown-linux-gnu"},
		Collections: []apiclient.Collection{{
			Iteration: 1, CollectedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Values: map[bench.Metric]float64{bench.WallTime: seconds},
		}},
	}}}
}

func TestTheSpoolKeepsBlocksInOrder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "spool")
	spool, err := collection.OpenSpool(dir)
	require.NoError(t, err)
	for _, number := range []int{10, 9, 1} {
		require.NoError(t, spool.Put(t.Context(), runA, number, blockOf("gin", float64(number))))
	}
	require.NoError(t, spool.Put(t.Context(), runB, 2, blockOf("kit", 2)))
	require.NoError(t, spool.Put(t.Context(), runA, 9, blockOf("gin", 99)), "written again, it is replaced")

	// A new process.
	spool, err = collection.OpenSpool(dir)
	require.NoError(t, err)
	list, err := spool.List()
	require.NoError(t, err)
	type place struct {
		run    bench.RunID
		number int
	}
	var places []place
	for _, s := range list {
		places = append(places, place{s.Run, s.Number})
	}
	require.Equal(t, []place{{runA, 1}, {runA, 9}, {runA, 10}, {runB, 2}}, places)
	block, err := spool.Read(list[1])
	require.NoError(t, err)
	require.Equal(t, blockOf("gin", 99), block)

	// Removing twice is allowed.
	for range 2 {
		require.NoError(t, spool.Remove(runA, 9))
	}
	left, err := spool.List()
	require.NoError(t, err)
	require.Len(t, left, 3)
	_, err = spool.Read(list[1])
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestTheSpoolCleansUpAfterAKilledCollector(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	spool, err := collection.OpenSpool(dir)
	require.NoError(t, err)
	require.NoError(t, spool.Put(t.Context(), runA, 1, blockOf("gin", 1)))
	half := filepath.Join(dir, "writing-123")
	require.NoError(t, os.WriteFile(half, []byte("half"), 0o600))
	aside := filepath.Join(dir, string(runB)+".1.json.gz.refused")
	require.NoError(t, os.WriteFile(aside, []byte("refused"), 0o600))
	list, err := spool.List()
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.NoFileExists(t, half)
	require.FileExists(t, aside)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 2, "writing leaves nothing else behind")
}

func TestTheSpoolPutsAsideWhatIsNoBlock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	spool, err := collection.OpenSpool(dir)
	require.NoError(t, err)
	require.NoError(t, spool.Put(t.Context(), runA, 1, blockOf("gin", 1)))
	strange := []string{string(runA) + ".json.gz", string(runA) + ".one.json.gz", "copy-of-a-block.json.gz"}
	for _, name := range strange {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	list, err := spool.List()
	require.NoError(t, err)
	require.Len(t, list, 1)
	why, err := spool.PutAside()
	require.NoError(t, err)
	require.Len(t, why, len(strange))
	for i, name := range strange {
		require.ErrorContains(t, why[i], name+", which is no block")
		require.FileExists(t, filepath.Join(dir, name+".refused"))
	}
	why, err = spool.PutAside()
	require.NoError(t, err)
	require.Empty(t, why)
	list, err = spool.List()
	require.NoError(t, err)
	require.Len(t, list, 1)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = collection.OpenSpool(file)
	require.ErrorContains(t, err, "making the spool")
}
