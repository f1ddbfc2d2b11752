//go:build linux

package collection_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/protocol"
)

func TestARefusedBlockIsKeptAsideAndBlocksNothing(t *testing.T) {
	b := setup(t)
	key := b.job("v1", "one")
	b.gate.refuse(uploads)
	_, err := b.run(key, 1)
	require.Error(t, err)
	b.gate.refuse(nil)
	// Runs that the API does not know, around one that it does, and a file that a
	// disk has damaged.
	require.NoError(t, b.Spool.Put(runA, 1, blockOf("gin", 1)))
	require.NoError(t, b.Spool.Put(runB, 1, blockOf("gin", 1)))
	damaged := filepath.Join(b.spool, string(runB)+".2.json.gz")
	require.NoError(t, os.WriteFile(damaged, []byte("damaged"), 0o600))

	require.NoError(t, b.FlushSpool(t.Context()))
	require.Empty(t, b.spooled())
	require.Equal(t, 1, b.done(key))
	kept, err := filepath.Glob(filepath.Join(b.spool, "*.refused"))
	require.NoError(t, err)
	require.ElementsMatch(t, []string{
		filepath.Join(b.spool, string(runA)+".1.json.gz.refused"), filepath.Join(b.spool, string(runB)+".1.json.gz.refused"), damaged + ".refused",
	}, kept)
	require.NoError(t, b.FlushSpool(t.Context()), "what was refused is not tried again")
}

func TestARunThatFollowsAnOutageMeasuresNothingTwice(t *testing.T) {
	b := setup(t)
	key := b.job("v1", "one")
	b.gate.refuse(uploads)
	_, err := b.run(key, 1)
	b.fails(err, protocol.ErrTypeInfrastructure, false, "uploading block 1")
	b.gate.refuse(nil)
	// The same process takes the job again.
	_, err = b.run(key, 2)
	require.NoError(t, err)
	require.Len(t, b.journal(), 2, "two iterations")
	require.Empty(t, b.spooled())
}
