package measure_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/benchloom/benchloom/internal/measure"
)

func newSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// cpuTime returns the calling thread's CPU time.
func cpuTime() time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// printFacts prints a process's view of its surroundings, one "name value" per line.
func printFacts() error {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return err
	}
	personality, err := os.ReadFile("/proc/self/personality")
	if err != nil {
		return err
	}
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return err
	}
	slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		return err
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return err
	}
	fmt.Println("cpus", set.Count())
	fmt.Println("personality", strings.TrimSpace(string(personality)))
	fmt.Println("nice", 20-nice)
	fmt.Println("slack", slack)
	fmt.Println("uid", os.Getuid(), os.Getgid())
	fmt.Println("environment", strings.Join(os.Environ(), " "))
	fmt.Println("groups", strings.Join(strings.Fields(string(groups)), " "))
	return nil
}

// platformHelper acts as a collector: it runs a family of sleepers in the slot's work directory and waits to be killed.
func platformHelper(name string, args []string) error {
	isolation := open
	switch name {
	case "collector":
	case "nested": // a sandbox in a sandbox
		return nested(args[0])
	case "facts": // of a command in a sandbox
		return factsIn(args[0])
	case "isolated collector":
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		isolation = measure.Isolation{ReadOnly: []string{exe}}
	default:
		return fmt.Errorf("unknown helper %q", name)
	}
	sandbox, err := measure.NewSandbox(measure.SandboxConfig{
		Name: args[0], WorkDir: args[1], CgroupParent: args[2], DisableCgroups: args[2] == "", Isolation: isolation,
	})
	if err != nil {
		return err
	}
	_, err = sandbox.Run(context.Background(), helperCommand(sandbox, "family", args[1]))
	return err
}

// nested runs a command in a sandbox with all limits and prints which of them it lacks.
func nested(workDir string) error {
	sandbox, err := measure.NewSandbox(measure.SandboxConfig{Name: "nested", WorkDir: workDir, MemoryBytes: 1 << 30, PIDs: 100, DiskBytes: 1 << 30})
	if err != nil {
		return err
	}
	for _, lacking := range sandbox.Unenforced() {
		fmt.Printf("%s: %s\n", lacking.Name, lacking.Reason)
	}
	sample, err := sandbox.Run(context.Background(), measure.Command{Argv: []string{"/bin/true"}})
	fmt.Println("ran:", sample.Status, sample.ExitCode)
	return errors.Join(err, sandbox.Clean(context.Background()), sandbox.Close())
}

// factsIn prints the slack of this process's timers, and the view of a command in a sandbox.
func factsIn(workDir string) error {
	slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		return err
	}
	fmt.Println("own slack", slack)
	sandbox, err := measure.NewSandbox(measure.SandboxConfig{Name: "facts", WorkDir: workDir, DisableCgroups: true, Isolation: open})
	if err != nil {
		return err
	}
	command := helperCommand(sandbox, "print")
	command.Stdout = os.Stdout
	_, err = sandbox.Run(context.Background(), command)
	return errors.Join(err, sandbox.Close())
}

// helperCommand runs the test binary as a helper. Without the last two variables it would sleep for a second at its end with
// the race detector, and write a warning to standard error with coverage.
func helperCommand(sandbox *measure.Sandbox, name string, args ...string) measure.Command {
	return measure.Command{
		Argv: append([]string{"/proc/self/exe"}, args...),
		Env: append(measure.BaseEnv(sandbox.TempDir(), sandbox.WorkDir()),
			helperVariable+"="+name, "GORACE=atexit_sleep_ms=0", "GOCOVERDIR="+sandbox.TempDir()),
	}
}

// open isolates nothing: process IDs are those that the test sees.
var open = measure.Isolation{Off: true}

// modes lists the two ways to track processes. Where control groups cannot be written, both are the same.
var modes = map[string]bool{"with control groups": false, "without control groups": true}

// inModes runs a test in both modes.
func inModes(t *testing.T, story func(t *testing.T, disableCgroups bool)) {
	for name, disabled := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t, disabled)
		})
	}
}

// newSandbox returns a sandbox that is closed at the end of the test and must leave no control group behind.
func newSandbox(t *testing.T, config measure.SandboxConfig) *measure.Sandbox {
	t.Helper()
	fillConfig(t, &config)
	sandbox, err := measure.NewSandbox(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sandbox.Close()) })
	return sandbox
}

// slots counts the sandboxes of this process, to name them.
var slots atomic.Int64

// fillConfig sets a name, a directory and control groups for a sandbox.
func fillConfig(t *testing.T, config *measure.SandboxConfig) {
	t.Helper()
	dir := t.TempDir()
	if config.WorkDir == "" {
		config.WorkDir = filepath.Join(dir, "work")
	}
	if !config.Isolation.Off {
		// Helpers start themselves by path, and that is in /tmp.
		exe, err := os.Executable()
		require.NoError(t, err)
		config.Isolation.ReadOnly = append(config.Isolation.ReadOnly, exe)
	}
	if config.Name == "" {
		config.Name = fmt.Sprintf("test-%d-%d", os.Getpid(), slots.Add(1))
	}
	if !config.DisableCgroups && config.CgroupParent == "" {
		config.CgroupParent = "/benchloom-" + config.Name
		t.Cleanup(func() {
			for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
				dirs, err := filepath.Glob(pattern + config.CgroupParent)
				require.NoError(t, err)
				for _, dir := range dirs {
					require.NoError(t, os.Remove(dir))
				}
			}
		})
	}
}

// lacks reports whether a limit could not be enforced.
func lacks(limits []measure.Unenforced, name measure.Limit) bool {
	for _, limit := range limits {
		if limit.Name == name {
			return true
		}
	}
	return false
}

// pidIn reads a process ID that a helper wrote.
func pidIn(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	pid, err := strconv.Atoi(string(text))
	require.NoError(t, err)
	return pid
}

// alive reports whether a process exists and has not ended.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	return fields[0] != "Z" && fields[0] != "X" || fields[17] != "1" && fields[17] != "0"
}
