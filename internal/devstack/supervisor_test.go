//go:build linux || darwin

package devstack_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/devstack"
)

// quick restarts without noticeable pauses.
func quick() devstack.RestartPolicy {
	return devstack.RestartPolicy{First: time.Millisecond, Longest: 10 * time.Millisecond, Healthy: time.Hour, GiveUp: 3}
}

func TestGroupsStartInOrderAndStopInReverse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	state := openState(t, filepath.Join(dir, "state"))
	first := childProcess("first", "serve", filepath.Join(dir, "first"))
	second := childProcess("second", "serve", filepath.Join(dir, "second"))
	second.Group = 1
	prepare := second.Prepare
	second.Prepare = func(ctx context.Context) error {
		// When the second starts the first is up.
		return errors.Join(first.Ready(ctx), prepare(ctx))
	}
	r := run(t, devstack.Config{State: state, Restart: quick()}, second, first)
	r.awaitReady(t)

	status := r.Status()
	require.Equal(t, []string{"first", "second"}, []string{status[0].Name, status[1].Name})
	for _, s := range status {
		require.Equal(t, devstack.Ready, s.Condition)
		require.Equal(t, readPID(t, filepath.Join(dir, s.Name)), s.PID)
		require.Zero(t, s.Restarts)
	}
	r.stop(t)

	status = r.Status()
	require.False(t, status[0].Since.Before(status[1].Since), "the second stops before the first")
	for _, s := range status {
		require.Equal(t, devstack.Stopped, s.Condition)
		require.True(t, ended(readPID(t, filepath.Join(dir, s.Name))))
		text, err := os.ReadFile(s.LogFile)
		require.NoError(t, err)
		require.Equal(t, "bye\n", string(text))
	}
}

func TestProcessThatDiesIsStartedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "up")
	state := openState(t, filepath.Join(dir, "state"))
	r := run(t, devstack.Config{State: state, Restart: quick()}, childProcess("server", "serve", file))
	r.awaitReady(t)
	began := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	require.NoError(t, state.WriteUp(devstack.Up{Processes: map[string]int{"server": r.Status()[0].PID, "other": 12}}, began))
	// More deaths than it would be given without having been ready.
	for round := range 5 {
		pid := r.Status()[0].PID
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		eventually(t, func() bool {
			s := r.Status()[0]
			return s.Condition == devstack.Ready && s.PID != pid
		}, "the process runs again")
		s := r.Status()[0]
		require.Equal(t, round+1, s.Restarts)
		require.ErrorContains(t, s.LastError, "process server failed: signal: killed")
		// Clients find the one that runs.
		up, err := devstack.ReadUp(filepath.Join(dir, "state"))
		require.NoError(t, err)
		require.Equal(t, map[string]int{"server": s.PID, "other": 12}, up.Processes)
		require.Equal(t, began, up.StartedAt)
	}
	r.stop(t)
}

func TestProcessThatNeverGetsReadyEndsTheSupervisor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := childProcess("good", "serve", filepath.Join(dir, "good"))
	bad := childProcess("bad", "fail")
	bad.Ready = func(context.Context) error { return errors.New("not yet") }
	bad.Group = 1
	r := run(t, devstack.Config{State: openState(t, filepath.Join(dir, "state")), Restart: quick()}, good, bad)

	err := <-r.result
	var failure *devstack.ProcessError
	require.ErrorAs(t, err, &failure)
	require.Equal(t, "bad", failure.Name)
	require.Len(t, failure.Output, 20)
	require.Contains(t, err.Error(), "process bad failed: exit status 7")
	require.Contains(t, err.Error(), "\n  line 11\n")
	require.NotContains(t, err.Error(), "line 10\n")
	require.Contains(t, err.Error(), "line 30")
	require.Equal(t, 2, r.Status()[1].Restarts)
	require.Equal(t, devstack.Failed, r.Status()[1].Condition)
	require.True(t, ended(readPID(t, filepath.Join(dir, "good"))), "the others are stopped")
}

func TestErrorThatCannotBeCuredEndsTheSupervisorAtOnce(t *testing.T) {
	t.Parallel()
	cause := errors.New("no such thing here")
	p := childProcess("hopeless", "print")
	p.Prepare = func(context.Context) error { return devstack.Permanent(cause) }
	r := run(t, devstack.Config{State: openState(t, t.TempDir()), Restart: quick()}, p)
	require.ErrorIs(t, <-r.result, cause)
	require.Zero(t, r.Status()[0].Restarts)
}

func TestProcessThatIsNotReadyInTimeIsStartedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := childProcess("slow", "serve", filepath.Join(dir, "up"))
	starts := 0
	prepare := p.Prepare
	p.Prepare = func(ctx context.Context) error {
		starts++
		return prepare(ctx)
	}
	ready := p.Ready
	p.Ready = func(ctx context.Context) error {
		if starts == 1 {
			return errors.New("still loading")
		}
		return ready(ctx)
	}
	p.ReadyBound = 2 * time.Second // on a loaded machine, even a small process takes long
	policy := quick()
	policy.GiveUp = 100
	r := run(t, devstack.Config{State: openState(t, filepath.Join(dir, "state")), Restart: policy}, p)
	r.awaitReady(t)
	require.ErrorContains(t, r.Status()[0].LastError, "not ready after 2s")
	r.stop(t)
}

func TestOneShotProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	once := childProcess("migrate", "fail-first", filepath.Join(dir, "marker"))
	once.OneShot = true
	after := childProcess("server", "serve", filepath.Join(dir, "up"))
	after.Group = 1
	r := run(t, devstack.Config{State: openState(t, filepath.Join(dir, "state")), Restart: quick()}, once, after)
	r.awaitReady(t)
	// It failed once, was started again, and its success is no death.
	eventually(t, func() bool { return r.Status()[0].Condition == devstack.Done }, "one-shot process is done")
	require.Equal(t, 1, r.Status()[0].Restarts)
	r.stop(t)
	require.Equal(t, devstack.Done, r.Status()[0].Condition)
}

func TestProcessThatDoesNotStopIsForced(t *testing.T) {
	t.Parallel()
	t.Run("told to quit after the bound", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		p := childProcess("stubborn", "stubborn", filepath.Join(dir, "up"))
		p.StopBound = 10 * time.Millisecond
		p.QuitSignal = syscall.SIGQUIT
		r := run(t, devstack.Config{State: openState(t, filepath.Join(dir, "state"))}, p)
		r.awaitReady(t)
		r.stop(t)
		text, err := os.ReadFile(r.Status()[0].LogFile)
		require.NoError(t, err)
		require.Equal(t, "told to quit\n", string(text))
	})
	t.Run("killed after the bound", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		p := childProcess("stubborn", "stubborn", filepath.Join(dir, "up"))
		p.StopBound = 10 * time.Millisecond
		r := run(t, devstack.Config{State: openState(t, filepath.Join(dir, "state"))}, p)
		r.awaitReady(t)
		r.stop(t)
		require.True(t, ended(readPID(t, filepath.Join(dir, "up"))))
	})
	t.Run("killed at once in a hurry", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		p := childProcess("stubborn", "stubborn", filepath.Join(dir, "up"))
		p.StopBound = time.Hour
		r := run(t, devstack.Config{State: openState(t, filepath.Join(dir, "state"))}, p)
		r.awaitReady(t)
		r.cancel()
		r.Hurry()
		r.Hurry() // a third Ctrl-C is no harm
		require.NoError(t, <-r.result)
		require.True(t, ended(readPID(t, filepath.Join(dir, "up"))))
	})
}

func TestGrandchildrenDoNotOutliveTheirParent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	grandchild, parent := filepath.Join(dir, "grandchild"), filepath.Join(dir, "parent")
	p := childProcess("parent", "parent", grandchild, parent)
	p.Ready = func(context.Context) error {
		_, err := os.Stat(parent)
		return err
	}
	r := run(t, devstack.Config{State: openState(t, filepath.Join(dir, "state"))}, p)
	r.awaitReady(t)
	pid := readPID(t, grandchild)
	require.False(t, ended(pid))
	r.stop(t) // SIGTERM ends the parent only
	eventually(t, func() bool { return ended(pid) }, "the grandchild ends")
}

func TestLogFilesAreBounded(t *testing.T) {
	t.Parallel()
	state := openState(t, t.TempDir())
	p := childProcess("chatty", "print") // 51 bytes, again and again
	p.Ready = func(context.Context) error { return errors.New("never") }
	policy := quick()
	policy.GiveUp = 7
	r := run(t, devstack.Config{State: state, Restart: policy, LogLimit: 120}, p)
	require.Error(t, <-r.result)
	// Seven times 51 bytes: two lines per file, and one old file is kept.
	for path, size := range map[string]int64{state.LogFile("chatty"): 51, state.LogFile("chatty") + ".1": 102} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, size, info.Size(), path)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	entries, err := os.ReadDir(filepath.Dir(state.LogFile("chatty")))
	require.NoError(t, err)
	require.Len(t, entries, 2)
}

func TestProcessIsScheduledAsChosen(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("scheduling can be chosen on Linux only")
	}
	state := openState(t, t.TempDir())
	one := childProcess("one", "scheduling")
	one.OneShot, one.Scheduling = true, devstack.Scheduling{CPUs: []int{0}, Batch: true, TimerSlack: 3 * time.Millisecond}
	all := childProcess("all", "scheduling")
	all.OneShot, all.Group = true, 1
	r := run(t, devstack.Config{State: state, Restart: quick()}, one, all)
	r.awaitReady(t)
	r.stop(t)
	text, err := os.ReadFile(state.LogFile("one"))
	require.NoError(t, err)
	require.Equal(t, "Cpus_allowed_list:\t0\npolicy 3, slack 3000000\n", string(text))

	// The choice for one child is not inherited by the next.
	var self bytes.Buffer
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stdout = append(os.Environ(), asChild+"=scheduling"), &self
	require.NoError(t, cmd.Run())
	text, err = os.ReadFile(state.LogFile("all"))
	require.NoError(t, err)
	require.Equal(t, self.String(), string(text))
}

func TestKilledSupervisorLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells children of their parent's death")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "up")
	supervisor := startSupervisor(t, filepath.Join(dir, "state"), file)
	child := readPID(t, file)
	require.False(t, ended(child))
	require.NoError(t, supervisor.Process.Kill())
	require.Error(t, supervisor.Wait())
	eventually(t, func() bool { return ended(child) }, "the child ends")
}

// startSupervisor runs a supervisor in a process of its own until all is ready.
func startSupervisor(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asChild+"=supervisor")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		_ = cmd.Wait()
		require.NoError(t, err, stderr.String())
	}
	require.Equal(t, "all ready\n", line)
	return cmd
}

func TestLeftoversOfAnEarlierRunAreEnded(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the recorded start is the one of Linux")
	}
	dir := t.TempDir()
	// Two processes run on from what looks like an earlier supervisor.
	var left []*exec.Cmd
	var pids []int
	for _, name := range []string{"left", "other"} {
		cmd := exec.Command(os.Args[0], filepath.Join(dir, name))
		cmd.Env = append(os.Environ(), asChild+"=serve")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		waitForFile(filepath.Join(dir, name))
		left, pids = append(left, cmd), append(pids, cmd.Process.Pid)
	}
	// The first is recorded as it is; the second one's number was another's.
	records := []map[string]any{
		{"name": "left", "pid": pids[0], "started": startOf(t, pids[0]), "signal": int(syscall.SIGKILL)},
		{"name": "other", "pid": pids[1], "started": "an-earlier-boot/1", "signal": int(syscall.SIGKILL)},
	}
	state := openState(t, filepath.Join(dir, "state"))
	text, err := json.Marshal(records)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(state.Path("processes.json"), text, 0o600))

	r := run(t, devstack.Config{State: state}, childProcess("server", "serve", filepath.Join(dir, "up")))
	r.awaitReady(t)
	require.True(t, ended(pids[0]))
	require.False(t, ended(pids[1]))
	r.stop(t)
	require.Error(t, left[0].Wait())
	require.NoError(t, left[1].Process.Kill())
	require.Error(t, left[1].Wait())
}

// startOf is a process's start as it is recorded.
func startOf(t *testing.T, pid int) string {
	t.Helper()
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	require.NoError(t, err)
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	require.NoError(t, err)
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+2:])
	return string(bytes.TrimSpace(boot)) + "/" + string(fields[19]) // field 22 of proc(5) stat
}

func TestProcessesThatAreRefused(t *testing.T) {
	t.Parallel()
	config := devstack.Config{State: openState(t, t.TempDir()), Logger: discard()}
	good := childProcess("good", "serve", "file")
	oneShot := good
	oneShot.OneShot = true
	for want, processes := range map[string][]devstack.Process{
		"needs at least one process":  nil,
		"two processes have the name": {good, good},
		`name "../x" is not allowed`:  {{Name: "../x", Argv: []string{"x"}}},
		"has no program to run":       {{Name: "x"}},
		"cannot have a readiness":     {oneShot},
	} {
		_, err := devstack.NewSupervisor(config, processes...)
		require.ErrorContains(t, err, want)
	}
	_, err := devstack.NewSupervisor(devstack.Config{}, good)
	require.ErrorContains(t, err, "needs a state directory")
}

func TestRestartPausesDouble(t *testing.T) {
	t.Parallel()
	var pauses []time.Duration
	for endings := range 8 {
		pauses = append(pauses, devstack.DefaultRestartPolicy().Pause(endings+1))
	}
	ms := time.Millisecond
	require.Equal(t, []time.Duration{200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 10000 * ms, 10000 * ms}, pauses)
	require.True(t, slices.IsSorted(pauses))
}
