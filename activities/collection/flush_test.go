//go:build linux

package collection_test

import (
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
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
	require.NoError(t, b.Spool.Put(t.Context(), runA, 1, blockOf("gin", 1)))
	require.NoError(t, b.Spool.Put(t.Context(), runB, 1, blockOf("gin", 1)))
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
		_, err := env.ExecuteActivity(protocol.RunJob, b.dispatched(key))
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

// A proxy's answer says nothing about a block: it stays in the spool, and the next one
// is delivered when the API answers again.
func TestWhatAProxyAnswersSetsNothingAside(t *testing.T) {
	b := setup(t)
	key := b.job("v1", "one", "two")
	b.gate.refuse(uploads)
	_, err := b.run(key, 1)
	require.Error(t, err)
	spooled := b.spooled()
	require.Len(t, spooled, 2)
	for name, answer := range foreignAnswers {
		b.gate.reply(uploads, answer)
		require.ErrorContains(t, b.FlushSpool(t.Context()), "not an answer of the Benchloom API", name)
		require.Equal(t, spooled, b.spooled(), name)
	}
	aside, err := filepath.Glob(filepath.Join(b.spool, "*.refused"))
	require.NoError(t, err)
	require.Empty(t, aside)

	b.gate.refuse(nil)
	require.NoError(t, b.FlushSpool(t.Context()))
	require.Equal(t, 2, b.done(key))
	require.Len(t, b.journal(), 4)
}

// foreignAnswers are possible answers of something between a collector and the API.
var foreignAnswers = map[string]http.HandlerFunc{
	"a proxy without a route": http.NotFound,
	"a limit of bodies": func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "<html>", http.StatusRequestEntityTooLarge)
	},
	"a login page":  func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>log in</html>") },
	"a redirection": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) },
	"nothing":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
}

// Whichever call of a run something else answers, it costs time and never the run.
func TestAnAnswerOfSomethingElseEndsNoRun(t *testing.T) {
	for call, of := range map[string]string{"start": "/start", "suite": "/suites/", "log": "/log", "block": "/blocks/", "end": "/finish"} {
		t.Run(call, func(t *testing.T) {
			b := setup(t)
			b.Begin, b.Upload = b.Begin.Forever(), b.Upload.Forever()
			if call == "log" {
				b.gate.isOlder() // else it is sent with the end
			}
			key := b.job("v1", "one", "two")
			answers := slices.Collect(maps.Values(foreignAnswers))
			answered := 0
			b.gate.reply(func(path string) bool {
				if !strings.Contains(path, of) {
					return false
				}
				answered++
				return answered <= len(answers)
			}, func(w http.ResponseWriter, r *http.Request) { answers[(answered-1)%len(answers)](w, r) })
			out, err := b.run(key, 1)
			require.NoError(t, err)
			require.Equal(t, bench.RunSuccess, out.Outcome)
			require.Len(t, b.runs(key), 1)
			require.Equal(t, 2, b.done(key))
			require.Len(t, b.journal(), 4)
			require.Empty(t, b.spooled())
			require.Positive(t, answered)
		})
	}
}

// A collector whose token is not valid keeps its blocks: not they were refused.
func TestAnInvalidTokenSetsNothingAside(t *testing.T) {
	b := setup(t)
	require.NoError(t, b.Spool.Put(t.Context(), runA, 1, blockOf("gin", 1)))
	b.gate.reply(uploads, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"type": "urn:benchloom:unauthorized", "status": 401, "detail": "this token is not known"}`)
	})
	require.ErrorContains(t, b.FlushSpool(t.Context()), "this token is not known")
	require.Len(t, b.spooled(), 1)
}

// A disk that is full for a while costs nothing: blocks go to the API from memory.
func TestAFullDiskLosesNoBlock(t *testing.T) {
	b := setup(t)
	free := fillDisk(t, b.spool)
	key := b.job("v1", "one", "two")
	out, err := b.run(key, 1)
	require.NoError(t, err)
	require.Equal(t, bench.RunSuccess, out.Outcome)
	require.Equal(t, 2, b.done(key))

	// With the API away as well, they wait in memory, and go to the disk when it has
	// space again.
	b.gate.refuse(uploads)
	require.NoError(t, os.CopyFS(filepath.Join(b.root, "artifacts", "v2"), os.DirFS(filepath.Join(b.root, "artifacts", "v1"))))
	later := b.job("v2", "one", "two")
	_, err = b.run(later, 1)
	b.fails(err, protocol.ErrTypeInfrastructure, false, "uploading block 1")
	require.Len(t, b.spooled(), 2)
	require.Empty(t, b.onDisk())
	require.Len(t, b.journal(), 8)
	free()
	require.ErrorContains(t, b.FlushSpool(t.Context()), "uploading block 1")
	require.Len(t, b.onDisk(), 2)
	b.gate.refuse(nil)
	_, err = b.run(later, 2)
	require.NoError(t, err)
	require.Equal(t, 2, b.done(later))
	require.Len(t, b.journal(), 8, "nothing is measured twice")
	require.Empty(t, b.spooled())
}

// When neither the disk nor the API takes blocks and memory holds enough, measuring
// waits.
func TestMeasuringWaitsWhenNothingTakesBlocks(t *testing.T) {
	b := setup(t)
	b.Upload = b.Upload.Forever()
	b.Spool.HoldAtMost(1)
	free := fillDisk(t, b.spool)
	key := b.job("v1", "one", "two")
	var waits sync.Once
	waiting := make(chan struct{})
	attempts := 0
	b.gate.refuse(func(path string) bool {
		if !uploads(path) {
			return false
		}
		if attempts++; attempts == 10 {
			waits.Do(func() { close(waiting) })
		}
		return true
	})
	ended := make(chan error, 1)
	go func() {
		_, err := b.run(key, 1)
		ended <- err
	}()
	<-waiting
	require.Equal(t, []string{"one", "one"}, b.journal(), "the second block has not begun")
	free()
	require.Eventually(t, func() bool { return len(b.journal()) == 4 }, 2*time.Minute, time.Millisecond, "the disk has taken the first block")
	b.gate.refuse(nil)
	require.NoError(t, <-ended)
	require.Equal(t, 2, b.done(key))
	require.Len(t, b.journal(), 4)
}

// A run waits for space on the disk on which it prepares and measures.
func TestARunWaitsForSpaceOnAFullDisk(t *testing.T) {
	b := setup(t)
	b.DiskPatience = time.Hour
	free := fillDisk(t, b.Machine.Sandbox.WorkDir())
	key := b.job("v1", "one", "two")
	ended := make(chan error, 1)
	go func() {
		_, err := b.run(key, 1)
		ended <- err
	}()
	require.Eventually(t, func() bool {
		log, _, err := b.store.ReadLog(t.Context(), b.Current().Run, 0, 1<<20)
		return err == nil && strings.Contains(string(log), "waiting for space")
	}, 2*time.Minute, 10*time.Millisecond)
	require.Empty(t, b.journal())
	free()
	require.NoError(t, <-ended)
	require.Len(t, b.runs(key), 1)
	require.Equal(t, 2, b.done(key))
	require.Len(t, b.journal(), 4)
}

// After a full disk a run goes on with what it has not delivered yet.
func TestARunGoesOnAfterAFullDisk(t *testing.T) {
	b := setup(t)
	b.DiskPatience = time.Hour
	mountSmall(t, b.Machine.Sandbox.WorkDir())
	require.NoError(t, os.WriteFile(filepath.Join(b.root, "fill-now"), nil, 0o600))
	key := b.job("v1", "one", "fills", "two")
	out, err := b.run(key, 1)
	require.NoError(t, err)
	require.Equal(t, bench.RunSuccess, out.Outcome)
	require.Len(t, b.runs(key), 1)
	log, _, err := b.store.ReadLog(t.Context(), out.Run, 0, 1<<20)
	require.NoError(t, err)
	require.Contains(t, string(log), "waiting for space")
	require.NoFileExists(t, filepath.Join(b.Machine.Sandbox.WorkDir(), "ballast"), "what a run left is removed")
	require.Equal(t, 3, b.done(key))
	require.ElementsMatch(t, []string{"one", "one", "fills", "fills", "two", "two"}, b.journal())
}

// A disk that nobody frees ends the run when its patience is over.
func TestADiskThatStaysFullEndsTheRun(t *testing.T) {
	b := setup(t)
	b.DiskPatience = time.Second
	fillDisk(t, b.Machine.Sandbox.WorkDir())
	_, err := b.run(b.job("v1", "one"), 1)
	b.fails(err, protocol.ErrTypeInfrastructure, false, "is full; free space there")
	require.Empty(t, b.journal())
}

// mountSmall puts a small file system at a directory.
func mountSmall(t *testing.T, dir string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k,nr_inodes=200"); err != nil {
		t.Skipf("mounting a small file system: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, 0)) })
}

// fillDisk puts a small file system at a directory and fills it, though nothing is seen there; free empties it.
func fillDisk(t *testing.T, dir string) (free func()) {
	t.Helper()
	mountSmall(t, dir)
	var open []*os.File // deleted, so that nothing but closing them frees their space
	free = func() {
		for _, f := range open {
			require.NoError(t, f.Close())
		}
		open = nil
	}
	t.Cleanup(free)
	for {
		f, err := os.CreateTemp(dir, "filler")
		if err != nil {
			require.ErrorIs(t, err, syscall.ENOSPC)
			return free
		}
		open = append(open, f)
		require.NoError(t, os.Remove(f.Name()))
		if len(open) == 1 {
			_, err = f.Write(make([]byte, 1<<20))
			require.ErrorIs(t, err, syscall.ENOSPC)
		}
	}
}

// onDisk returns the names of the blocks on disk.
func (b *bundle) onDisk() []string {
	b.t.Helper()
	names, err := filepath.Glob(filepath.Join(b.spool, "*.json.gz"))
	require.NoError(b.t, err)
	return names
}
