package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Sandbox is one slot of a collector: it runs one command at a time. On macOS it limits only the time.
type Sandbox struct {
	config  SandboxConfig
	workDir string
	lock    *os.File
	lacking []Unenforced

	running sync.Mutex // held while a command runs
	closed  bool
}

// NewSandbox prepares a slot's directories. It fails if the configuration is invalid, and with [ErrSlotBusy] if another open
// sandbox uses the work directory.
func NewSandbox(config SandboxConfig) (*Sandbox, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	if config.User != nil && os.Geteuid() != 0 {
		return nil, fmt.Errorf("slot %s: running commands as user %d needs root", config.Name, config.User.UID)
	}
	workDir, err := prepareDirs(config)
	if err != nil {
		return nil, err
	}
	lock, err := os.Open(workDir)
	if err != nil {
		return nil, fmt.Errorf("opening the work directory: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s", ErrSlotBusy, workDir)
		}
		return nil, fmt.Errorf("locking the work directory %s: %w", workDir, err)
	}
	return &Sandbox{config: config, workDir: workDir, lock: lock, lacking: darwinLacks(config)}, nil
}

func darwinLacks(config SandboxConfig) []Unenforced {
	const reason = "not supported on macOS"
	lacking := []Unenforced{
		{LimitTree, "processes that leave the command's process group are not found: " + reason},
		{LimitASLR, "addresses stay random: " + reason},
	}
	for _, limit := range []struct {
		name   Limit
		wanted bool
	}{
		{LimitCPUs, len(config.CPUs) > 0},
		{LimitMemory, config.MemoryBytes > 0},
		{LimitDisk, config.DiskBytes > 0},
		{LimitInodes, config.Inodes > 0},
		{LimitPIDs, config.PIDs > 0},
		{LimitOpenFiles, config.OpenFiles > 0},
		{LimitProcesses, !config.Isolation.Off},
		{LimitFiles, !config.Isolation.Off},
		{LimitNetwork, !config.Isolation.Off},
		{LimitPrivileges, !config.Isolation.Off},
	} {
		if limit.wanted {
			lacking = append(lacking, Unenforced{limit.name, reason})
		}
	}
	return lacking
}

// Name returns the slot's name.
func (s *Sandbox) Name() string { return s.config.Name }

// WorkDir returns the slot's directory with symbolic links resolved.
func (s *Sandbox) WorkDir() string { return s.workDir }

// TempDir returns the TMPDIR of commands: inside the work directory and the same for every run.
func (s *Sandbox) TempDir() string { return tempDir(s.workDir) }

// Unenforced returns the configured limits that cannot be enforced on this system.
func (s *Sandbox) Unenforced() []Unenforced { return slices.Clone(s.lacking) }

// Sweep cannot find leftovers of an earlier collector on this system and reports none.
func (s *Sandbox) Sweep(context.Context) (int, error) { return 0, nil }

// Show does nothing: commands see what their account may.
func (s *Sandbox) Show(Shown) error { return nil }

// Clean removes all files in the work directory, including those in TempDir.
func (s *Sandbox) Clean(context.Context) error {
	if !s.running.TryLock() {
		return ErrRunning
	}
	defer s.running.Unlock()
	if s.closed {
		return os.ErrClosed
	}
	if err := emptyDir(s.workDir); err != nil {
		return err
	}
	return makeTempDir(s.workDir, s.config.User, false)
}

// Stuck returns nil: processes that survive being killed are not noticed on this system.
func (s *Sandbox) Stuck() error { return nil }

// Close releases the slot. It waits for a running command.
func (s *Sandbox) Close() error {
	s.running.Lock()
	defer s.running.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return s.lock.Close()
}

// Run runs one command once and returns what it cost. When the context or the timeout ends, the command's process group is
// killed. The error is nil whenever the command ran; else it is [*StartError], [ErrRunning], a failed write to Output or
// Stdout, or an invalid command.
func (s *Sandbox) Run(ctx context.Context, command Command) (Sample, error) {
	sample := Sample{Status: StatusNotStarted, ExitCode: -1, Unenforced: s.Unenforced()}
	if !s.running.TryLock() {
		return sample, ErrRunning
	}
	defer s.running.Unlock()
	if s.closed {
		return sample, os.ErrClosed
	}
	if err := command.check(); err != nil {
		return sample, err
	}
	if ctx.Err() != nil {
		sample.Status = StatusCancelled
		return sample, nil
	}
	if command.Dir == "" {
		command.Dir = s.workDir
	}
	path, err := command.program(command.Dir)
	if err != nil {
		return sample, err
	}
	if err := makeTempDir(s.workDir, s.config.User, command.FreshTemp); err != nil {
		return sample, err
	}
	if command.Nice != 0 {
		sample.Unenforced = append(sample.Unenforced, Unenforced{LimitNice, "not supported on macOS"})
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return sample, err
	}
	defer null.Close()
	outputs, err := openOutputs(command, null)
	if err != nil {
		return sample, err
	}
	defer outputs.close()
	attr := &os.ProcAttr{
		Dir:   command.Dir,
		Env:   setEnv(command.Env, "TMPDIR", s.TempDir()),
		Files: []*os.File{null, outputs.stdout, outputs.stderr},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	}
	if user := s.config.User; user != nil {
		attr.Sys.Credential = &syscall.Credential{Uid: user.UID, Gid: user.GID}
	}
	if command.Begin != nil {
		command.Begin()
	}
	begin := time.Now()
	process, err := os.StartProcess(path, command.Argv, attr)
	outputs.started()
	if err != nil {
		return sample, &StartError{Program: command.Argv[0], Err: err}
	}
	if err := wait(ctx, process, command.Timeout, &sample); err != nil {
		return sample, fmt.Errorf("waiting for command %q: %w", command.Argv[0], err)
	}
	sample.Wall = time.Since(begin)
	if unix.Kill(-process.Pid, unix.SIGKILL) == nil && sample.Status == StatusExited {
		sample.LeftBehind = 1 // at least
	}
	return sample, outputs.finish(&sample)
}

// wait waits for the main process, kills its group if necessary, and records the process's usage.
func wait(ctx context.Context, process *os.Process, timeout time.Duration, sample *Sample) error {
	sample.Status = StatusExited
	ended := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() {
		var late <-chan time.Time
		if timeout > 0 {
			timer := time.NewTimer(timeout)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-ended:
			return
		case <-ctx.Done():
			sample.Status = StatusCancelled
		case <-late:
			sample.Status = StatusTimedOut
		}
		_ = unix.Kill(-process.Pid, unix.SIGKILL)
	})
	state, err := process.Wait()
	close(ended)
	killer.Wait()
	if err != nil {
		return err
	}
	sample.ExitCode = state.ExitCode()
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		sample.Signal = unix.SignalName(status.Signal())
	}
	sample.UserCPU, sample.SystemCPU = state.UserTime(), state.SystemTime()
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		sample.MaxRSSBytes = usage.Maxrss // bytes, unlike on Linux
		sample.MinorFaults, sample.MajorFaults = usage.Minflt, usage.Majflt
		sample.VoluntarySwitches, sample.InvoluntarySwitches = usage.Nvcsw, usage.Nivcsw
	}
	return nil
}
