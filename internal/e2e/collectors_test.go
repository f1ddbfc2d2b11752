package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// guest is an enrolled collector that 'up' does not start, with its own pool and
// size class.
type guest struct {
	s        *stack
	dir, log string
	command  *exec.Cmd
	exited   chan error
}

const guestClass = 7

// enrol invites a machine and enrols it, as in docs/operations.md.
func (s *stack) enrol(t *testing.T, name string, flags ...string) *guest {
	t.Helper()
	out, code := s.run(t, append([]string{"collector", "invite", name, "--size-class", fmt.Sprint(guestClass), "--pool", "guests", "-o", "json"}, flags...)...)
	require.Zero(t, code)
	var invited apiclient.Invitation
	require.NoError(t, json.Unmarshal([]byte(out), &invited))
	g := &guest{s: s, dir: t.TempDir(), log: filepath.Join(t.TempDir(), "log")}
	_, code = s.run(t, "collector", "enroll", s.api.BaseURL(), invited.Token, "--state-dir", g.dir)
	require.Zero(t, code)
	t.Cleanup(func() {
		if g.command != nil {
			_ = g.command.Process.Kill()
			<-g.exited
		}
		if t.Failed() {
			t.Logf("collector %s:\n%s", name, g.output(t))
		}
	})
	return g
}

// start runs the collector with a program, given only its state directory.
func (g *guest) start(t *testing.T, argv ...string) {
	t.Helper()
	log, err := os.OpenFile(g.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	require.NoError(t, err)
	defer log.Close()
	g.command = exec.Command(argv[0], argv[1:]...)
	g.command.Env = []string{"PATH=" + os.Getenv("PATH"), "BENCHLOOM_COLLECTOR_DIR=" + g.dir, "BENCHLOOM_ISOLATION=" + os.Getenv("BENCHLOOM_ISOLATION")}
	g.command.Stdout, g.command.Stderr = log, log
	require.NoError(t, g.command.Start())
	g.exited = make(chan error, 1)
	go func(c *exec.Cmd, exited chan<- error) { exited <- c.Wait() }(g.command, g.exited)
}

func (g *guest) output(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(g.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// code waits for the process to end and returns its exit code.
func (g *guest) code(t *testing.T) int {
	t.Helper()
	select {
	case <-g.exited:
	case <-time.After(patience):
		require.Fail(t, "the collector does not end", g.output(t))
	}
	code := g.command.ProcessState.ExitCode()
	g.command = nil
	return code
}

func (s *stack) collector(t *testing.T, name string) apiclient.Collector {
	t.Helper()
	c, err := s.api.Collector(t.Context(), name)
	if err != nil {
		require.ErrorIs(t, err, apiclient.ErrNotFound)
	}
	return c
}

func (s *stack) awaitState(t *testing.T, name string, state bench.CollectorState) apiclient.Collector {
	t.Helper()
	var c apiclient.Collector
	require.Eventually(t, func() bool { c = s.collector(t, name); return c.State == state }, patience, 20*time.Millisecond, "collector %s does not become %s", name, state)
	return c
}

// gatedJob is a command for a guest's size class that reports its start and waits
// until it is released.
type gatedJob struct {
	id   bench.RequestID
	file string
}

func (s *stack) gated(t *testing.T) gatedJob {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gate")
	script := fmt.Sprintf("touch %[1]s.begun; while [ ! -e %[1]s.go ]; do sleep 0.05; done", file)
	r := s.submit(t, apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"sh", "-c", script}, Iterations: 1}, PlacementWish: apiclient.PlacementWish{SizeClass: guestClass}})
	return gatedJob{id: r.ID, file: file}
}

func (j gatedJob) begun(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { _, err := os.Stat(j.file + ".begun"); return err == nil }, patience, 10*time.Millisecond, "the job does not begin")
}

func (j gatedJob) letGo(t *testing.T) {
	t.Helper()
	require.NoError(t, os.WriteFile(j.file+".go", nil, 0o644))
}

// runsOf returns the runs of a request's jobs.
func (s *stack) runsOf(t *testing.T, id bench.RequestID) []apiclient.Run {
	t.Helper()
	detail, err := s.api.Request(t.Context(), string(id))
	require.NoError(t, err)
	var runs []apiclient.Run
	for _, j := range detail.Jobs {
		job, err := s.api.Job(t.Context(), j.Key)
		require.NoError(t, err)
		runs = append(runs, job.Runs...)
	}
	return runs
}

// done requires that a request succeeded with one run: a job that was given back
// does not count as one.
func (s *stack) done(t *testing.T, j gatedJob) {
	t.Helper()
	d := s.await(t, j.id, ended)
	requireSuccess(t, d.Outcome, d)
	require.Len(t, s.runsOf(t, j.id), 1)
}

// A collector drained while a job runs and others wait finishes that job and starts no
// other until it is activated. It is then killed and restarted, replaced by another
// machine, told to exit when idle, and removed.
func TestLongACollectorComesAndGoes(t *testing.T) {
	t.Parallel()
	s := startStack(t, "--collectors", "1x1", "--share-cores")
	g := s.enrol(t, "guest")
	g.start(t, s.bin, "collector", "run")
	first := s.awaitState(t, "guest", bench.CollectorWaiting)

	// Drain it in the middle of a job.
	running := s.gated(t)
	running.begun(t)
	waiting := s.gated(t)
	s.awaitState(t, "guest", bench.CollectorBenchmarking)
	_, code := s.run(t, "collector", "drain", "guest")
	require.Zero(t, code)
	require.Equal(t, bench.CollectorDraining, s.collector(t, "guest").State)
	running.letGo(t)
	s.done(t, running)
	s.awaitState(t, "guest", bench.CollectorInactive)
	require.Eventually(t, func() bool { return strings.Contains(g.output(t), "takes no jobs until it is activated") }, patience, 20*time.Millisecond)
	require.Empty(t, s.runsOf(t, waiting.id))
	require.NoFileExists(t, waiting.file+".begun")

	// Activate it without a restart.
	_, code = s.run(t, "collector", "activate", "guest")
	require.Zero(t, code)
	waiting.begun(t)
	waiting.letGo(t)
	s.done(t, waiting)
	require.Equal(t, first.Epoch, s.collector(t, "guest").Epoch)

	// Drained while idle, its worker still polls: a task that it takes is given back
	// and does not count as a run.
	_, code = s.run(t, "collector", "drain", "guest")
	require.Zero(t, code)
	slipped := s.gated(t)
	require.Eventually(t, func() bool { return strings.Count(g.output(t), "takes no jobs until it is activated") == 2 }, patience, 20*time.Millisecond)
	require.Empty(t, s.runsOf(t, slipped.id))
	_, code = s.run(t, "collector", "activate", "guest")
	require.Zero(t, code)
	slipped.begun(t)
	slipped.letGo(t)
	s.done(t, slipped)

	// After a kill the same machine takes over at once. Another machine is refused
	// the name, with the reason.
	require.NoError(t, g.command.Process.Signal(syscall.SIGKILL))
	require.Equal(t, -1, g.code(t))
	g.start(t, s.bin, "collector", "run")
	require.Eventually(t, func() bool { return s.collector(t, "guest").Epoch > first.Epoch }, patience, 20*time.Millisecond)
	_, code = s.run(t, "collector", "invite", "guest", "--size-class", "7")
	require.Equal(t, 1, code)
	other := s.enrol(t, "guest", "--replace")
	other.start(t, s.bin, "collector", "run")
	require.Equal(t, 6, other.code(t))
	require.Contains(t, other.output(t), "the name guest is taken: another live machine has registered it")
	// The other machine now has its token.
	require.Equal(t, 6, g.code(t))
	require.Contains(t, g.output(t), "the API lets collector guest in no longer")

	// Another machine replaces it. Jobs wait for it meanwhile.
	one, two := s.gated(t), s.gated(t)
	one.letGo(t)
	two.letGo(t)
	_, code = s.run(t, "collector", "remove", "guest", "--force")
	require.Zero(t, code)
	g = s.enrol(t, "guest")

	// --exit-when-idle, as specified: run the waiting jobs, then exit.
	g.start(t, s.bin, "collector", "run", "--exit-when-idle")
	s.done(t, one)
	s.done(t, two)
	require.Zero(t, g.code(t))
}

// version returns the version of the stack's program.
func (s *stack) version(t *testing.T) string {
	t.Helper()
	text, code := s.run(t, "version")
	require.Zero(t, code)
	return strings.Fields(text)[1]
}

// otherVersion makes a program of another version, and returns that version, which is also
// its name in the directory. Only its version differs: linking it anew would take half a
// minute of a core.
func (s *stack) otherVersion(t *testing.T, dir string, program []byte) string {
	t.Helper()
	version := s.version(t)
	require.GreaterOrEqual(t, len(version), len("v1.0.0"), "the version %q may occur elsewhere in the program: build it with 'make build'", version)
	other := "v" + version[1:]
	if other == version {
		other = "w" + version[1:]
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, other), bytes.ReplaceAll(program, []byte(version), []byte(other)), 0o755))
	return other
}

// An outdated collector finishes its job and exits; the wrapper fetches the wanted
// version and starts it.
func TestAnOutdatedCollectorFinishesItsJobAndIsReplaced(t *testing.T) {
	t.Parallel()
	s := startStack(t, "--collectors", "1x1", "--share-cores")
	g := s.enrol(t, "guest")
	dir := t.TempDir()
	program := filepath.Join(dir, "benchloom")
	old, err := os.ReadFile(s.bin)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(program, old, 0o755))
	newer := s.otherVersion(t, dir, old)
	fetch := filepath.Join(dir, "fetch")
	require.NoError(t, os.WriteFile(fetch, fmt.Appendf(nil, "#!/bin/sh\nexec cp %s/$1 $2\n", dir), 0o755))

	g.start(t, "env", "BENCHLOOM_PROGRAM="+program, "BENCHLOOM_FETCH="+fetch, filepath.Join(repository(t), "deploy", "systemd", "benchloom-collector"))
	c := s.awaitState(t, "guest", bench.CollectorWaiting)
	require.Equal(t, s.version(t), c.Version)
	job := s.gated(t)
	job.begun(t)
	_, code := s.run(t, "collector", "want-version", "guests", newer)
	require.Zero(t, code)
	next := s.gated(t)
	// It knows that it is outdated, and finishes its job.
	require.Eventually(t, func() bool { return strings.Contains(g.output(t), "out of date: exits when its job has ended") }, patience, 20*time.Millisecond)
	require.Equal(t, bench.CollectorBenchmarking, s.collector(t, "guest").State)
	require.Equal(t, c.Epoch, s.collector(t, "guest").Epoch)
	job.letGo(t)
	s.done(t, job)
	require.Eventually(t, func() bool { return s.collector(t, "guest").Version == newer }, patience, 20*time.Millisecond)
	next.begun(t)
	next.letGo(t)
	s.done(t, next)
	require.NoError(t, g.command.Process.Signal(os.Interrupt))
	require.Zero(t, g.code(t))
}
