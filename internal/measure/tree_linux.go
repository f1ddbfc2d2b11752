package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// killBound limits the time in which none of the killed processes disappears.
	killBound = 5 * time.Second
	// killLimit limits the time until all of them have: thousands take a while on a loaded machine.
	killLimit = time.Minute
)

// waning tells when the wait for killed processes is in vain.
type waning struct {
	begun, since time.Time
	least        int
}

// over reports whether to give up with this many processes left.
func (w *waning) over(left int, now time.Time) bool {
	if w.begun.IsZero() {
		w.begun, w.since, w.least = now, now, left
	}
	if left < w.least {
		w.since, w.least = now, left
	}
	return now.Sub(w.since) > killBound || now.Sub(w.begun) > killLimit
}

// tree tracks all processes that one command started. The collector is a child subreaper, so each of them is always a
// descendant of the command's main process or of a process that the collector has adopted.
type tree struct {
	groups  *slotGroups
	space   *space // nil without
	workDir string
	main    int
	// seen holds all members ever listed.
	seen map[int]process
	// orphans is the usage of members that the space's init process has reaped.
	orphans unix.Rusage
}

func (t *tree) add(answer initAnswer) { t.orphans = sumUsage(t.orphans, answer.Usage) }

// living returns the members that have not ended.
func (t *tree) living() ([]process, error) {
	all, err := listProcesses()
	if err != nil {
		return nil, err
	}
	var found []process
	if t.space != nil {
		for pid, p := range all {
			if !p.dead() && t.space.contains(pid) {
				found = append(found, p)
			}
		}
	} else {
		// A process that has left the control group is still a descendant.
		found = t.descendants(all)
		pids, err := t.groups.members()
		if err != nil {
			return nil, err
		}
		for _, pid := range pids {
			if p, ok := readProcess(pid); ok && !p.dead() && !slices.ContainsFunc(found, func(q process) bool { return q.pid == pid }) {
				found = append(found, p)
			}
		}
	}
	for _, p := range found {
		t.seen[p.pid] = p
	}
	return found, nil
}

// descendants finds the members by their parents.
func (t *tree) descendants(all map[int]process) []process {
	self := os.Getpid()
	children := map[int][]int{}
	var next []int
	for pid, p := range all {
		children[p.parent] = append(children[p.parent], pid)
		if p.parent == self && !p.dead() && (pid == t.main || p.session == t.main || t.wasSeen(p) || hasMark(pid, t.workDir)) {
			next = append(next, pid)
		}
	}
	var found []process
	for len(next) > 0 {
		pid := next[0]
		next = append(next[1:], children[pid]...)
		if p := all[pid]; !p.dead() {
			found = append(found, p)
		}
	}
	return found
}

func (t *tree) wasSeen(p process) bool {
	earlier, ok := t.seen[p.pid]
	return ok && earlier.start == p.start
}

// left returns the number of members alive after the main process has ended and was reaped.
func (t *tree) left() (int, error) {
	if t.space != nil {
		answer, err := t.space.settle()
		t.add(answer)
		return answer.Left, err
	}
	// Looking for survivors means reading all of /proc: skip it when there can be none. By now they are descendants
	// of the collector.
	if !hasChild() {
		return 0, nil
	}
	living, err := t.living()
	return len(living), err
}

// kill kills all members and returns once none is alive, or [ErrNotKilled].
func (t *tree) kill() error {
	var patience waning
	if _, err := t.living(); err != nil { // remember them, to reap what is adopted
		return err
	}
	t.groups.strike()
	defer t.groups.calm()
	if t.space != nil {
		// Kill all together before killing them one by one. If this fails, the init process has ended, and they with it.
		answer, _ := t.space.kill()
		t.add(answer)
	}
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		living, err := t.living()
		if err != nil {
			return err
		}
		for _, p := range living {
			p.kill()
		}
		left := stillAlive(t.seen)
		if len(living) == 0 && len(left) == 0 {
			return nil
		}
		if patience.over(len(left), time.Now()) {
			return fmt.Errorf("%w: %v", ErrNotKilled, left)
		}
		time.Sleep(wait)
	}
}

// stillAlive returns the IDs of processes that have not ended. A dying process has left its group and given up its
// environment some time before.
func stillAlive(processes map[int]process) []int {
	var left []int
	for pid, p := range processes {
		if now, ok := readProcess(pid); ok && now.start == p.start && !now.dead() {
			left = append(left, pid)
		}
	}
	return left
}

// reap waits for the dead members that the collector has adopted and passes their usage to add. Children that other parts of
// the collector started are left to them.
func (t *tree) reap(add func(process, *unix.Rusage)) error {
	if !hasDeadChild() {
		return nil
	}
	all, err := listProcesses()
	if err != nil {
		return err
	}
	self := os.Getpid()
	for pid, p := range all {
		if p.parent != self || !p.dead() || pid == t.main {
			continue
		}
		inSession := t.main != 0 && p.session == t.main
		if !inSession && !t.wasSeen(p) && !t.groups.contains(pid) && !t.space.contains(pid) {
			continue
		}
		var usage unix.Rusage
		if got, err := wait4(pid, unix.WNOHANG, &usage); err == nil && got.pid == pid {
			add(p, &usage)
		}
	}
	return nil
}

// hasDeadChild reports whether the calling process has a dead child, without reaping it.
func hasDeadChild() bool {
	var info unix.Siginfo
	err := ignoringEINTR(func() error {
		return unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	})
	return err == nil && info.Signo != 0
}

// hasChild reports whether the calling process has any child, dead or alive.
func hasChild() bool {
	err := ignoringEINTR(func() error {
		return unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	})
	return !errors.Is(err, unix.ECHILD)
}

type waited struct {
	pid    int
	status unix.WaitStatus
}

func wait4(pid, options int, usage *unix.Rusage) (waited, error) {
	var got waited
	err := ignoringEINTR(func() (err error) {
		got.pid, err = unix.Wait4(pid, &got.status, options, usage)
		return err
	})
	return got, err
}

func ignoringEINTR(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Sweep kills processes that an earlier, killed collector left in this slot: those in the slot's control groups, and those
// whose TMPDIR is in the slot's work directory. It touches nothing else, waits until they are dead and returns their number.
// It returns ErrNotKilled or the context's error if some survive.
func (s *Sandbox) Sweep(ctx context.Context) (int, error) {
	if !s.running.TryLock() {
		return 0, ErrRunning
	}
	defer s.running.Unlock()
	if s.closed {
		return 0, os.ErrClosed
	}
	s.stayAwake()
	s.swept, s.unused = false, false
	return s.sweep(ctx)
}

// Clean ends everything that commands have left: their processes, the temporary file systems that only they saw, and all
// files in the work directory, that of TempDir included; and hides what [Sandbox.Show] showed. The next command starts in an
// empty slot, and sees the machine as it is then, or was up to a second before. With [SandboxConfig.Lend], the slot's CPUs are
// lent to this process. It returns [ErrNotKilled] if processes survive, [ErrRunning], or why a file cannot be removed.
func (s *Sandbox) Clean(ctx context.Context) error {
	if !s.running.TryLock() {
		return ErrRunning
	}
	defer s.running.Unlock()
	switch {
	case s.closed:
		return os.ErrClosed
	case s.stuck != nil:
		return s.stuck
	}
	s.stayAwake()
	err := s.clean(ctx)
	if err == nil {
		s.mayRest()
	}
	return err
}

// clean is Clean while the slot does not rest.
func (s *Sandbox) clean(ctx context.Context) error {
	if !s.unused {
		if err := s.endAll(ctx); err != nil {
			return err
		}
	}
	if err := s.lend(); err != nil {
		return err
	}
	// The caller may have left files here even if no command has run.
	if err := emptyDir(s.workDir); err != nil {
		return err
	}
	return makeTempDir(s.workDir, s.config.User, false)
}

// endAll ends what commands have left and their space, and hides what is shown.
func (s *Sandbox) endAll(ctx context.Context) error {
	if err := s.sweepBounded(ctx); err != nil {
		return err
	}
	last := s.config.Isolation.shown
	s.shown, s.config.Isolation.shown, s.outliving = Shown{}, Shown{}, nil
	var likely *view
	if last.equal(Shown{}) { // commands follow commands, and most of them are shown nothing
		v := newView(s.config, s.workDir)
		likely = &v
	}
	if err := s.lend(); err != nil { // the space ahead starts there
		return err
	}
	// Even if nothing has run in the space: it shows what was mounted, and hides what existed, when it was arranged.
	err := s.launcher.vacate(likely, s.reapStale)
	if err != nil && !errors.Is(err, ErrNotKilled) {
		if err = s.replace(); err == nil {
			err = s.launcher.vacate(likely, s.reapStale)
		}
	}
	if err != nil {
		s.stuck = fmt.Errorf("ending the space of commands: %w", err)
		return s.stuck
	}
	s.unused = true
	return nil
}

// sweepBounded is sweep limited to the time that killed processes may take to end; after that the slot is stuck.
func (s *Sandbox) sweepBounded(ctx context.Context) error {
	bounded, stop := context.WithTimeout(ctx, killLimit)
	defer stop()
	_, err := s.sweep(bounded)
	if errors.Is(err, ErrNotKilled) && ctx.Err() == nil {
		s.stuck = err
	}
	return err
}

func (s *Sandbox) sweep(ctx context.Context) (int, error) {
	killed := map[int]process{}
	leftovers := func() (found []process, err error) {
		// The space holds all processes of the slot's own commands. Looking at those of the machine,
		// twice for each job, costs more than a short command.
		if !s.isolated || !s.swept {
			if found, err = s.marked(); err != nil {
				return nil, err
			}
		}
		pids, err := s.groups.members()
		if err != nil {
			return nil, err
		}
		for _, pid := range pids {
			if p, ok := readProcess(pid); ok && !p.dead() {
				found = append(found, p)
			}
		}
		return found, nil
	}
	defer s.groups.calm()
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		found, err := leftovers()
		if err != nil {
			return len(killed), fmt.Errorf("sweeping slot %s: %w", s.config.Name, err)
		}
		if len(found) == 0 && len(stillAlive(killed)) == 0 {
			s.swept = true
			return len(killed), s.reapStale()
		}
		if len(killed) == 0 {
			s.groups.strike()
		}
		for _, p := range found {
			p.kill()
			killed[p.pid] = p
		}
		select {
		case <-ctx.Done():
			return len(killed), fmt.Errorf("sweeping slot %s: %w: %w", s.config.Name, ErrNotKilled, ctx.Err())
		case <-time.After(wait):
		}
	}
}

// marked returns the living processes that carry the slot's mark, except the collector and its ancestors.
func (s *Sandbox) marked() ([]process, error) {
	all, err := listProcesses()
	if err != nil {
		return nil, err
	}
	above := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && !above[pid]; pid = all[pid].parent {
		above[pid] = true
	}
	var found []process
	for pid, p := range all {
		if !above[pid] && !p.dead() && hasMark(pid, s.workDir) {
			found = append(found, p)
		}
	}
	return found, nil
}

// reapStale waits for adopted processes of earlier runs, so that no later sample counts them.
func (s *Sandbox) reapStale() error {
	t := &tree{groups: s.groups, workDir: s.workDir, seen: map[int]process{}}
	if s.launcher != nil {
		t.space = s.launcher.space
	}
	return t.reap(func(process, *unix.Rusage) {})
}
