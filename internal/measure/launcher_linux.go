package measure

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// addrNoRandomize is ADDR_NO_RANDOMIZE of personality(2).
const addrNoRandomize = 0x0040000

// launcher is one operating-system thread from which all commands of a sandbox start. They inherit its attributes: version 1
// control groups, CPU affinity, personality, priority and performance counters. So no helper program is needed between
// collector and command. The thread moves from space to space, as entering control groups again would take the kernel longer
// than all the rest: each move waits for a grace period of RCU (cgroup_threadgroup_rwsem in kernel/cgroup/cgroup.c).
type launcher struct {
	*thread
	// nursery is the thread that init processes start from. It is not restricted in any way, so they inherit nothing from the
	// launcher.
	nursery *thread
	// space holds the launcher and its children; nil is the machine itself.
	space *space
	// ahead is the next space, started early because its init process takes longer than the rest. It may be nil.
	ahead *space
	// nice is the thread's priority, perf its open counters, and networked tells whether it has the machine's network; only
	// work on the launcher uses them.
	nice      int
	perf      *perfCounters
	networks  map[bool]*os.File
	networked bool
}

// thread is an operating-system thread that runs functions, one at a time. It never returns to the Go runtime.
type thread struct {
	work chan func()
	gone chan struct{}
	// tid is its number.
	tid int
}

// startThread starts a thread, which first calls begin to prepare itself, and end before it ends. If begin fails, the thread
// ends.
func startThread(begin func() error, end func()) (*thread, error) {
	t := &thread{work: make(chan func()), gone: make(chan struct{})}
	ready := make(chan error)
	var live func()
	live = func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// Do not use the main thread: it represents the whole process in a control group and must not end. While this
			// goroutine is locked to it, the next goroutine gets another thread.
			done := make(chan struct{})
			go func() { defer close(done); live() }()
			<-done
			runtime.UnlockOSThread()
			return
		}
		defer close(t.gone)
		t.tid = unix.Gettid()
		err := begin()
		ready <- err
		if err == nil {
			for do := range t.work {
				do()
			}
		}
		end()
		// Returning without unlocking ends the thread.
	}
	go live()
	err := <-ready
	if err != nil {
		<-t.gone
	}
	return t, err
}

// do runs a function on the thread and waits for it.
func (t *thread) do(f func()) {
	done := make(chan struct{})
	t.work <- func() { defer close(done); f() }
	<-done
}

// close ends the thread.
func (t *thread) close() {
	close(t.work)
	<-t.gone
}

// startLauncher starts the thread with its affinity and groups, moves it to a space, and returns what is lacking.
func startLauncher(config SandboxConfig, workDir string, groups *slotGroups) (*launcher, []Unenforced, error) {
	l := &launcher{networked: true}
	nursery, err := startThread(func() error { return nil }, func() {})
	if err != nil {
		return nil, nil, err
	}
	l.nursery = nursery
	var lacking []Unenforced
	l.thread, err = startThread(
		func() (err error) { lacking, err = l.prepare(config, groups); return err },
		func() {
			l.perf.close()
			closeAll(l.networks)
			groups.leave()
		})
	if err != nil {
		nursery.close()
		return nil, nil, err
	}
	more, err := l.occupy(config, workDir, nothing)
	if err != nil {
		return nil, nil, errors.Join(err, l.close(nothing))
	}
	return l, append(lacking, more...), nil
}

// prepare restricts the calling thread.
func (l *launcher) prepare(config SandboxConfig, groups *slotGroups) (lacking []Unenforced, err error) {
	if err := groups.enter(); err != nil {
		return nil, &groupError{err}
	}
	if err := pin(config.CPUs); err != nil {
		return nil, err
	}
	if err := disableASLR(); err != nil {
		lacking = append(lacking, Unenforced{Name: LimitASLR, Reason: fmt.Sprintf(
			"addresses stay random: personality(ADDR_NO_RANDOMIZE) is refused, probably by a seccomp filter (container): %v", err)})
	}
	if err := resetTimerSlack(); err != nil {
		return nil, err
	}
	l.nice, err = currentNice()
	return lacking, err
}

// resetTimerSlack gives programs started by the calling thread the timer slack that all have by default: 50 µs, see prctl(2). That
// of the collector, which they would inherit, would make their sleeps longer.
func resetTimerSlack() error {
	const usual = 50 * time.Microsecond
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(usual.Nanoseconds()), 0, 0, 0); err != nil {
		return fmt.Errorf("setting the timer slack of commands: %w", err)
	}
	return nil
}

// occupy ends the launcher's space, moves the launcher to a new one and returns what the new one lacks. It passes reap to
// [space.retire]. After an error the launcher must not start commands.
func (l *launcher) occupy(config SandboxConfig, workDir string, reap func() error) (lacking []Unenforced, err error) {
	if config.Isolation.Off {
		return nil, nil
	}
	if err := l.space.retire(reap); err != nil {
		return nil, err
	}
	var way doors
	l.nursery.do(func() {
		if l.space, lacking = l.nextSpace(newView(config, workDir)); l.space != nil {
			way, err = l.space.doors()
		}
	})
	if err != nil {
		return nil, errors.Join(err, l.retire())
	}
	l.do(func() {
		// Pin again: kernels forget the affinity when a CPU goes offline for a while.
		if err = pin(config.CPUs); err != nil {
			way.close()
			return
		}
		if l.space != nil {
			if err = l.move(way); err != nil {
				return
			}
		}
		lacking = append(lacking, dropPrivileges(config.User != nil)...)
	})
	if err != nil {
		return nil, errors.Join(err, l.retire())
	}
	return lacking, nil
}

// pin binds the calling thread to CPUs; none means all.
func pin(cpus CPUList) error {
	if len(cpus) == 0 {
		return nil
	}
	set := unix.NewCPUSet(maxCPU + 1)
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	err := unix.SchedSetaffinityDynamic(0, set)
	if err == nil {
		// The kernel silently leaves out CPUs that it does not have or that are offline.
		got := unix.NewCPUSet(maxCPU + 1)
		if err = unix.SchedGetaffinityDynamic(0, got); err == nil && got.Count() != len(cpus) {
			err = errors.New("some of them do not exist, are offline or belong to another control group")
		}
	}
	if err != nil {
		return fmt.Errorf("pinning to CPUs %s: %w", cpus, err)
	}
	return nil
}

// groupError reports that the thread could not enter the control groups.
type groupError struct{ err error }

func (e *groupError) Error() string { return "entering the control groups: " + e.err.Error() }
func (e *groupError) Unwrap() error { return e.err }

// disableASLR turns off address space randomisation for programs started by the calling thread.
func disableASLR() error {
	const query = 0xffffffff
	persona, _, errno := unix.Syscall(unix.SYS_PERSONALITY, query, 0, 0)
	if errno == 0 {
		_, _, errno = unix.Syscall(unix.SYS_PERSONALITY, persona|addrNoRandomize, 0, 0)
	}
	if errno != 0 {
		return errno
	}
	return nil
}

// currentNice returns the calling thread's priority. The system call returns 20-nice, which is never negative.
func currentNice() (int, error) {
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return 0, fmt.Errorf("reading the scheduling priority: %w", err)
	}
	return 20 - raw, nil
}

// renice sets the calling thread's priority.
func (l *launcher) renice(nice int) error {
	if nice == l.nice {
		return nil
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, nice); err != nil {
		return err
	}
	l.nice = nice
	return nil
}

// counting returns the thread's counters, ready for the next command. Counters that the last command did not use are opened,
// and those of the last command closed first: the CPU might lack the registers for both.
func (l *launcher) counting(counters []Counter) (*perfCounters, error) {
	if l.perf == nil || !slices.Equal(l.perf.wanted, counters) {
		l.perf.close()
		l.perf = openPerfCounters(counters)
	}
	return l.perf, l.perf.begin()
}

// nextSpace arranges the space ahead, or a new one if that one does not suit. It runs on the nursery's thread.
func (l *launcher) nextSpace(v view) (*space, []Unenforced) {
	next := l.ahead
	l.ahead = nil
	if next == nil {
		return newSpace(v)
	}
	if next.suits(v) {
		if lacking, err := next.arrange(v); err == nil {
			return next, lacking
		}
	}
	if err := next.retire(nothing); err != nil {
		return nil, lackAll(err.Error())
	}
	return newSpace(v)
}

// renewAhead replaces a space ahead that was arranged for a job that did not come, and so shows the machine of that time. If this
// fails, the next job finds out.
func (l *launcher) renewAhead() {
	if l.ahead == nil || l.ahead.early == nil || l.ahead.retire(nothing) != nil {
		return
	}
	kinds := l.ahead.usable
	l.nursery.do(func() { l.ahead, _ = startSpace(kinds) })
}

// vacate ends the space, if there is one, moves the thread back to the machine, so that nothing of the space is left, and starts
// the next space. If likely is not nil, it also has the next space arranged for that view, without waiting for it.
func (l *launcher) vacate(likely *view, reap func() error) error {
	if l.space == nil {
		return nil
	}
	if err := l.space.retire(reap); err != nil {
		return err
	}
	kinds := l.space.usable
	l.space = nil
	var way doors
	var err error
	l.nursery.do(func() {
		if way, err = openDoors("thread-self", kinds); err == nil && l.ahead == nil {
			// If this fails, the next space starts when it is needed.
			if likely != nil {
				l.ahead, _ = startAhead(kinds, *likely)
			} else {
				l.ahead, _ = startSpace(kinds)
			}
		}
	})
	if err != nil {
		return err
	}
	l.do(func() { err = l.move(way) })
	return err
}

// move moves the thread through open doors, which it closes. The network stays the machine's.
func (l *launcher) move(way doors) error {
	if err := l.connect(true); err != nil {
		way.close()
		return err
	}
	closeAll(l.networks)
	l.networks, way.networks = way.networks, nil
	defer way.close()
	return way.enter()
}

// connect gives the thread the machine's network, or that of its space.
func (l *launcher) connect(network bool) error {
	if l.networks == nil || l.networked == network {
		return nil
	}
	if err := unix.Setns(int(l.networks[network].Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("changing the network of commands: %w", err)
	}
	l.networked = network
	return nil
}

// retire ends a space in which no command has run.
func (l *launcher) retire() error { return l.space.retire(nothing) }

// close ends the threads and the spaces and returns once the launcher has left its groups.
func (l *launcher) close(reap func() error) error {
	l.thread.close()
	err := errors.Join(l.space.retire(reap), l.ahead.retire(nothing))
	l.nursery.close()
	return err
}

// nothing reaps spaces in which no command has run.
func nothing() error { return nil }
