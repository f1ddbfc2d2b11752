//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// signals asks whether a signal to the service or to another job would be allowed.
func signals(t Targets) (string, error) {
	return t.ofOthers(func(_ string, pid int) (string, error) {
		return fmt.Sprintf("process %d", pid), unix.Kill(pid, 0)
	})
}

// signalsAll kills all that it may, which is nothing but its own. As root it would be the end
// of the machine: then it does not try.
func signalsAll(_ Targets) (string, error) {
	if os.Geteuid() == 0 {
		return "root's rights, with which every process would end", nil
	}
	err := unix.Kill(-1, unix.SIGKILL)
	return "", fmt.Errorf("a signal to all reached nobody else: %w", errors.Join(err, errNothing))
}

// ptrace seizes processes, which does not stop them, and ends with the attacker.
func ptrace(t Targets) (string, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return t.ofOthers(func(_ string, pid int) (string, error) {
		if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, 0, 0, 0); errno != 0 {
			return "", errno
		}
		return fmt.Sprintf("process %d", pid), nil
	})
}

// priority raises its own, and sets that of others to what it is.
func priority(t Targets) (string, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tries := []func() (string, error){
		func() (string, error) { return "a higher priority", unix.Setpriority(unix.PRIO_PROCESS, 0, -5) },
		func() (string, error) {
			attr := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
			return "a real-time priority", unix.SchedSetAttr(0, attr, 0)
		},
		func() (string, error) {
			const self, realTime = 1, 1 << 13
			if _, _, errno := unix.Syscall(unix.SYS_IOPRIO_SET, self, 0, realTime); errno != 0 {
				return "", errno
			}
			return "a real-time priority of its input and output", nil
		},
	}
	for _, pid := range t.Processes {
		tries = append(tries, func() (string, error) {
			now, err := unix.Getpriority(unix.PRIO_PROCESS, pid)
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("the priority of process %d", pid), unix.Setpriority(unix.PRIO_PROCESS, pid, 20-now)
		})
	}
	return anyOf(tries...)
}

// affinity takes all CPUs of the machine.
func affinity(t Targets) (string, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var set unix.CPUSet
	for cpu := range 1024 {
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return "", err
	}
	set.Zero() // fewer are written than it holds
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return "", err
	}
	if set.Count() > len(t.CPUs) {
		return fmt.Sprintf("%d CPUs instead of %d", set.Count(), len(t.CPUs)), nil
	}
	return "", fmt.Errorf("it has its %d CPUs and no more", set.Count())
}

// coreDump raises the limit of core dumps, and lets a process crash.
func coreDump(_ Targets) (string, error) {
	return anyOf(
		func() (string, error) {
			return "the limit of core dumps", unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
		},
		func() (string, error) {
			command := exec.Command("/proc/self/exe", os.Args[1], crashName) //nolint:noctx // it ends by itself
			err := command.Run()
			if status, ok := command.ProcessState.Sys().(syscall.WaitStatus); ok && status.CoreDump() {
				return "a core dump", nil
			}
			return "", fmt.Errorf("a crash without a core dump: %w", err)
		},
	)
}

// crash ends by a signal, with as much of a core dump as is allowed.
func crash() {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &limit); err != nil {
		fail(err)
	}
	limit.Cur = limit.Max
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &limit); err != nil {
		fail(err)
	}
	debug.SetTraceback("crash")
	panic("a crash")
}

// These names are parts of attacks: a process that stays, one that starts such a process and ends, and one that crashes.
const (
	stayName   = "stay"
	orphanName = "orphan"
	crashName  = "crash"
)

func start(targets, name string) (*exec.Cmd, error) {
	command := exec.Command("/proc/self/exe", targets, name) //nolint:noctx // it is to outlast this process
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return command, command.Start()
}

// startStaying starts a process in a session of its own.
func startStaying(targets string) error {
	_, err := start(targets, stayName)
	return err
}

// startOrphan starts one whose parent ends.
func startOrphan(targets string) error {
	command, err := start(targets, orphanName)
	if err != nil {
		return err
	}
	return command.Wait()
}

// doubleFork leaves processes behind in every way.
func doubleFork(_ Targets) (string, error) {
	targets := os.Args[1]
	if err := errors.Join(startStaying(targets), startOrphan(targets)); err != nil {
		return "", err
	}
	return "", errors.New("two processes are left behind")
}

// forever is a system call that does not return: ppoll without descriptors and time.
func forever() {
	for {
		_, _, _ = syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}

// fork copies the process. In the copy, which has this thread only, nothing of the Go runtime
// works: it runs the function, which only makes system calls.
//
//go:noinline
func fork(child func()) syscall.Errno {
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno == 0 && pid == 0 {
		child()
	}
	return errno
}

// children ends with ten thousand children, or as many as it may have.
func children(_ Targets) (string, error) {
	debug.SetGCPercent(-1)
	runtime.LockOSThread()
	for n := range 10_000 {
		if errno := fork(forever); errno != 0 {
			return "", fmt.Errorf("%d children are left: %w", n, errno)
		}
	}
	return "", errors.New("10000 children are left")
}

// bomb counts for all processes of a fork bomb, which share it.
type bomb struct{ forks, refused atomic.Uint32 }

// forkBomb makes processes that make processes, for as long as they live.
func forkBomb(t Targets) (string, error) {
	debug.SetGCPercent(-1)
	runtime.LockOSThread()
	shared, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANON)
	if err != nil {
		return "", err
	}
	b, most := (*bomb)(unsafe.Pointer(&shared[0])), uint32(2*t.PIDs)
	pause, glance := unix.NsecToTimespec(int64(20*time.Millisecond)), unix.NsecToTimespec(int64(time.Millisecond))
	// The runtime's own sleep may need a further thread, which the bomb leaves no room for.
	sleep := func(duration *unix.Timespec) {
		_, _, _ = syscall.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(duration)), 0, 0)
	}
	var explode func()
	explode = func() {
		for b.forks.Load() < most {
			if errno := fork(explode); errno != 0 {
				b.refused.Add(1)
			} else {
				b.forks.Add(1)
			}
			sleep(&pause)
		}
		forever()
	}
	if errno := fork(explode); errno != 0 {
		return "", errno
	}
	for b.refused.Load() == 0 {
		if b.forks.Load() >= most {
			return fmt.Sprintf("%d processes", most), nil
		}
		sleep(&glance)
	}
	return "", fmt.Errorf("no more than %d processes: %w", b.forks.Load(), unix.EAGAIN)
}
