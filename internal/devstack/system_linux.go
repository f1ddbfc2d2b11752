package devstack

import (
	"bytes"
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

// startOn starts the child on the given CPUs. The caller's goroutine must be
// locked to its thread: the child inherits the thread's CPUs.
func startOn(cpus []int, cmd *exec.Cmd) error {
	if len(cpus) == 0 {
		return cmd.Start()
	}
	var before, wanted unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("reading the CPUs of this process: %w", err)
	}
	for _, cpu := range cpus {
		wanted.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &wanted); err != nil {
		return fmt.Errorf("choosing CPUs %v: %w", cpus, err)
	}
	err := cmd.Start()
	if restore := unix.SchedSetaffinity(0, &before); err == nil && restore != nil {
		// Later children would silently run on this child's CPUs.
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return fmt.Errorf("going back to all CPUs: %w", restore)
	}
	return err
}

// waitUnreaped returns when the child has ended, but leaves its number taken,
// so that its group can still be named.
func waitUnreaped(pid int) {
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}
