package devstack

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// startIdentity tells a process from an earlier or later one with the same
// number: the boot and the start time in clock ticks since then (field 22 of
// proc(5) stat).
func startIdentity(pid int) (string, error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return "", fmt.Errorf("reading the start time of process %d: %w", pid, err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("reading the boot's identity: %w", err)
	}
	// The second field is the command in parentheses, which may hold anything.
	_, rest, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	fields := strings.Fields(string(rest))
	if len(fields) < 20 {
		return "", fmt.Errorf("reading the start time of process %d: unexpected format %q", pid, stat)
	}
	if fields[0] == "Z" {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return strings.TrimSpace(string(boot)) + "/" + fields[19], nil
}

// workingDir returns a process's working directory, if this process may see it.
func workingDir(pid int) (string, error) {
	return os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
}

// processAttributes puts a child into a group of its own and lets the kernel
// signal it when the thread that forked it ends.
func processAttributes(account account, death syscall.Signal) (*syscall.SysProcAttr, error) {
	attributes := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: death}
	switch account.kind {
	case accountSwitched:
		attributes.Credential = &syscall.Credential{Uid: uint32(account.uid), Gid: uint32(account.gid)}
	case accountMapped:
		attributes.Cloneflags = syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: account.uid, HostID: os.Geteuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: account.gid, HostID: os.Getegid(), Size: 1}}
	}
	return attributes, nil
}

// canMapAccounts is set because Linux has user namespaces. Whether this process may
// create one shows only when it tries.
const canMapAccounts = true

// startAs starts the child with the given scheduling. The caller's goroutine must be
// locked to its thread, whose scheduling the child inherits.
func startAs(scheduling Scheduling, cmd *exec.Cmd) error {
	restore, err := scheduling.ofThread()
	if err != nil {
		return err
	}
	err = cmd.Start()
	if failed := restore(); err == nil && failed != nil {
		// Later children would silently be scheduled as this child.
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return failed
	}
	return err
}

// ofThread gives the calling thread this scheduling, or none of it with an error. The function
// that it returns takes it back.
func (s Scheduling) ofThread() (restore func() error, err error) {
	cpus, err := s.onCPUs()
	if err != nil {
		return nil, err
	}
	batch, slack := s.inBatch(), s.withSlack()
	return func() error { return errors.Join(slack(), batch(), cpus()) }, nil
}

func unchanged() error { return nil }

func (s Scheduling) onCPUs() (undo func() error, err error) {
	if len(s.CPUs) == 0 {
		return unchanged, nil
	}
	var before, wanted unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, fmt.Errorf("reading the CPUs of this process: %w", err)
	}
	for _, cpu := range s.CPUs {
		wanted.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &wanted); err != nil {
		return nil, fmt.Errorf("choosing CPUs %v: %w", s.CPUs, err)
	}
	return func() error {
		if err := unix.SchedSetaffinity(0, &before); err != nil {
			return fmt.Errorf("going back to all CPUs: %w", err)
		}
		return nil
	}, nil
}

// inBatch changes nothing where a container refuses to.
func (s Scheduling) inBatch() (undo func() error) {
	before, err := unix.SchedGetAttr(0, 0)
	if !s.Batch || err != nil || before.Policy != unix.SCHED_NORMAL { // another one was chosen for all processes
		return unchanged
	}
	batch := *before
	batch.Policy = unix.SCHED_BATCH
	if unix.SchedSetAttr(0, &batch, 0) != nil {
		return unchanged
	}
	return func() error {
		if err := unix.SchedSetAttr(0, before, 0); err != nil {
			return fmt.Errorf("going back to the usual scheduling policy: %w", err)
		}
		return nil
	}
}

// withSlack changes nothing where a container refuses to.
func (s Scheduling) withSlack() (undo func() error) {
	before, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if s.TimerSlack == 0 || err != nil || unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(s.TimerSlack.Nanoseconds()), 0, 0, 0) != nil {
		return unchanged
	}
	return func() error {
		if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(before), 0, 0, 0); err != nil {
			return fmt.Errorf("going back to the usual timer slack: %w", err)
		}
		return nil
	}
}

// waitUnreaped returns when the child has ended, but leaves its number taken,
// so that its group can still be named.
func waitUnreaped(pid int) {
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}
