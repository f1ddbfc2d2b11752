package devstack

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// startIdentity tells a process from an earlier or later one with the same
// number: its start time.
func startIdentity(pid int) (string, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return "", fmt.Errorf("reading the start time of process %d: %w", pid, err)
	}
	started := info.Proc.P_starttime
	return fmt.Sprintf("%d.%06d", started.Sec, started.Usec), nil
}

// workingDir cannot be read without cgo here.
func workingDir(int) (string, error) {
	return "", fmt.Errorf("reading a process's working directory: %w", errors.ErrUnsupported)
}

// processAttributes puts a child into a group of its own. The kernel has no
// signal for a parent's death: children of a killed supervisor end when the
// next one starts.
func processAttributes(account account, _ syscall.Signal) (*syscall.SysProcAttr, error) {
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if account.kind == accountSwitched {
		attributes.Credential = &syscall.Credential{Uid: uint32(account.uid), Gid: uint32(account.gid)}
	}
	return attributes, nil
}

// canMapAccounts is false because macOS has no user namespaces.
const canMapAccounts = false

func startAs(scheduling Scheduling, cmd *exec.Cmd) error {
	if len(scheduling.CPUs) > 0 {
		return fmt.Errorf("choosing CPUs %v: %w on this system", scheduling.CPUs, errors.ErrUnsupported)
	}
	return cmd.Start()
}

// waitUnreaped has no counterpart here; the group is named after the child was
// reaped, within microseconds.
func waitUnreaped(int) {}
