package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// attempt is one run on the launcher's thread.
type attempt struct {
	path     string
	argv     []string
	attr     *syscall.ProcAttr
	nice     int
	counters []Counter
	network  bool
	limits   []rlimit

	// begun is closed once pid, err or perfErr is set, ended once the main process has ended but is not reaped yet.
	begun, ended chan struct{}
	pid          int
	err          error
	niceErr      error
	lacking      []Unenforced // of the limits
	setupErr     error        // the command was not started
	perf         *perfCounters
	start, end   time.Time
	floor        int64 // the collector's own peak memory before the fork, in bytes
}

// launch starts the command and waits for its end. It runs on the launcher's thread, which must live as long as the main
// process: the kernel kills a process when the thread that started it ends (PR_SET_PDEATHSIG).
func (a *attempt) launch(l *launcher) {
	a.niceErr = l.renice(a.nice)
	if a.setupErr = l.connect(a.network); a.setupErr == nil {
		a.perf, a.setupErr = l.counting(a.counters)
	}
	if a.setupErr != nil {
		close(a.begun)
		return
	}
	for wait := time.Millisecond; ; wait *= 2 {
		a.start = time.Now()
		a.pid, a.err = syscall.ForkExec(a.path, a.argv, a.attr)
		// A program that this process has just written is busy while any child forked meanwhile still has the descriptor
		// (https://go.dev/issue/22315).
		if !errors.Is(a.err, unix.ETXTBSY) || wait > 200*time.Millisecond {
			break
		}
		time.Sleep(wait)
	}
	if a.err != nil {
		close(a.begun)
		return
	}
	a.lacking = setLimits(a.pid, a.limits, a.attr.Sys.Credential)
	close(a.begun)
	// Only EINTR can happen: nothing else waits for this child.
	_ = ignoringEINTR(func() error {
		return unix.Waitid(unix.P_PID, a.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	})
	a.end = time.Now()
	close(a.ended)
}

// Run runs one command once and returns what it cost. When the context or the timeout ends, all processes of the command
// are killed and Run returns after they are gone.
//
// The error is nil whenever the command ran, however it ended: the sample's Status tells. Errors are [*StartError],
// [ErrRunning], [ErrNotKilled] when none of the killed processes ends for 5 s or some live for a minute, a failed write to
// Output or Stdout, an invalid command, or a failure of the machine, such as an init process that was killed from outside; with
// the last four the sample is incomplete.
func (s *Sandbox) Run(ctx context.Context, command Command) (Sample, error) {
	if !s.running.TryLock() {
		return Sample{Status: StatusNotStarted, ExitCode: -1}, ErrRunning
	}
	defer s.running.Unlock()
	sample := Sample{Status: StatusNotStarted, ExitCode: -1, Unenforced: s.Unenforced()}
	if s.closed {
		return sample, os.ErrClosed
	}
	if s.stuck != nil {
		return sample, s.stuck
	}
	if err := command.check(); err != nil {
		return sample, err
	}
	if ctx.Err() != nil {
		sample.Status = StatusCancelled
		return sample, nil
	}
	s.stayAwake()
	s.unused = false
	r, err := s.newRun(command)
	if err != nil {
		return sample, err
	}
	defer r.outputs.close()
	if err := s.reclaim(); err != nil {
		return sample, err
	}
	if command.Begin != nil {
		command.Begin()
	}
	return r.execute(ctx, sample)
}

// run is one run of a command in a sandbox.
type run struct {
	sandbox *Sandbox
	command Command
	attempt *attempt
	outputs *outputs
}

func (s *Sandbox) newRun(command Command) (*run, error) {
	if command.Dir == "" {
		command.Dir = s.workDir
	}
	path, err := command.program(command.Dir)
	if err != nil {
		return nil, err
	}
	if err := makeTempDir(s.workDir, s.config.User, command.FreshTemp); err != nil {
		return nil, err
	}
	if err := s.reapStale(); err != nil {
		return nil, err
	}
	nice := command.Nice
	if nice == 0 {
		nice = s.baseNice
	}
	if err := s.freshLauncher(nice); err != nil {
		return nil, err
	}
	outputs, err := openOutputs(command, s.null)
	if err != nil {
		return nil, err
	}
	attr := &syscall.ProcAttr{
		Dir:   command.Dir,
		Env:   setEnv(command.Env, "TMPDIR", s.TempDir()),
		Files: []uintptr{s.null.Fd(), outputs.stdout.Fd(), outputs.stderr.Fd()},
		// A separate session: no terminal, no signals from the collector's.
		Sys: &syscall.SysProcAttr{Setsid: true},
	}
	if s.launcher.space == nil {
		// In a space, all commands die with the init process, which dies with the collector. There a command cannot see whether its
		// parent, which is outside, has ended already, and would take it for dead.
		attr.Sys.Pdeathsig = syscall.SIGKILL
	}
	if s.groups.unified != nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(s.groups.unified.Fd())
	}
	if user := s.config.User; user != nil {
		attr.Sys.Credential = &syscall.Credential{Uid: user.UID, Gid: user.GID}
	}
	return &run{sandbox: s, command: command, outputs: outputs, attempt: &attempt{
		path: path, argv: command.Argv, attr: attr, nice: nice, counters: command.Counters, network: command.Network,
		limits: s.config.rlimits(), begun: make(chan struct{}), ended: make(chan struct{}),
	}}, nil
}

func (r *run) execute(ctx context.Context, sample Sample) (Sample, error) {
	s, a := r.sandbox, r.attempt
	oomBefore := s.groups.oomKills()
	peak := sync.OnceValue(s.groups.resetPeak())
	defer peak() // also closes its file
	// Here, as the launcher's thread may have another /proc.
	resetPeakRSS()
	a.floor = peakRSS()
	s.launcher.work <- func() { a.launch(s.launcher) }
	<-a.begun
	r.outputs.started()
	if a.niceErr != nil {
		sample.Unenforced = append(sample.Unenforced, Unenforced{Name: LimitNice, Reason: fmt.Sprintf(
			"nice %d is refused, a higher priority needs root or CAP_SYS_NICE: %v", a.nice, a.niceErr)})
	}
	sample.Unenforced = append(sample.Unenforced, a.lacking...)
	if a.setupErr != nil {
		return sample, a.setupErr
	}
	if s.launcher.space != nil && errors.Is(a.err, unix.ENOMEM) {
		return sample, fmt.Errorf("%w (%w)", errInitLost, a.err) // a space without init process takes no more processes
	}
	if a.err != nil {
		return sample, &StartError{Program: r.command.Argv[0], Err: a.err}
	}
	// Read it again: memory grows, and another sandbox of this process may reset the peak.
	floor := max(a.floor, peakRSS())
	t := &tree{groups: s.groups, space: s.launcher.space, workDir: s.workDir, main: a.pid, seen: map[int]process{}}

	status, err := r.supervise(ctx, t, oomBefore)
	sample.Status = status
	if err != nil {
		s.stuck = err
		return sample, err
	}
	sample.Wall = a.end.Sub(a.start)
	if err := r.collect(&sample, t, floor); err != nil {
		return sample, err
	}
	sample.MemoryPeakBytes = peak()
	s.judge(ctx, &sample, oomBefore)
	return sample, r.outputs.finish(&sample)
}

// freshLauncher replaces the launching thread if its priority was lowered and the collector may not raise it again, and moves it
// if its space has ended: after a command that had to be killed, or because something outside ended it.
func (s *Sandbox) freshLauncher(nice int) error {
	switch {
	case nice < s.launcher.nice && unix.Geteuid() != 0:
		return s.replace()
	case s.isolated && !s.launcher.space.alive():
		return s.refresh()
	}
	return nil
}

// supervise waits until the main process has ended, by itself or because it had to be killed.
func (r *run) supervise(ctx context.Context, t *tree, oomBefore int64) (Status, error) {
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	exceeded := make(chan Status, 1)
	var watch sync.WaitGroup
	watch.Go(func() {
		if status := r.sandbox.watch(watching, oomBefore); status != "" {
			exceeded <- status
		}
	})
	defer watch.Wait()
	defer stop()

	var timeout <-chan time.Time
	if r.command.Timeout > 0 {
		timer := time.NewTimer(r.command.Timeout)
		defer timer.Stop()
		timeout = timer.C
	}
	status := StatusExited
	select {
	case <-r.attempt.ended:
		return status, nil
	case <-ctx.Done():
		status = StatusCancelled
	case <-timeout:
		status = StatusTimedOut
	case status = <-exceeded:
	}
	if err := t.kill(); err != nil {
		return status, fmt.Errorf("killing command %q: %w", r.command.Argv[0], err)
	}
	<-r.attempt.ended
	return status, nil
}

// collect reaps the main process, kills processes that outlive it and sums up the usage of all.
func (r *run) collect(sample *Sample, t *tree, floor int64) error {
	var usage unix.Rusage
	got, err := wait4(t.main, 0, &usage)
	if err != nil {
		return fmt.Errorf("waiting for command %q: %w", r.command.Argv[0], err)
	}
	addUsage(sample, &usage)
	sample.MaxRSSFloorBytes = floor
	sample.ExitCode = got.status.ExitStatus()
	if got.status.Signaled() {
		sample.Signal = unix.SignalName(got.status.Signal())
	}

	left, err := t.left()
	if err != nil {
		return err
	}
	if left > 0 {
		if sample.Status == StatusExited {
			sample.LeftBehind = left
		}
		if err := t.kill(); err != nil {
			r.sandbox.stuck = fmt.Errorf("killing what command %q left behind: %w", r.command.Argv[0], err)
			return r.sandbox.stuck
		}
	}
	add := func(_ process, usage *unix.Rusage) { addUsage(sample, usage) }
	if err := t.reap(add); err != nil {
		return err
	}
	if left > 0 && t.space != nil {
		// The killed processes are reaped by now.
		answer, err := t.space.settle()
		if err != nil {
			return err
		}
		t.add(answer)
	}
	addUsage(sample, &t.orphans)
	if left > 0 || sample.Status != StatusExited {
		// This ends every process of the command, however it was hidden.
		if err := t.space.retire(func() error { return t.reap(add) }); err != nil {
			r.sandbox.stuck = fmt.Errorf("ending the space of command %q: %w", r.command.Argv[0], err)
			return r.sandbox.stuck
		}
	}
	// The two readings may differ by a few pages.
	const margin = 1 << 20
	if sample.MaxRSSBytes <= floor+margin {
		sample.MaxRSSBytes = 0
	}
	sample.Counters, sample.Invalid, err = r.attempt.perf.read()
	return err
}

// judge checks whether an apparently normal exit was caused by an exceeded limit.
func (s *Sandbox) judge(ctx context.Context, sample *Sample, oomBefore int64) {
	if sample.Status == StatusCancelled {
		return
	}
	if s.groups.oomKills() > oomBefore {
		sample.Status = StatusOutOfMemory
		return
	}
	if s.config.disk() == (disk{}) || sample.Status != StatusExited || sample.Succeeded() {
		return
	}
	// A file that reaches the limit ends its writer by SIGXFSZ, or with an error if the writer ignores the signal.
	if sample.Signal == "SIGXFSZ" || s.used(ctx).reaches(s.config.disk()) {
		sample.Status = StatusDiskFull
	}
}

// used returns the usage that counts towards the limits of disk and inodes, as far as it can be measured.
func (s *Sandbox) used(ctx context.Context) disk {
	var total disk
	for _, p := range s.diskParts() {
		if used, err := diskUsage(ctx, p.dir); err == nil {
			total = total.plus(used)
		}
	}
	return total
}

// addUsage adds the usage of a reaped process and its own reaped children; see getrusage(2).
func addUsage(sample *Sample, usage *unix.Rusage) {
	sample.UserCPU += time.Duration(usage.Utime.Nano())
	sample.SystemCPU += time.Duration(usage.Stime.Nano())
	sample.MaxRSSBytes = max(sample.MaxRSSBytes, usage.Maxrss<<10) // kibibytes
	sample.MinorFaults += usage.Minflt
	sample.MajorFaults += usage.Majflt
	sample.VoluntarySwitches += usage.Nvcsw
	sample.InvoluntarySwitches += usage.Nivcsw
}
