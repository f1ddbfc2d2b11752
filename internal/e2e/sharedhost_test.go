package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// sized submits a gated job for a size class.
func (s *stack) sized(t *testing.T, class bench.SizeClass) gatedJob {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gate")
	script := fmt.Sprintf("touch %[1]s.begun; while [ ! -e %[1]s.go ]; do sleep 0.05; done", file)
	r := s.submit(t, apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"sh", "-c", script}, Iterations: 1}, PlacementWish: apiclient.PlacementWish{SizeClass: class}})
	return gatedJob{id: r.ID, file: file}
}

func (j gatedJob) hasBegun() bool {
	_, err := os.Stat(j.file + ".begun")
	return err == nil
}

// slots returns the collectors of a shared host by name.
func (s *stack) slots(t *testing.T, host string) map[string]apiclient.Collector {
	t.Helper()
	all, err := s.api.Collectors(t.Context())
	require.NoError(t, err)
	slots := map[string]apiclient.Collector{}
	for _, c := range all {
		if c.Host == host {
			slots[c.Name] = c
		}
	}
	return slots
}

func (s *stack) awaitSlots(t *testing.T, state bench.CollectorState, newerThan int64) map[string]apiclient.Collector {
	t.Helper()
	var slots map[string]apiclient.Collector
	require.Eventually(t, func() bool {
		slots = s.slots(t, "big")
		for _, c := range slots {
			if c.Epoch <= newerThan || state != "" && c.State != state {
				return false
			}
		}
		return len(slots) == 8
	}, patience, 20*time.Millisecond, "the host's slots are not all %s", state)
	return slots
}

// A shared host of 20 GB has slots for 4, 8 and 16 GB. Jobs run side by side within its
// memory, and no further one starts. Killed in the middle and restarted, it runs them
// again; draining it drains all of its slots.
func TestLongASharedHostRunsJobsSideBySide(t *testing.T) {
	t.Parallel()
	s := startStack(t, "--collectors", "1x1", "--share-cores")
	g := s.enrol(t, "big")
	run := []string{s.bin, "collector", "run", "--memory", "20g", "--classes", "2,4,8", "--class-memory", "2g"}
	g.start(t, run...)
	slots := s.awaitSlots(t, bench.CollectorWaiting, 0)
	var newest int64
	for name, c := range slots {
		require.True(t, c.CoLocated, name)
		require.Equal(t, "big", bench.HostOfSlot(name))
		newest = max(newest, c.Epoch)
	}
	require.Contains(t, slots, "big-c2-5")
	require.Contains(t, slots, "big-c4-2")
	require.Contains(t, slots, "big-c8-1")

	// Three of 8 GB: two run. One of 4 GB behind them starts at once; one of 16 GB
	// waits.
	eights := []gatedJob{s.sized(t, 4), s.sized(t, 4), s.sized(t, 4)}
	begun := func() (running, waiting []gatedJob) {
		for _, j := range eights {
			if j.hasBegun() {
				running = append(running, j)
			} else {
				waiting = append(waiting, j)
			}
		}
		return running, waiting
	}
	require.Eventually(t, func() bool { running, _ := begun(); return len(running) == 2 }, patience, 10*time.Millisecond)
	small, large := s.sized(t, 2), s.sized(t, 8)
	small.begun(t)
	running, waiting := begun()
	require.Len(t, waiting, 1)
	require.False(t, large.hasBegun())
	small.letGo(t)
	s.done(t, small)

	// The third starts when one of them ends.
	running[0].letGo(t)
	s.done(t, running[0])
	waiting[0].begun(t)
	require.False(t, large.hasBegun())

	// Killed in the middle and restarted: running jobs are retried, ended ones are not.
	require.NoError(t, g.command.Process.Signal(syscall.SIGKILL))
	require.Equal(t, -1, g.code(t))
	for _, j := range []gatedJob{running[1], waiting[0]} {
		require.NoError(t, os.Remove(j.file+".begun"))
	}
	g.start(t, run...)
	s.awaitSlots(t, "", newest)
	// Until the loss of their runs is noticed, there is enough memory for the large one; on a busy machine, it is noticed first.
	for left := []gatedJob{large, running[1], waiting[0]}; len(left) > 0; {
		next := -1
		require.Eventually(t, func() bool { next = slices.IndexFunc(left, gatedJob.hasBegun); return next >= 0 }, patience, 10*time.Millisecond)
		left[next].letGo(t)
		require.Equal(t, bench.Success, s.await(t, left[next].id, ended).Outcome)
		left = slices.Delete(left, next, next+1)
	}
	require.Len(t, s.runsOf(t, large.id), 1)
	for _, j := range []gatedJob{running[1], waiting[0]} {
		require.Len(t, s.runsOf(t, j.id), 2)
	}

	// The host is drained and activated as a whole.
	last := s.sized(t, 8)
	last.begun(t)
	out, code := s.run(t, "collector", "drain", "big")
	require.Zero(t, code)
	require.Equal(t, 8, strings.Count(out, "takes no further job"))
	next := s.sized(t, 2)
	last.letGo(t)
	s.done(t, last)
	s.awaitSlots(t, bench.CollectorInactive, newest)
	require.False(t, next.hasBegun())
	_, code = s.run(t, "collector", "activate", "big")
	require.Zero(t, code)
	next.begun(t)
	next.letGo(t)
	s.done(t, next)
	for _, j := range append(eights, small, large, last, next) {
		for _, r := range s.runsOf(t, j.id) {
			require.True(t, r.CoLocated)
		}
	}

	// Ctrl-C ends all slots.
	require.NoError(t, g.command.Process.Signal(os.Interrupt))
	require.Zero(t, g.code(t))
}
