//go:build unix

package jobrun_test

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diskspace"
	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/suite"
)

// tightDisk is a file system of 100 bytes of which 20 are reserved. It loses 70 bytes while the file exists.
func tightDisk(file string, used func() int64) *jobrun.Disk {
	return &jobrun.Disk{
		Every: time.Millisecond, Reserve: diskspace.Reserve{Bytes: 20},
		Space: func() (diskspace.Space, error) {
			if _, err := os.Stat(file); err == nil {
				return diskspace.Space{Size: 100, Free: 10}, nil
			}
			return diskspace.Space{Size: 100, Free: 80}, nil
		},
		Used: func(_ context.Context, _ string, since time.Time) (int64, error) {
			if !since.IsZero() {
				return 0, nil // nothing is kept
			}
			return used(), nil
		},
	}
}

func TestACommandThatFillsTheDiskIsEndedBeforeTheReserve(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	full := filepath.Join(t.TempDir(), "full")
	b.machine.Disk = tightDisk(full, func() int64 { defer os.Remove(full); return 70 }) // its directory is emptied next
	s := shellSuite{recipe: func(tc bench.TestCase, p suite.Paths) (suite.Recipe, error) {
		if tc.Benchmark == "greedy" {
			return suite.Recipe{Measure: sh(p, "touch "+full+"; sleep 600")}, nil
		}
		return suite.Recipe{Measure: sh(p, "true")}, nil
	}}
	require.NoError(t, b.run(t, b.job(t, s, "greedy/full", "good/full")))
	failure := b.sink.failure(t, "greedy/full")
	require.Equal(t, bench.FailTooSmall, failure.Kind)
	require.Contains(t, failure.Message, "killed because it filled the disk: the file system of "+b.sandbox.dir+" has 10 B left, less than the reserve of 20 B")
	require.Nil(t, b.sink.results()["good/full A"].Failure, "the next one runs")
}

func TestACommandWaitsForSpaceThatOthersUse(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	full := filepath.Join(t.TempDir(), "full")
	var used atomic.Int64
	b.machine.Disk = tightDisk(full, used.Load)
	s := shellSuite{recipe: func(_ bench.TestCase, p suite.Paths) (suite.Recipe, error) {
		return suite.Recipe{Measure: sh(p, "touch "+full+"; sleep 600")}, nil
	}}
	used.Store(29) // less than half of the 60 bytes above the reserve
	err := b.run(t, b.job(t, s, "small/full"))
	require.ErrorIs(t, err, syscall.ENOSPC, "the whole job waits, as on a full disk")
	require.Empty(t, b.sink.blocks)

	// While the disk is short, no job begins.
	started := false
	b.machine.Sandbox = b.sandbox
	s.recipe = func(bench.TestCase, suite.Paths) (suite.Recipe, error) { started = true; return suite.Recipe{}, nil }
	require.ErrorIs(t, b.run(t, b.job(t, s, "small/full")), syscall.ENOSPC)
	require.False(t, started)
}

func TestFilesDeletedWhileOpenAreTheCommandsOwn(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	full := filepath.Join(t.TempDir(), "full")
	b.machine.Disk = tightDisk(full, func() int64 { require.NoError(t, os.Remove(full)); return 0 }) // its processes are dead
	s := shellSuite{recipe: func(_ bench.TestCase, p suite.Paths) (suite.Recipe, error) {
		return suite.Recipe{Measure: sh(p, "touch "+full+"; sleep 600")}, nil
	}}
	require.NoError(t, b.run(t, b.job(t, s, "greedy/full")))
	require.Equal(t, bench.FailTooSmall, b.sink.failure(t, "greedy/full").Kind)
}

// Files that outlive the job are there before it begins: only what it has added is its own.
func TestACommandThatFillsItsCacheIsEndedLikeOthers(t *testing.T) {
	t.Parallel()
	for kept, own := range map[int64]bool{29: false, 30: true} {
		b := newBundle(t)
		full := filepath.Join(t.TempDir(), "full")
		b.machine.Disk = tightDisk(full, nil)
		began := time.Now()
		b.machine.Disk.Used = func(_ context.Context, dir string, since time.Time) (int64, error) {
			if dir != b.machine.CacheDir {
				return 0, nil
			}
			require.WithinRange(t, since, began, time.Now())
			return kept, nil
		}
		s := shellSuite{recipe: func(_ bench.TestCase, p suite.Paths) (suite.Recipe, error) {
			return suite.Recipe{Measure: sh(p, "touch "+full+"; sleep 600")}, nil
		}}
		err := b.run(t, b.job(t, s, "greedy/full"))
		if !own {
			require.ErrorIs(t, err, syscall.ENOSPC)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, bench.FailTooSmall, b.sink.failure(t, "greedy/full").Kind)
	}
}
