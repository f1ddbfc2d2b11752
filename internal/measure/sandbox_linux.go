package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// Sandbox is one slot of a collector: it runs one command at a time within the slot's limits.
type Sandbox struct {
	config   SandboxConfig
	workDir  string
	lock     *os.File
	null     *os.File
	groups   *slotGroups
	baseNice int
	lacking  []Unenforced

	// isolated is set if commands run in a space.
	isolated bool
	// swept is set once no process of an earlier collector is left, unused while nothing has been shown or run since the last
	// [Sandbox.Clean].
	swept, unused bool
	// always are the ReadOnly paths of the configuration, without symbolic links.
	always []string

	// running is held while a command runs; it guards the fields below.
	running  sync.Mutex
	launcher *launcher
	// shown are the directories of the last Show that are not seen otherwise.
	shown Shown
	// outliving are the writable ones.
	outliving []*diskPart
	lending   lending
	rest      rest
	// stuck is set when processes could not be killed: the launcher still waits for one.
	stuck  error
	closed bool
}

// NewSandbox prepares a slot: directories, control groups as far as the machine allows (see [Sandbox.Unenforced]) and the
// thread that commands start from. It fails if the configuration is invalid or a CPU does not exist, and with [ErrSlotBusy]
// if another open sandbox uses the work directory. It makes the calling process a child subreaper, so that it adopts
// processes that outlive their parents (prctl(2), PR_SET_CHILD_SUBREAPER), and keeps it and all that it starts from leaving core
// dumps.
func NewSandbox(config SandboxConfig) (*Sandbox, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	if config.User != nil && os.Geteuid() != 0 {
		return nil, fmt.Errorf("slot %s: running commands as user %d needs root", config.Name, config.User.UID)
	}
	if err := config.Isolation.exists(); err != nil {
		return nil, fmt.Errorf("slot %s: %w", config.Name, err)
	}
	config.CPUs, _ = NewCPUList(config.CPUs...)
	workDir, err := prepareDirs(config)
	if err != nil {
		return nil, err
	}
	s := &Sandbox{config: config, workDir: workDir}
	if s.always, err = realPaths(config.Isolation.ReadOnly); err != nil && !config.Isolation.Off {
		return nil, fmt.Errorf("slot %s: %w", config.Name, err)
	}
	if s.lock, err = lockDir(workDir); err != nil {
		return nil, err
	}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// exists checks that the ReadOnly paths exist.
func (i Isolation) exists() error {
	if i.Off {
		return nil
	}
	for _, path := range i.ReadOnly {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("isolation shows %s to commands: %w; create it first, or leave it out", path, err)
		}
	}
	return nil
}

// lockDir locks the work directory for this sandbox. The lock ends with the process, however that ends.
func lockDir(dir string) (*os.File, error) {
	lock, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the work directory: %w", err)
	}
	err = ignoringEINTR(func() error { return unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	if err != nil {
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s", ErrSlotBusy, dir)
		}
		return nil, fmt.Errorf("locking the work directory %s: %w", dir, err)
	}
	return lock, nil
}

func (s *Sandbox) open() error {
	var err error
	if s.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming a child subreaper: %w", err)
	}
	if err := forbidCores(); err != nil {
		return fmt.Errorf("switching core dumps off: %w", err)
	}
	var hierarchies []hierarchy
	if !s.config.DisableCgroups {
		// Without a list there are no groups, and Unenforced says so.
		hierarchies, _ = findHierarchies("/")
	}
	groups, lacking := newSlotGroups(s.config, hierarchies)
	launch, more, err := startLauncher(s.config, s.workDir, groups)
	var refused *groupError
	if errors.As(err, &refused) {
		// The groups exist but accept no processes: continue without all of them.
		reason := refused.Error()
		_ = groups.remove()
		groups, lacking = newSlotGroups(s.config, nil)
		for i := range lacking {
			lacking[i].Reason += " (" + reason + ")"
		}
		launch, more, err = startLauncher(s.config, s.workDir, groups)
	}
	s.groups = groups
	if err != nil {
		return fmt.Errorf("slot %s: %w", s.config.Name, err)
	}
	s.launcher, s.baseNice = launch, launch.nice
	if s.lending, err = newLending(s.config); err != nil {
		return fmt.Errorf("slot %s: %w", s.config.Name, err)
	}
	s.lacking = append(lacking, more...)
	s.isolated = launch.space != nil
	if s.isolated {
		// Its PID namespace holds every process, also without control groups.
		s.lacking = slices.DeleteFunc(s.lacking, func(u Unenforced) bool { return u.Name == LimitTree })
	}
	return nil
}

// Show makes the slot ready for commands and lets them see directories, such as those of artifacts, instead of those of the
// last call, until the next [Sandbox.Clean]. It fails with a *[HiddenError] if a directory that they may only read lies in a
// Hidden one. While directories are shown, they must not be removed.
func (s *Sandbox) Show(dirs Shown) error {
	s.running.Lock()
	defer s.running.Unlock()
	switch {
	case s.stuck != nil:
		return s.stuck
	case s.closed:
		return nil
	}
	s.stayAwake()
	s.unused = false
	err := s.show(dirs)
	if err == nil {
		s.mayRest()
	}
	return err
}

// show is Show while the slot does not rest.
func (s *Sandbox) show(dirs Shown) error {
	var shown Shown
	var err error
	if shown.Writable, err = realPaths(dirs.Writable); err != nil {
		return err
	}
	s.outliving = nil
	for _, dir := range shown.Writable {
		s.outliving = append(s.outliving, &diskPart{dir: dir, every: outlivingInterval})
	}
	if !s.isolated {
		return nil
	}
	real, err := realPaths(dirs.ReadOnly)
	if err != nil {
		return err
	}
	i := s.config.Isolation
	resolved := Isolation{ReadOnly: s.always, Hidden: present(i.Hidden), Closed: present(i.Closed)}
	shown.ReadOnly, err = resolved.unseen(s.workDir, ownDirs, real)
	if err != nil || shown.equal(s.shown) && s.launcher.space.alive() {
		return err
	}
	s.shown = shown
	return s.refresh()
}

// realPaths resolves symbolic links.
func realPaths(paths []string) ([]string, error) {
	real := make([]string, len(paths))
	for i, path := range paths {
		var err error
		if real[i], err = filepath.EvalSymlinks(path); err != nil {
			return nil, fmt.Errorf("a directory to show to commands: %w", err)
		}
	}
	return real, nil
}

// present resolves symbolic links and leaves out what does not exist.
func present(paths []string) []string {
	var real []string
	for _, path := range paths {
		if resolved, err := filepath.EvalSymlinks(path); err == nil {
			real = append(real, resolved)
		}
	}
	return real
}

// refresh gives commands a new space. If they cannot be isolated as before, nothing runs.
func (s *Sandbox) refresh() error {
	// Shown directories may be gone: that concerns their commands, not the slot.
	s.config.Isolation.shown = Shown{ReadOnly: present(s.shown.ReadOnly), Writable: present(s.shown.Writable)}
	lacking, err := s.launcher.occupy(s.config, s.workDir, s.reapStale)
	switch {
	case errors.Is(err, ErrNotKilled):
		s.stuck = fmt.Errorf("moving the launching thread: %w", err)
		return s.stuck
	case err != nil:
		return s.replace()
	}
	return s.asBefore(lacking)
}

// replace replaces the launching thread: one that cannot leave its namespaces ends with them.
func (s *Sandbox) replace() error {
	launch, lacking, err := (*launcher)(nil), []Unenforced(nil), s.launcher.close(s.reapStale)
	if err == nil {
		launch, lacking, err = startLauncher(s.config, s.workDir, s.groups)
	}
	if err != nil {
		s.stuck = fmt.Errorf("replacing the launching thread: %w", err)
		return s.stuck
	}
	s.launcher = launch
	return s.asBefore(lacking)
}

// asBefore ends a space that lacks what the slot had before; the next command tries again.
func (s *Sandbox) asBefore(lacking []Unenforced) error {
	for _, l := range lacking {
		if !slices.ContainsFunc(s.lacking, func(u Unenforced) bool { return u.Name == l.Name }) {
			return errors.Join(fmt.Errorf("commands were isolated, and cannot be any more: %s: %s", l.Name, l.Reason), s.launcher.retire())
		}
	}
	return nil
}

// forbidCores sets the core-dump limit, which commands inherit: setting it later would leave them time to raise it. Unlike 0, a
// limit of one byte also keeps the kernel from piping the dump to a program of the machine (do_coredump in fs/coredump.c).
func forbidCores() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &limit); err != nil {
		return err
	}
	limit.Max = min(limit.Max, 1)
	limit.Cur = limit.Max
	return unix.Setrlimit(unix.RLIMIT_CORE, &limit)
}

// Name returns the slot's name.
func (s *Sandbox) Name() string { return s.config.Name }

// WorkDir returns the slot's directory with symbolic links resolved.
func (s *Sandbox) WorkDir() string { return s.workDir }

// TempDir returns the TMPDIR of commands: inside the work directory and the same for every run.
func (s *Sandbox) TempDir() string { return tempDir(s.workDir) }

// Unenforced returns the configured limits that cannot be enforced on this machine, determined when the sandbox was created.
func (s *Sandbox) Unenforced() []Unenforced { return slices.Clone(s.lacking) }

// Stuck returns why nothing can run in this slot any more, usually processes that survive being killed; else nil. It waits for a
// running command. Only a new process can use the slot again, once they are gone.
func (s *Sandbox) Stuck() error {
	s.running.Lock()
	defer s.running.Unlock()
	return s.stuck
}

// Close releases the slot: it kills remaining processes, ends the launching thread and removes the control groups. The work
// directory stays. It waits for a running command; cancel its context first.
func (s *Sandbox) Close() error {
	s.running.Lock()
	defer s.running.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.stayAwake()
	defer func() {
		for _, file := range []*os.File{s.null, s.lock} {
			if file != nil {
				file.Close()
			}
		}
	}()
	if s.stuck != nil {
		return s.stuck // the launcher still waits for a process
	}
	var err error
	if s.launcher != nil {
		ctx, cancel := context.WithTimeout(context.Background(), killBound)
		defer cancel()
		_, err = s.sweep(ctx)
		err = errors.Join(err, s.launcher.close(s.reapStale))
	}
	if s.groups != nil {
		err = errors.Join(err, s.groups.remove())
	}
	return err
}
