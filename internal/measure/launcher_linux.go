package measure

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// addrNoRandomize is ADDR_NO_RANDOMIZE of personality(2).
const addrNoRandomize = 0x0040000

// launcher is one operating-system thread from which all commands of a sandbox start. They inherit its attributes: version 1
// control groups, CPU affinity, personality, priority and performance counters. So no helper program is needed between
// collector and command. The thread never returns to the Go runtime; it ends with the launcher.
type launcher struct {
	work chan func()
	gone chan struct{}
	// space is where the thread and its children are; nil is the machine itself.
	space *space
	// nice is the thread's priority, perf its open counters, and networked tells whether it has the machine's network; only
	// work on the launcher uses them.
	nice      int
	perf      *perfCounters
	networks  map[bool]*os.File
	networked bool
}

// startLauncher starts the thread with its affinity, groups and namespaces, and returns what of these is lacking.
func startLauncher(config SandboxConfig, workDir string, groups *slotGroups) (*launcher, []Unenforced, error) {
	l := &launcher{work: make(chan func()), gone: make(chan struct{}), networked: true}
	type outcome struct {
		lacking []Unenforced
		err     error
	}
	ready := make(chan outcome)
	var live func()
	live = func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// Do not use the main thread: it represents the whole process in a control group and must not end. While this
			// goroutine is locked to it, the next one gets another.
			done := make(chan struct{})
			go func() { defer close(done); live() }()
			<-done
			runtime.UnlockOSThread()
			return
		}
		defer close(l.gone)
		lacking, err := l.prepare(config, workDir, groups)
		ready <- outcome{lacking, err}
		if err == nil {
			for do := range l.work {
				do()
			}
		}
		l.perf.close()
		closeAll(l.networks)
		groups.leave()
		// Returning without unlocking ends the thread.
	}
	go live()
	got := <-ready
	if got.err != nil {
		<-l.gone
		return nil, nil, errors.Join(got.err, l.space.retire(nothing))
	}
	return l, got.lacking, nil
}

// prepare restricts the calling thread.
func (l *launcher) prepare(config SandboxConfig, workDir string, groups *slotGroups) (lacking []Unenforced, err error) {
	if !config.Isolation.Off {
		// First, as the init process must inherit nothing of the following.
		l.space, lacking = newSpace(newView(config, workDir))
	}
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
	if l.nice, err = currentNice(); err != nil {
		return nil, err
	}
	if config.Isolation.Off {
		return lacking, nil
	}
	if l.space != nil {
		if l.networks, err = l.space.enter(); err != nil {
			return nil, err
		}
	}
	return append(lacking, dropPrivileges(config.User != nil)...), nil
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

// close ends the thread and its space and returns once it has left its groups.
func (l *launcher) close(reap func() error) error {
	close(l.work)
	<-l.gone
	return l.space.retire(reap)
}

// nothing is for spaces in which no command has run.
func nothing() error { return nil }
