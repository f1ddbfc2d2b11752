package measure_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/benchloom/benchloom/internal/measure"
)

func TestIllegalSandboxesAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for text, config := range map[string]measure.SandboxConfig{
		"slot name":     {Name: "a/b", WorkDir: dir},
		"absolute path": {Name: "a", WorkDir: "work"},
		"below /":       {Name: "a", WorkDir: "/"},
		"negative":      {Name: "a", WorkDir: dir, MemoryBytes: -1},
		"CPU numbers":   {Name: "a", WorkDir: dir, CPUs: measure.CPUList{-1}},
		"parent":        {Name: "a", WorkDir: dir, CgroupParent: "x"},
		"not \"/\"":     {Name: "a", WorkDir: dir, Isolation: measure.Isolation{Hidden: []string{"/"}}},
		"not \"tmp\"":   {Name: "a", WorkDir: dir, Isolation: measure.Isolation{ReadOnly: []string{"tmp"}}},
		"create it":     {Name: "a", WorkDir: dir, Isolation: measure.Isolation{ReadOnly: []string{"/no/such/path"}}},
		"CPUs 8000":     {Name: "a", WorkDir: dir, CPUs: measure.CPUList{8000}, DisableCgroups: true},
	} {
		_, err := measure.NewSandbox(config)
		require.ErrorContains(t, err, text)
	}

	// A work directory serves one sandbox at a time.
	sandbox, err := measure.NewSandbox(measure.SandboxConfig{Name: "a", WorkDir: dir, DisableCgroups: true})
	require.NoError(t, err)
	_, err = measure.NewSandbox(measure.SandboxConfig{Name: "b", WorkDir: dir, DisableCgroups: true})
	require.ErrorIs(t, err, measure.ErrSlotBusy)
	require.NoError(t, sandbox.Close())
}

func TestWhatCannotBeEnforcedIsSaidOnceAndWithEachSample(t *testing.T) {
	t.Parallel()
	sandbox := newSandbox(t, measure.SandboxConfig{
		CPUs: firstCPU(t), MemoryBytes: 1 << 30, PIDs: 50, DiskBytes: 1 << 30, DisableCgroups: true, Isolation: open,
	})
	var names []measure.Limit
	for _, limit := range sandbox.Unenforced() {
		names = append(names, limit.Name)
		require.NotEmpty(t, limit.Reason)
	}
	require.Subset(t, names, []measure.Limit{measure.LimitTree, measure.LimitCPUs, measure.LimitMemory, measure.LimitPIDs})
	require.NotContains(t, names, measure.LimitDisk)
	sample, err := sandbox.Run(t.Context(), measure.Command{Argv: []string{"/bin/true"}})
	require.NoError(t, err)
	require.Equal(t, sandbox.Unenforced(), sample.Unenforced)

	// Limits that were not requested are not reported.
	sandbox = newSandbox(t, measure.SandboxConfig{DisableCgroups: true, Isolation: open})
	for _, limit := range sandbox.Unenforced() {
		require.Contains(t, []measure.Limit{measure.LimitTree, measure.LimitASLR}, limit.Name)
	}
}

func TestMemoryBeyondTheLimitEndsTheCommand(t *testing.T) {
	t.Parallel()
	sandbox := newSandbox(t, measure.SandboxConfig{MemoryBytes: 96 << 20})
	if lacks(sandbox.Unenforced(), measure.LimitMemory) {
		sample, err := sandbox.Run(t.Context(), helperCommand(sandbox, "exit", "0"))
		require.NoError(t, err)
		require.True(t, lacks(sample.Unenforced, measure.LimitMemory))
		return
	}
	sample, err := sandbox.Run(t.Context(), helperCommand(sandbox, "eat", "400"))
	require.NoError(t, err)
	require.Equal(t, measure.StatusOutOfMemory, sample.Status)
	require.Equal(t, "SIGKILL", sample.Signal)
	require.False(t, sample.Succeeded())

	// Also if a descendant uses the memory and the main process takes no notice.
	command := helperCommand(sandbox, "eat", "400")
	exe, err := os.Executable()
	require.NoError(t, err)
	command.Argv = []string{"/bin/sh", "-c", `"$0" 400; sleep 600`, exe}
	sample, err = sandbox.Run(t.Context(), command)
	require.NoError(t, err)
	require.Equal(t, measure.StatusOutOfMemory, sample.Status)

	// The next command is not blamed for it.
	sample, err = sandbox.Run(t.Context(), helperCommand(sandbox, "eat", "10"))
	require.NoError(t, err)
	require.True(t, sample.Succeeded(), "%+v", sample)
}

// A sandbox without a limit is still limited by its surroundings: a container, or the kernel.
func TestMemoryBeyondAnOuterLimitIsOutOfMemoryToo(t *testing.T) {
	t.Parallel()
	config := measure.SandboxConfig{}
	fillConfig(t, &config)
	sandbox, err := measure.NewSandbox(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sandbox.Close()) })
	limits, err := filepath.Glob("/sys/fs/cgroup/memory" + config.CgroupParent + "/memory.limit_in_bytes")
	require.NoError(t, err)
	if len(limits) == 0 {
		limits, err = filepath.Glob("/sys/fs/cgroup" + config.CgroupParent + "/memory.max")
		require.NoError(t, err)
	}
	if len(limits) == 0 {
		t.Skip("no memory control group can be made here")
	}
	require.NoError(t, os.WriteFile(limits[0], []byte("100663296"), 0o644))
	for name, most := range map[string]string{"memory.memsw.limit_in_bytes": "100663296", "memory.swap.max": "0"} {
		_ = os.WriteFile(filepath.Join(filepath.Dir(limits[0]), name), []byte(most), 0o644) // where there is swap
	}

	sample, err := sandbox.Run(t.Context(), helperCommand(sandbox, "eat", "400"))
	require.NoError(t, err)
	require.Equal(t, measure.StatusOutOfMemory, sample.Status)

	sample, err = sandbox.Run(t.Context(), helperCommand(sandbox, "eat", "10"))
	require.NoError(t, err)
	require.True(t, sample.Succeeded(), "the next command is not blamed for it: %+v", sample)
}

func TestPeakMemoryIsMeasured(t *testing.T) {
	t.Parallel()
	sandbox := newSandbox(t, measure.SandboxConfig{})
	sample, err := sandbox.Run(t.Context(), helperCommand(sandbox, "eat", "200"))
	require.NoError(t, err)
	require.Greater(t, sample.MaxRSSBytes, int64(200<<20))
	if sample.MemoryPeakBytes > 0 {
		require.Greater(t, sample.MemoryPeakBytes, int64(200<<20))
	}

	// A peak below the collector's own memory is not known, and the control group's starts anew.
	sample, err = sandbox.Run(t.Context(), measure.Command{Argv: []string{"/bin/true"}})
	require.NoError(t, err)
	require.Zero(t, sample.MaxRSSBytes)
	require.Positive(t, sample.MaxRSSFloorBytes)
	require.Less(t, sample.MemoryPeakBytes, int64(200<<20))
}

func TestTheNumberOfProcessesIsLimited(t *testing.T) {
	t.Parallel()
	sandbox := newSandbox(t, measure.SandboxConfig{PIDs: 3})
	if lacks(sandbox.Unenforced(), measure.LimitPIDs) {
		t.Skip("no pids controller here")
	}
	var output bytes.Buffer
	command := measure.Command{
		// The shell and two more processes.
		Argv: []string{"/bin/sh", "-c", "sleep 600 & sleep 600 & echo started; sleep 600 & echo not reached"},
		Env:  measure.BaseEnv(sandbox.TempDir(), "/"), Output: &output,
	}
	sample, err := sandbox.Run(t.Context(), command)
	require.NoError(t, err)
	require.False(t, sample.Succeeded())
	require.Equal(t, 2, sample.LeftBehind)
	require.Contains(t, output.String(), "started")
	require.NotContains(t, output.String(), "not reached")
}

// Without control groups, the limit of the account holds.
func TestTheProcessesOfAnAccountAreLimited(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // only root can give commands an account
	}
	unused := uint32(1_000_000 + os.Getpid())
	sandbox := newSandbox(t, measure.SandboxConfig{PIDs: 20, DisableCgroups: true, User: &measure.User{UID: unused, GID: unused}})
	// The limit comes some microseconds after the program's start.
	output, sample := shell(t, sandbox, `until grep -q "^Max processes *20 *20 " /proc/self/limits; do :; done
		i=0; while [ $i -lt 40 ]; do sleep 600 & i=$((i+1)); done; echo not reached`)
	require.False(t, sample.Succeeded())
	require.NotContains(t, output, "not reached")
	require.Equal(t, 19, sample.LeftBehind, "and the shell: %s", output)
	require.False(t, lacks(sample.Unenforced[len(sandbox.Unenforced()):], measure.LimitPIDs))
	_, sample = shell(t, sandbox, "true")
	require.True(t, sample.Succeeded())
}

func TestAFullDiskEndsTheCommand(t *testing.T) {
	t.Parallel()
	// Many files: found by watching.
	sandbox := newSandbox(t, measure.SandboxConfig{DiskBytes: 8 << 20, DisableCgroups: true})
	sample, err := sandbox.Run(t.Context(), helperCommand(sandbox, "fill", filepath.Join(sandbox.WorkDir(), "file"), "20"))
	require.NoError(t, err)
	require.Equal(t, measure.StatusDiskFull, sample.Status)
	require.Equal(t, "SIGKILL", sample.Signal)

	// One file: stopped by the kernel before it exceeds the limit, which is set right after the start.
	sandbox = newSandbox(t, measure.SandboxConfig{DiskBytes: 4 << 20, DisableCgroups: true})
	sample, err = sandbox.Run(t.Context(), measure.Command{
		Argv: []string{"/bin/sh", "-c", "sleep 0.3; exec head -c 20000000 /dev/zero >big"}, Env: measure.BaseEnv(sandbox.TempDir(), "/"),
	})
	require.NoError(t, err)
	require.Equal(t, measure.StatusDiskFull, sample.Status)
	info, err := os.Stat(filepath.Join(sandbox.WorkDir(), "big"))
	require.NoError(t, err)
	require.LessOrEqual(t, info.Size(), int64(4<<20))

	// A command that fails for reasons of its own is not blamed on the disk.
	require.NoError(t, os.Remove(filepath.Join(sandbox.WorkDir(), "big")))
	sample, err = sandbox.Run(t.Context(), measure.Command{Argv: []string{"/bin/sh", "-c", "exit 1"}})
	require.NoError(t, err)
	require.Equal(t, measure.StatusExited, sample.Status)
	require.Equal(t, 1, sample.ExitCode)
}

// What outlives a job is on the same disk: what it writes there counts as well, and so does what is there already.
func TestFilesThatOutliveTheirJobCountToItsLimits(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]measure.SandboxConfig{
		"bytes": {DiskBytes: 8 << 20, DisableCgroups: true}, "files": {Inodes: 500, DisableCgroups: true}, "open": {DiskBytes: 8 << 20, DisableCgroups: true, Isolation: open},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sandbox, cache := newSandbox(t, config), t.TempDir()
			require.NoError(t, sandbox.Show(measure.Shown{Writable: []string{cache}}))
			_, sample := shell(t, sandbox, "true")
			require.True(t, sample.Succeeded())
			_, sample = shell(t, sandbox, "i=0; while [ $i -lt 1000 ]; do head -c 20000 /dev/zero >"+cache+"/file$i; i=$((i+1)); done; sleep 600")
			require.Equal(t, measure.StatusDiskFull, sample.Status)

			require.NoError(t, sandbox.Clean(t.Context()))
			require.NoError(t, sandbox.Show(measure.Shown{Writable: []string{cache}}))
			_, sample = shell(t, sandbox, "sleep 600")
			require.Equal(t, measure.StatusDiskFull, sample.Status, "it is still there")
			require.NoError(t, sandbox.Clean(t.Context()))
			_, sample = shell(t, sandbox, "sleep 1")
			require.True(t, sample.Succeeded(), "jobs without it have their own room")
		})
	}
}

func TestTheNumberOfFilesIsLimited(t *testing.T) {
	t.Parallel()
	sandbox := newSandbox(t, measure.SandboxConfig{Inodes: 500, DisableCgroups: true})
	_, sample := shell(t, sandbox, "i=0; while [ $i -lt 2000 ]; do >file$i; i=$((i+1)); done; sleep 600")
	require.Equal(t, measure.StatusDiskFull, sample.Status)
	require.NoError(t, sandbox.Clean(t.Context()))
	_, sample = shell(t, sandbox, "i=0; while [ $i -lt 300 ]; do >file$i; i=$((i+1)); done")
	require.True(t, sample.Succeeded())

	// Directories too deep to be counted are too many.
	sandbox = newSandbox(t, measure.SandboxConfig{DiskBytes: 1 << 30, DisableCgroups: true})
	command := helperCommand(sandbox, "nest", "3000")
	command.Argv = append(command.Argv, "and sleep")
	sample, err := sandbox.Run(t.Context(), command)
	require.NoError(t, err)
	require.Equal(t, measure.StatusDiskFull, sample.Status)
	require.NoError(t, sandbox.Clean(t.Context()))
}

func TestOpenFilesAreLimited(t *testing.T) {
	t.Parallel()
	sandbox := newSandbox(t, measure.SandboxConfig{OpenFiles: 64})
	// The limits come some microseconds after the program's start.
	output, sample := shell(t, sandbox, "while [ $(ulimit -n) != 64 ]; do :; done; ulimit -Hn; ulimit -n 65 || echo stays")
	require.True(t, sample.Succeeded())
	require.Contains(t, output, "64\n")
	require.Contains(t, output, "stays")

	// Not above what the collector itself may have, which is no limit that could not be enforced.
	sandbox = newSandbox(t, measure.SandboxConfig{OpenFiles: 1 << 29})
	_, sample = shell(t, sandbox, "true")
	require.True(t, sample.Succeeded())
	require.False(t, lacks(sample.Unenforced, measure.LimitOpenFiles), "%v", sample.Unenforced)
}

// The limit holds from the start, so that no command can raise it before.
func TestCrashesLeaveNoCore(t *testing.T) {
	t.Parallel()
	sandbox, ok := isolated(t, measure.SandboxConfig{})
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_CORE, &limit))
	require.LessOrEqual(t, limit.Max, uint64(1), "that of the collector")
	output, sample := shell(t, sandbox, "grep '^Max core' /proc/self/limits; ulimit -c unlimited && echo raised; kill -ABRT $$")
	require.Regexp(t, fmt.Sprintf(`^Max core file size +%[1]d +%[1]d `, limit.Max), output)
	if ok || os.Geteuid() != 0 {
		require.NotContains(t, output, "raised")
	}
	require.Equal(t, "SIGABRT", sample.Signal)
	entries, err := os.ReadDir(sandbox.WorkDir())
	require.NoError(t, err)
	require.Len(t, entries, 1, "TMPDIR")
}
