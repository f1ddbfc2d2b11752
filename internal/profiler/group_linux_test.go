package profiler_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/profiler"
)

// newGroup makes a control group of version 2.
func newGroup(t *testing.T) string {
	t.Helper()
	for _, mount := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		if _, err := os.Stat(filepath.Join(mount, "cgroup.controllers")); err != nil {
			continue
		}
		dir, err := os.MkdirTemp(mount, "benchloom-profiler-test-")
		if err != nil {
			break
		}
		t.Cleanup(func() { os.Remove(dir) })
		return dir
	}
	t.Skip("control groups cannot be made here")
	return ""
}

// cpuTime returns the CPU time of a control group.
func cpuTime(t *testing.T, group string) time.Duration {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(group, "cpu.stat"))
	require.NoError(t, err)
	usage, ok := strings.CutPrefix(strings.SplitN(string(text), "\n", 2)[0], "usage_usec ")
	require.True(t, ok, "%s", text)
	microseconds, err := strconv.ParseInt(usage, 10, 64)
	require.NoError(t, err)
	return time.Duration(microseconds) * time.Microsecond
}

func TestLongTheSamplesOfAControlGroupAddUpToItsCPUTime(t *testing.T) {
	t.Parallel()
	dir := newGroup(t)
	group, err := os.Open(dir)
	require.NoError(t, err)
	defer group.Close()

	got := &receiver{}
	a := newAgent(t, observed(got, "/", machine.Group{Unified: dir}))
	a.Start(t.Context())
	burn := exec.CommandContext(t.Context(), "sh", "-c", "i=0; while [ $i -lt 1500000 ]; do i=$((i+1)); done")
	burn.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
	require.NoError(t, burn.Run())
	a.End()

	// Each value covers the time since the one before, the first one since the first sample, which rates do not show.
	var sum float64
	times, previous := got.times(profiler.ScopeJob, cpuUsed), got.times(profiler.ScopeMachine, string(profiler.MemoryFree))[0]
	for n, v := range got.values(profiler.ScopeJob, cpuUsed) {
		sum += v * times[n].Sub(previous).Seconds()
		previous = times[n]
	}
	used := cpuTime(t, dir).Seconds()
	require.Greater(t, used, 0.5)
	require.InEpsilon(t, used, sum, 0.05)
	t.Logf("%.3f s of CPU time, %.3f s in samples", used, sum)
}
