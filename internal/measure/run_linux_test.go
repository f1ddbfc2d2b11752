package measure_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/benchloom/benchloom/internal/measure"
)

func TestACommandIsMeasured(t *testing.T) {
	t.Parallel()
	sandbox := newSandbox(t, measure.SandboxConfig{})
	command := helperCommand(sandbox, "burn", "80")
	command.Counters = []measure.Counter{measure.CounterTaskClock}
	sample, err := sandbox.Run(t.Context(), command)
	require.NoError(t, err)
	require.True(t, sample.Succeeded(), "%+v", sample)
	require.Equal(t, measure.StatusExited, sample.Status)
	require.Empty(t, sample.Signal)
	require.Zero(t, sample.LeftBehind)
	cpu := sample.UserCPU + sample.SystemCPU
	require.GreaterOrEqual(t, cpu, 80*time.Millisecond)
	require.GreaterOrEqual(t, sample.Wall, 80*time.Millisecond)
	require.Positive(t, sample.MinorFaults)
	require.Positive(t, sample.VoluntarySwitches)
	require.Positive(t, sample.MaxRSSFloorBytes)

	// The same time by two independent clocks of the kernel, in a sample that is valid.
	if measure.ProbeCounters()[measure.CounterTaskClock] == nil {
		clock := time.Duration(sample.Counters[measure.CounterTaskClock])
		require.InDelta(t, cpu.Seconds(), clock.Seconds(), 0.2*cpu.Seconds()+0.01)
		require.Empty(t, sample.Invalid)
	}
}

func TestCountersThatTheMachineLacksAreAbsent(t *testing.T) {
	t.Parallel()
	sandbox := newSandbox(t, measure.SandboxConfig{})
	command := helperCommand(sandbox, "exit", "0")
	command.Counters = measure.AllCounters()
	sample, err := sandbox.Run(t.Context(), command)
	require.NoError(t, err)
	support := measure.ProbeCounters()
	for _, counter := range measure.AllCounters() {
		_, counted := sample.Counters[counter]
		require.Equal(t, support[counter] == nil, counted, counter)
	}
	for _, counter := range support.Available() {
		if counter != measure.CounterMigrations {
			require.Positive(t, sample.Counters[counter], counter)
		}
	}
}

func TestACounterCountsOnlyTheCommand(t *testing.T) {
	t.Parallel()
	if err := measure.ProbeCounters()[measure.CounterTaskClock]; err != nil {
		t.Skip(err)
	}
	sandbox := newSandbox(t, measure.SandboxConfig{})
	command := helperCommand(sandbox, "burn", "200")
	command.Counters = []measure.Counter{measure.CounterTaskClock}
	long, err := sandbox.Run(t.Context(), command)
	require.NoError(t, err)
	short := helperCommand(sandbox, "exit", "0")
	short.Counters = command.Counters
	sample, err := sandbox.Run(t.Context(), short)
	require.NoError(t, err)
	require.Less(t, sample.Counters[measure.CounterTaskClock], long.Counters[measure.CounterTaskClock], "starting costs both the same")
}

// Counters stay open between commands, but a command gets its own only.
func TestCommandsInTurnsMayHaveDifferentCounters(t *testing.T) {
	t.Parallel()
	if err := measure.ProbeCounters().Require(measure.CounterTaskClock, measure.CounterMigrations); err != nil {
		t.Skip(err)
	}
	sandbox := newSandbox(t, measure.SandboxConfig{})
	for _, counters := range [][]measure.Counter{
		{measure.CounterTaskClock}, {}, {measure.CounterTaskClock, measure.CounterMigrations}, {measure.CounterMigrations}, {measure.CounterTaskClock},
	} {
		command := helperCommand(sandbox, "burn", "20")
		command.Counters = counters
		sample, err := sandbox.Run(t.Context(), command)
		require.NoError(t, err)
		require.ElementsMatch(t, counters, slices.Collect(maps.Keys(sample.Counters)))
	}
}

func TestHowACommandEndsIsTold(t *testing.T) {
	t.Parallel()
	sandbox := newSandbox(t, measure.SandboxConfig{})
	sample, err := sandbox.Run(t.Context(), helperCommand(sandbox, "exit", "7"))
	require.NoError(t, err)
	require.Equal(t, measure.StatusExited, sample.Status)
	require.Equal(t, 7, sample.ExitCode)
	require.False(t, sample.Succeeded())

	sample, err = sandbox.Run(t.Context(), measure.Command{Argv: []string{"/bin/sh", "-c", "kill -USR1 $$"}})
	require.NoError(t, err)
	require.Equal(t, measure.StatusExited, sample.Status)
	require.Equal(t, -1, sample.ExitCode)
	require.Equal(t, "SIGUSR1", sample.Signal)
}

func TestACommandThatCannotStartNamesItself(t *testing.T) {
	t.Parallel()
	sandbox := newSandbox(t, measure.SandboxConfig{})
	require.NoError(t, os.WriteFile(filepath.Join(sandbox.WorkDir(), "text"), []byte("no program"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(sandbox.WorkDir(), "garbage"), []byte{0, 1, 2}, 0o755))
	for name, c := range map[string]struct {
		command measure.Command
		is      error
	}{
		"missing in PATH":   {measure.Command{Argv: []string{"no-such-thing"}, Env: []string{"PATH=/bin"}}, fs.ErrNotExist},
		"missing path":      {measure.Command{Argv: []string{"./no-such-thing"}}, fs.ErrNotExist},
		"not executable":    {measure.Command{Argv: []string{"./text"}}, fs.ErrPermission},
		"no program":        {measure.Command{Argv: []string{"./garbage"}}, unix.ENOEXEC},
		"missing directory": {measure.Command{Argv: []string{"/bin/true"}, Dir: "/no/such/dir"}, fs.ErrNotExist},
	} {
		sample, err := sandbox.Run(t.Context(), c.command)
		startError, ok := errors.AsType[*measure.StartError](err)
		require.True(t, ok, "%s: %v", name, err)
		require.ErrorIs(t, err, c.is, name)
		require.Equal(t, c.command.Argv[0], startError.Program, name)
		require.ErrorContains(t, err, c.command.Argv[0], name)
		require.Equal(t, measure.StatusNotStarted, sample.Status, name)
	}
}

func TestIllegalCommandsAreRefused(t *testing.T) {
	t.Parallel()
	sandbox := newSandbox(t, measure.SandboxConfig{})
	for name, command := range map[string]measure.Command{
		"empty":        {},
		"timeout":      {Argv: []string{"true"}, Timeout: -1},
		"output limit": {Argv: []string{"true"}, OutputLimit: -1},
		"nice":         {Argv: []string{"true"}, Nice: 20},
	} {
		_, err := sandbox.Run(t.Context(), command)
		require.ErrorContains(t, err, name)
	}
}

func TestACommandSeesOnlyWhatItIsGiven(t *testing.T) {
	t.Parallel()
	sandbox := newSandbox(t, measure.SandboxConfig{CPUs: firstCPU(t)})
	var stdout bytes.Buffer
	command := helperCommand(sandbox, "print")
	command.Stdout = &stdout
	command.Env = append(command.Env, "TMPDIR=/somewhere/else")
	if os.Geteuid() == 0 {
		command.Nice = -3
	}
	sample, err := sandbox.Run(t.Context(), command)
	require.NoError(t, err)
	require.True(t, sample.Succeeded(), stdout.String())
	seen := map[string]string{}
	for line := range strings.Lines(stdout.String()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		seen[name] = value
	}
	require.Equal(t, "1", seen["cpus"])
	if !lacks(sample.Unenforced, measure.LimitASLR) {
		require.Equal(t, "00040000", seen["personality"])
	}
	if os.Geteuid() == 0 && !lacks(sample.Unenforced, measure.LimitNice) {
		require.Equal(t, "-3", seen["nice"])
	}
	require.ElementsMatch(t, helperCommand(sandbox, "print").Env, strings.Fields(seen["environment"]))
	if !lacks(sandbox.Unenforced(), measure.LimitTree) {
		require.Contains(t, seen["groups"], "/benchloom."+sandbox.Name())
	}

	// The next command has the collector's own priority again.
	var own unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &own), "the collector itself keeps its CPUs")
	stdout.Reset()
	command.Nice = 0
	_, err = sandbox.Run(t.Context(), command)
	require.NoError(t, err)
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	require.NoError(t, err)
	if nice == 20 {
		require.Contains(t, stdout.String(), "nice 0\n")
	}
}

// A collector may be late with its timers; its commands are not.
func TestTimersOfACommandAreAsLateAsAny(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/proc/self/exe", t.TempDir())
	cmd.Env = append(os.Environ(), helperVariable+"=facts")
	// A program inherits the slack of the thread that starts it; this thread ends with the test.
	runtime.LockOSThread()
	require.NoError(t, unix.Prctl(unix.PR_SET_TIMERSLACK, 7_000_000, 0, 0, 0))
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, string(output))
	require.Contains(t, string(output), "own slack 7000000\n")
	require.Contains(t, string(output), "\nslack 50000\n")
}

// firstCPU returns one CPU that the test may use.
func firstCPU(t *testing.T) measure.CPUList {
	var set unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &set))
	for cpu := range 1024 {
		if set.IsSet(cpu) {
			return measure.CPUList{cpu}
		}
	}
	t.Fatal("no CPU")
	return nil
}

func TestProgramsSeeTheNumberOfTheirCPUs(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("nproc"); err != nil {
		t.Skip("needs nproc")
	}
	sandbox := newSandbox(t, measure.SandboxConfig{CPUs: firstCPU(t)})
	var output bytes.Buffer
	command := measure.Command{Argv: []string{"nproc"}, Env: measure.BaseEnv(sandbox.TempDir(), "/"), Output: &output}
	sample, err := sandbox.Run(t.Context(), command)
	require.NoError(t, err)
	require.True(t, sample.Succeeded())
	require.Equal(t, "1\n", output.String())
}

func TestACommandRunsAsItsUser(t *testing.T) {
	t.Parallel()
	const nobody = 65534
	if os.Geteuid() != 0 {
		_, err := measure.NewSandbox(measure.SandboxConfig{Name: "x", WorkDir: t.TempDir(), User: &measure.User{UID: nobody}})
		require.ErrorContains(t, err, "needs root")
		return
	}
	dir, err := os.MkdirTemp("", "measure-user-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	sandbox := newSandbox(t, measure.SandboxConfig{
		WorkDir: filepath.Join(dir, "work"), User: &measure.User{UID: nobody, GID: nobody},
	})
	var output bytes.Buffer
	sample, err := sandbox.Run(t.Context(), measure.Command{
		Argv:      []string{"/bin/sh", "-c", "id -u; id -G; echo x >$TMPDIR/file && echo written"},
		Env:       measure.BaseEnv(sandbox.TempDir(), "/"),
		Output:    &output,
		FreshTemp: true,
	})
	require.NoError(t, err)
	require.True(t, sample.Succeeded(), output.String())
	require.Equal(t, "65534\n65534\nwritten\n", output.String())
}

func TestOutputIsKeptUpToItsLimitAndCountedBeyond(t *testing.T) {
	t.Parallel()
	sandbox := newSandbox(t, measure.SandboxConfig{})
	var output, stdout bytes.Buffer
	command := helperCommand(sandbox, "flood", "100000000")
	command.Output, command.Stdout = &output, &stdout
	command.OutputLimit = 1000
	sample, err := sandbox.Run(t.Context(), command)
	require.NoError(t, err)
	require.True(t, sample.Succeeded())
	require.Equal(t, int64(100_000_005), sample.OutputBytes)
	require.Equal(t, int64(100_000_005-1000), sample.OutputDropped)
	require.Equal(t, 1000, output.Len())
	require.Equal(t, 1000, stdout.Len())
	require.Equal(t, output.String(), stdout.String())

	// Standard output alone, both together.
	output.Reset()
	stdout.Reset()
	sample, err = sandbox.Run(t.Context(), measure.Command{
		Argv: []string{"/bin/sh", "-c", "echo out; echo err >&2"}, Output: &output, Stdout: &stdout,
	})
	require.NoError(t, err)
	require.Zero(t, sample.OutputDropped)
	require.Equal(t, "out\n", stdout.String())
	require.ElementsMatch(t, []string{"out", "err"}, strings.Fields(output.String()))
}

// brokenWriter fails every write.
type brokenWriter struct{}

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestAFailingWriterDoesNotStopTheCommand(t *testing.T) {
	t.Parallel()
	sandbox := newSandbox(t, measure.SandboxConfig{})
	command := helperCommand(sandbox, "flood", "1000000")
	command.Output = brokenWriter{}
	sample, err := sandbox.Run(t.Context(), command)
	require.ErrorIs(t, err, errBroken)
	require.True(t, sample.Succeeded())
	require.Equal(t, int64(1_000_005), sample.OutputBytes)
}

func TestTheTemporaryDirectoryIsFreshWhenAsked(t *testing.T) {
	t.Parallel()
	sandbox := newSandbox(t, measure.SandboxConfig{})
	require.Zero(t, len(sandbox.TempDir())%64, "slots differ in the length of their directories, not of TMPDIR")
	command := measure.Command{Argv: []string{"/bin/sh", "-c", `[ ! -e "$TMPDIR/old" ] && mkdir -p "$TMPDIR/old/deep"`}}
	for _, c := range []struct {
		fresh bool
		code  int
	}{{false, 0}, {false, 1}, {true, 0}, {true, 0}} {
		command.FreshTemp = c.fresh
		sample, err := sandbox.Run(t.Context(), command)
		require.NoError(t, err)
		require.Equal(t, c.code, sample.ExitCode)
	}

	// A command cannot make the collector empty a directory elsewhere.
	elsewhere := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(elsewhere, "precious"), nil, 0o644))
	sample, err := sandbox.Run(t.Context(), measure.Command{
		Argv: []string{"/bin/sh", "-c", `rm -r "$TMPDIR" && ln -s ` + elsewhere + ` "$TMPDIR"`}, Env: []string{"PATH=/bin:/usr/bin"},
	})
	require.NoError(t, err)
	require.True(t, sample.Succeeded())
	sample, err = sandbox.Run(t.Context(), command)
	require.NoError(t, err)
	require.True(t, sample.Succeeded())
	require.FileExists(t, filepath.Join(elsewhere, "precious"))
	require.NoDirExists(t, filepath.Join(elsewhere, "old"))
}

func TestOneCommandRunsAtATime(t *testing.T) {
	t.Parallel()
	sandbox := newSandbox(t, measure.SandboxConfig{})
	marker := filepath.Join(sandbox.WorkDir(), "main")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan measure.Sample)
	go func() {
		sample, _ := sandbox.Run(ctx, helperCommand(sandbox, "sleeper", marker))
		ended <- sample
	}()
	waitFor(t.Context(), t, func() bool { _, err := os.Stat(marker); return err == nil })
	_, err := sandbox.Run(t.Context(), helperCommand(sandbox, "exit", "0"))
	require.ErrorIs(t, err, measure.ErrRunning)
	cancel()
	require.Equal(t, measure.StatusCancelled, (<-ended).Status)

	// Nothing starts once the context has ended.
	sample, err := sandbox.Run(ctx, measure.Command{Argv: []string{"/bin/sh", "-c", "touch started"}})
	require.NoError(t, err)
	require.Equal(t, measure.StatusCancelled, sample.Status)
	require.NoFileExists(t, filepath.Join(sandbox.WorkDir(), "started"))
}
