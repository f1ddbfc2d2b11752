package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// process writes the /proc files of one process, with CPU times in ticks.
func process(t *testing.T, proc string, pid, parent, user, system int) {
	t.Helper()
	dir := filepath.Join(proc, fmt.Sprint(pid))
	require.NoError(t, os.MkdirAll(dir, 0o755))
	// A name may contain spaces and parentheses.
	stat := fmt.Sprintf("%d (a (b) c) S %d 1 1 0 -1 4194560 100 0 0 0 %d %d 3 4 20 0 5 0 1000 1000000 500\n", pid, parent, user, system)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "stat"), []byte(stat), 0o644))
	status := fmt.Sprintf("Name:\ta\nVmHWM:\t  99999 kB\nVmRSS:\t   %d kB\nRssAnon:\t 1 kB\n", pid)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "status"), []byte(status), 0o644))
}

func TestUsageCountsChildrenWithTheirNamedAncestor(t *testing.T) {
	t.Parallel()
	proc := t.TempDir()
	process(t, proc, 1, 0, 5000, 5000)
	process(t, proc, 100, 1, 1, 1)     // up
	process(t, proc, 200, 100, 10, 20) // postgres, a child of up
	process(t, proc, 201, 200, 30, 40) // a backend of postgres
	process(t, proc, 900, 1, 999, 999) // not of the stack
	// Of one process the time is known exactly.
	clock := func(pid int) (time.Duration, error) {
		if pid == 100 {
			return 27 * time.Millisecond, nil
		}
		return 0, os.ErrNotExist
	}
	got, err := usageOf(proc, map[string]int{"up": 100, "postgres": 200}, clock)
	require.NoError(t, err)
	// Each has 3 and 4 more ticks from ended children.
	require.Equal(t, map[string]usage{
		"up":       {cpu: 27*time.Millisecond + 7*clockTick, rss: 100 << 10},
		"postgres": {cpu: (10 + 20 + 7 + 30 + 40 + 7) * clockTick, rss: 200 << 10},
	}, got)

	_, err = usageOf(proc, map[string]int{"api": 300}, clock)
	require.ErrorContains(t, err, "api (300)")
}

// The clock of a process is what the kernel counts in ticks, to the nanosecond.
func TestTheClockOfAProcessIsItsCPUTime(t *testing.T) {
	t.Parallel()
	exact, err := cpuClock(os.Getpid())
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("this system has no clocks of processes")
	}
	require.NoError(t, err)
	text, err := os.ReadFile("/proc/self/stat")
	require.NoError(t, err)
	stat, err := parseStat(string(text))
	require.NoError(t, err)
	later, err := cpuClock(os.Getpid())
	require.NoError(t, err)
	require.LessOrEqual(t, stat.own, later)
	require.Greater(t, stat.own, exact-2*clockTick)
	_, err = cpuClock(1 << 23) // above the largest ID
	require.ErrorContains(t, err, "8388608")
}

func TestMalformedStatAndStatus(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "1 2 3", "x (a) S 1", "7 (a) S 1 2 3", ") 7 ("} {
		_, err := parseStat(text)
		require.Error(t, err, text)
	}
	for _, text := range []string{"", "Name:\ta\n", "VmRSS:\tmuch kB\n"} {
		_, err := kibibytes(text, "VmRSS:")
		require.Error(t, err, text)
	}
}

func TestMachineBusyLeavesIdleTimeAndGuestsOut(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "stat")
	require.NoError(t, os.WriteFile(path, []byte("cpu  1 2 4 1000 2000 8 16 32 500 600\ncpu0 1 1 1 1 1 1 1 1 1 1\n"), 0o644))
	busy, err := machineBusy(path)
	require.NoError(t, err)
	require.Equal(t, (1+2+4+8+16+32)*clockTick, busy)
	for _, text := range []string{"", "cpu 1 2 3\n", "intr 1 2 3 4 5 6 7 8 9\n", "cpu a b c d e f g h i j\n"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		_, err := machineBusy(path)
		require.Error(t, err, text)
	}
}
