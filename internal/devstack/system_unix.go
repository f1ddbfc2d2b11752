//go:build linux || darwin

package devstack

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// supported tells why this system cannot run a stand-alone installation; nil: it
// can.
func supported() error { return nil }

// signalProcess sends a signal to one process.
func signalProcess(pid int, sig syscall.Signal) error { return unix.Kill(pid, sig) }

// killGroup kills what is left of a process group.
func killGroup(pgid int) { _ = unix.Kill(-pgid, unix.SIGKILL) }

// ownerOf returns who owns a file.
func ownerOf(info os.FileInfo) (uid, gid int) {
	stat := info.Sys().(*syscall.Stat_t)
	return int(stat.Uid), int(stat.Gid)
}
