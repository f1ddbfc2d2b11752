package collection

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// watched is the disk of a test: it notes each operation, and fails those named.
type watched struct {
	disk
	fails string
	done  []string
}

var errBroken = errors.New("input/output error")

func (w *watched) note(operation string) error {
	w.done = append(w.done, operation)
	if operation == w.fails {
		return errBroken
	}
	return nil
}

func (w *watched) WriteTemp(dir string, contents []byte) (string, error) {
	if err := w.note("write"); err != nil {
		return "", err
	}
	return w.disk.WriteTemp(dir, contents)
}

func (w *watched) Rename(from, to string) error {
	if err := w.note("rename"); err != nil {
		return err
	}
	return w.disk.Rename(from, to)
}

func (w *watched) SyncDir(dir string) error {
	if err := w.note("sync directory"); err != nil {
		return err
	}
	return w.disk.SyncDir(dir)
}

func openWatched(t *testing.T) (*Spool, *watched) {
	t.Helper()
	s, err := OpenSpool(t.TempDir())
	require.NoError(t, err)
	w := &watched{}
	s.files = w
	return s, w
}

var someRun = bench.NewRunID("aaaaaaaaaaaaaaaa", "workflow", "activity", 1)

func someBlock(message string) apiclient.Block {
	return apiclient.Block{Errors: []apiclient.BlockError{{Kind: bench.FailJob, Message: message}}}
}

// A block has survived a power failure only when its name has, too.
func TestABlockIsDurableWithItsName(t *testing.T) {
	t.Parallel()
	s, w := openWatched(t)
	require.NoError(t, s.Put(t.Context(), someRun, 1, someBlock("one")))
	require.Equal(t, []string{"write", "rename", "sync directory"}, w.done)
	w.done = nil
	list, err := s.List()
	require.NoError(t, err)
	require.NoError(t, s.SetAside(t.Context(), list[0], errors.New("unknown run")))
	require.Equal(t, []string{"rename", "sync directory"}, w.done)
	text, err := os.ReadFile(filepath.Join(s.dir, fileName(someRun, 1)+".refused.why"))
	require.NoError(t, err)
	require.Equal(t, "unknown run\n", string(text))
}

func TestADiskThatFailsAnywhereLosesNoBlock(t *testing.T) {
	t.Parallel()
	for _, operation := range []string{"write", "rename", "sync directory"} {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			s, w := openWatched(t)
			w.fails = operation
			require.ErrorIs(t, s.Put(t.Context(), someRun, 1, someBlock("one")), errBroken)
			full, err := s.PutOrHold(t.Context(), someRun, 2, someBlock("two"))
			require.NoError(t, err)
			require.ErrorIs(t, full, errBroken)
			require.ErrorIs(t, s.Unload(t.Context()), errBroken)
			found := contents(t, s)
			require.Contains(t, found, "two")
			require.False(t, s.Overfull())
			files, err := os.ReadDir(s.dir)
			require.NoError(t, err)
			for _, f := range files {
				require.False(t, strings.HasPrefix(f.Name(), tempPrefix), "nothing half-written is left: %s", f.Name())
			}

			w.fails = ""
			require.NoError(t, s.Unload(t.Context()))
			require.Empty(t, s.held)
			again, err := OpenSpool(s.dir)
			require.NoError(t, err)
			require.Contains(t, contents(t, again), "two")
			require.NoError(t, s.Remove(someRun, 2))
			require.NotContains(t, contents(t, again), "two")
		})
	}
}

// contents returns the messages of all blocks in a spool.
func contents(t *testing.T, s *Spool) map[string]bool {
	t.Helper()
	list, err := s.List()
	require.NoError(t, err)
	found := make(map[string]bool)
	for _, b := range list {
		block, err := s.Read(b)
		require.NoError(t, err)
		found[block.Errors[0].Message] = true
	}
	return found
}

func TestABlockInMemoryIsSetAsideOnDisk(t *testing.T) {
	t.Parallel()
	s, w := openWatched(t)
	w.fails = "write"
	_, err := s.PutOrHold(t.Context(), someRun, 1, someBlock("one"))
	require.NoError(t, err)
	require.ErrorIs(t, s.SetAside(t.Context(), s.inMemory()[0], errors.New("no")), errBroken)
	require.Len(t, s.held, 1, "it stays in memory until the disk takes it")
	w.fails = ""
	require.NoError(t, s.SetAside(t.Context(), s.inMemory()[0], errors.New("no")))
	require.Empty(t, s.held)
	require.FileExists(t, filepath.Join(s.dir, fileName(someRun, 1)+refused))
}

func TestTheMemoryOfASpoolIsBounded(t *testing.T) {
	t.Parallel()
	s, w := openWatched(t)
	w.fails = "write"
	s.most = 3000
	number := 0
	for !s.Overfull() {
		number++
		require.Less(t, number, 1000)
		_, err := s.PutOrHold(context.Background(), someRun, number, someBlock("one"))
		require.NoError(t, err)
	}
	require.Greater(t, number, 10, "a small block needs some hundred bytes")
	require.Len(t, contents(t, s), 1)
	require.NoError(t, s.Remove(someRun, 1))
	require.False(t, s.Overfull())
}
