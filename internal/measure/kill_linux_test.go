package measure_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/measure"
)

// familyFiles are the files into which the processes of the helper "family" write their IDs.
var familyFiles = []string{"main", "child", "session", "orphan"}

// family waits until all processes of a family run and returns their IDs.
func family(t *testing.T, dir string) []int {
	t.Helper()
	var pids []int
	for _, name := range familyFiles {
		file := filepath.Join(dir, name)
		waitFor(t.Context(), t, func() bool {
			text, err := os.ReadFile(file)
			return err == nil && len(text) > 0
		})
		pids = append(pids, pidIn(t, file))
	}
	return pids
}

func requireDead(t *testing.T, pids []int) {
	t.Helper()
	for i, pid := range pids {
		require.False(t, alive(pid), "process %d (%s)", pid, familyFiles[i])
	}
}

func TestCancellingKillsTheWholeFamily(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, disableCgroups bool) {
		sandbox := newSandbox(t, measure.SandboxConfig{Isolation: open, DisableCgroups: disableCgroups, PIDs: 200})
		if disableCgroups {
			require.True(t, lacks(sandbox.Unenforced(), measure.LimitTree))
		}
		ctx, cancel := context.WithCancel(t.Context())
		var sample measure.Sample
		ended := make(chan error)
		go func() {
			var err error
			sample, err = sandbox.Run(ctx, helperCommand(sandbox, "family", sandbox.WorkDir()))
			ended <- err
		}()
		pids := family(t, sandbox.WorkDir())
		cancel()
		require.NoError(t, <-ended)
		require.Equal(t, measure.StatusCancelled, sample.Status)
		require.Equal(t, "SIGKILL", sample.Signal)
		require.Equal(t, -1, sample.ExitCode)
		require.Zero(t, sample.LeftBehind)
		requireDead(t, pids)

		// Nothing is left to wait for, and the sandbox works as before.
		for _, pid := range pids {
			require.NoDirExists(t, fmt.Sprintf("/proc/%d", pid))
		}
		sample, err := sandbox.Run(t.Context(), helperCommand(sandbox, "behind", "child", filepath.Join(sandbox.WorkDir(), "again")))
		require.NoError(t, err)
		require.True(t, sample.Succeeded())
	})
}

func TestATimeoutKillsTheWholeFamily(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, disableCgroups bool) {
		sandbox := newSandbox(t, measure.SandboxConfig{Isolation: open, DisableCgroups: disableCgroups})
		command := helperCommand(sandbox, "family", sandbox.WorkDir())
		// The processes need some time to start; those that did must be dead.
		command.Timeout = 1500 * time.Millisecond
		sample, err := sandbox.Run(t.Context(), command)
		require.NoError(t, err)
		require.Equal(t, measure.StatusTimedOut, sample.Status)
		require.GreaterOrEqual(t, sample.Wall, command.Timeout)
		for _, name := range familyFiles {
			file := filepath.Join(sandbox.WorkDir(), name)
			if _, err := os.Stat(file); err == nil {
				require.False(t, alive(pidIn(t, file)), name)
			}
		}
		killed, err := sandbox.Sweep(t.Context())
		require.NoError(t, err)
		require.Zero(t, killed)
	})
}

func TestProcessesThatOutliveTheMainOneAreKilledAndCounted(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, disableCgroups bool) {
		sandbox := newSandbox(t, measure.SandboxConfig{Isolation: open, DisableCgroups: disableCgroups})
		for _, way := range []string{"child", "session", "orphan"} {
			file := filepath.Join(sandbox.WorkDir(), way)
			sample, err := sandbox.Run(t.Context(), helperCommand(sandbox, "behind", way, file))
			require.NoError(t, err, way)
			require.True(t, sample.Succeeded(), way)
			require.Equal(t, 1, sample.LeftBehind, way)
			pid := pidIn(t, file)
			require.False(t, alive(pid), way)
			require.NoDirExists(t, fmt.Sprintf("/proc/%d", pid), "%s: reaped", way)
		}
	})
}

func TestWhatAdoptedProcessesUsedIsAdded(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, disableCgroups bool) {
		sandbox := newSandbox(t, measure.SandboxConfig{Isolation: open, DisableCgroups: disableCgroups})
		fifo := filepath.Join(sandbox.WorkDir(), "fifo")
		// The burner loses its parent at once, so that only the collector can wait for it; the shell stays until it has ended:
		// its end of the pipe is closed a moment before.
		script := fmt.Sprintf(`export GORACE=atexit_sleep_ms=0; mkfifo %[1]s; (%[2]s=burn "$0" 150 >%[1]s & echo $! >%[1]s.pid); cat %[1]s
			p=/proc/$(cat %[1]s.pid)/status; while [ -e $p ] && ! grep -q '^State:.Z' $p; do :; done`, fifo, helperVariable)
		exe, err := os.Executable()
		require.NoError(t, err)
		sample, err := sandbox.Run(t.Context(), measure.Command{
			Argv: []string{"/bin/sh", "-c", script, exe}, Env: measure.BaseEnv(sandbox.TempDir(), "/"),
		})
		require.NoError(t, err)
		require.True(t, sample.Succeeded(), "%+v", sample)
		require.GreaterOrEqual(t, sample.UserCPU+sample.SystemCPU, 150*time.Millisecond)
	})
}

func TestChildrenOfOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, disableCgroups bool) {
		sandbox := newSandbox(t, measure.SandboxConfig{Isolation: open, DisableCgroups: disableCgroups})
		// One child of the collector that lives, one that has ended and was not waited for.
		living, ended := exec.CommandContext(t.Context(), "sleep", "600"), exec.CommandContext(t.Context(), "true")
		require.NoError(t, living.Start())
		require.NoError(t, ended.Start())
		waitFor(t.Context(), t, func() bool { return !alive(ended.Process.Pid) })

		sample, err := sandbox.Run(t.Context(), helperCommand(sandbox, "behind", "orphan", filepath.Join(sandbox.WorkDir(), "orphan")))
		require.NoError(t, err)
		require.Equal(t, 1, sample.LeftBehind)
		killed, err := sandbox.Sweep(t.Context())
		require.NoError(t, err)
		require.Zero(t, killed)

		require.NoError(t, ended.Wait())
		require.True(t, alive(living.Process.Pid))
		require.NoError(t, living.Process.Kill())
		require.Error(t, living.Wait())
	})
}

func TestASweepKillsWhatAKilledCollectorLeft(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, disableCgroups bool) {
		config := measure.SandboxConfig{Isolation: open, DisableCgroups: disableCgroups}
		fillConfig(t, &config)
		neighbour := newSandbox(t, measure.SandboxConfig{Isolation: open, DisableCgroups: disableCgroups})

		// A collector runs a family of processes and is killed.
		collector := exec.CommandContext(t.Context(), "/proc/self/exe", config.Name, config.WorkDir, config.CgroupParent)
		collector.Env = append(os.Environ(), helperVariable+"=collector")
		require.NoError(t, collector.Start())
		pids := family(t, config.WorkDir)
		_, err := measure.NewSandbox(config)
		require.ErrorIs(t, err, measure.ErrSlotBusy)
		require.NoError(t, collector.Process.Kill())
		require.Error(t, collector.Wait())
		survivors := 0
		for i, name := range familyFiles {
			if name != "main" && alive(pids[i]) {
				survivors++
			}
		}
		require.Equal(t, 3, survivors, "all but the main process, which dies with the collector")

		// A sweep of the neighbouring slot touches none of them.
		killed, err := neighbour.Sweep(t.Context())
		require.NoError(t, err)
		require.Zero(t, killed)
		require.True(t, alive(pids[1]))

		// Its successor in the slot kills them all.
		sandbox, err := measure.NewSandbox(config)
		require.NoError(t, err)
		killed, err = sandbox.Sweep(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, killed, 3)
		requireDead(t, pids)
		require.NoError(t, sandbox.Close())
		require.NoError(t, sandbox.Close())
		_, err = sandbox.Run(t.Context(), measure.Command{Argv: []string{"/bin/true"}})
		require.ErrorIs(t, err, os.ErrClosed)
	})
}

// Thousands may take long, as long as some end; one that hangs does not.
func TestTheWaitForKilledProcessesIsBounded(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		left func(second int) int
		over int // the second in which the wait ends
	}{
		"one that hangs":            {func(int) int { return 1 }, 6},
		"one of many that hangs":    {func(s int) int { return max(1, 1000-100*s) }, 16},
		"slowly":                    {func(s int) int { return 1000 - s/4 }, 61},
		"more than before at times": {func(s int) int { return 10 + s%3 }, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w measure.Waning
			second := 0
			for !w.Over(c.left(second), begin.Add(time.Duration(second)*time.Second)) {
				second++
			}
			require.Equal(t, c.over, second)
		})
	}
}
