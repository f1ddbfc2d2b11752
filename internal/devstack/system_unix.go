//go:build linux || darwin

package devstack

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// supported returns nil if this system can run a stand-alone installation, else the
// reason.
func supported() error { return nil }

// signalProcess sends a signal to one process.
func signalProcess(pid int, sig syscall.Signal) error { return unix.Kill(pid, sig) }

// killGroup kills what is left of a process group.
func killGroup(pgid int) { _ = unix.Kill(-pgid, unix.SIGKILL) }

// ownerOf returns the owner of a file.
func ownerOf(info os.FileInfo) (uid, gid int) {
	stat := info.Sys().(*syscall.Stat_t)
	return int(stat.Uid), int(stat.Gid)
}
