//go:build unix

package commits

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// own puts a command into a separate process group, which is killed as a whole:
// git has children that access the network.
func own(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
}
