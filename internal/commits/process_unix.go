//go:build unix

package commits

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// own gives a command a process group of its own, which is killed as a whole: git
// has children that talk to the network.
func own(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
}
