//go:build linux

package collection_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"github.com/benchloom/benchloom/internal/bench"
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

// A stray file in the spool does not prevent jobs from running. An unusable
// spool does: the collector pauses for increasing times, with its machine
// occupied, and leaves jobs to others.
func TestACollectorThatCannotBeginRests(t *testing.T) {
	b := setup(t)
	key := b.job("v1", "one")
	stray := filepath.Join(b.spool, "copy-of-a-block.json.gz")
	require.NoError(t, os.WriteFile(stray, []byte("?"), 0o600))
	var rests []time.Duration
	released := 0
	b.Later = func(after time.Duration, do func()) {
		require.Zero(t, released)
		rests = append(rests, after)
		do()
	}
	take := func() error {
		var tests testsuite.WorkflowTestSuite
		env := tests.NewTestActivityEnvironment()
		env.SetWorkerStopChannel(b.stop)
		b.Register(env, func() (func(), bool) { return func() { released++ }, true })
		_, err := env.ExecuteActivity(protocol.RunJob, protocol.RunJobInput{Project: "go", Key: key, Reason: bench.Scheduled})
		require.Equal(t, 1, released)
		released = 0
		return err
	}
	away := b.spool + "-away"
	require.NoError(t, os.Rename(b.spool, away))
	for range 7 {
		b.fails(take(), protocol.ErrTypeInfrastructure, false, "reading the spool")
	}
	require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second}, rests)
	require.Empty(t, b.runs(key))

	require.NoError(t, os.Rename(away, b.spool))
	require.NoError(t, take())
	require.Len(t, rests, 7)
	require.Len(t, b.runs(key), 1)
	require.FileExists(t, stray+".refused")
}

// A task returned by a busy machine has its own error type: it is retried at
// once.
func TestABusyMachineGivesBack(t *testing.T) {
	b := setup(t)
	var tests testsuite.WorkflowTestSuite
	env := tests.NewTestActivityEnvironment()
	b.Register(env, func() (func(), bool) { return nil, false })
	_, err := env.ExecuteActivity(protocol.RunJob, protocol.RunJobInput{Project: "go", Key: "aaaaaaaaaaaaaaaa"})
	b.fails(err, protocol.ErrTypeNotTaken, false, "not taken")
	kind, _ := protocol.FailureOf(err)
	require.Equal(t, bench.FailNotTaken, kind)
}
