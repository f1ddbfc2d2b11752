//go:build linux || darwin

package devstack

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// tryLock holds the file against other processes as long as it is open; false
// means that another one holds it.
func tryLock(file *os.File) (bool, error) {
	err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// signalProcess sends a signal to one process.
func signalProcess(pid int, sig syscall.Signal) error { return unix.Kill(pid, sig) }

// killGroup kills what is left of a process group.
func killGroup(pgid int) { _ = unix.Kill(-pgid, unix.SIGKILL) }

// ownerOf returns who owns a file.
func ownerOf(info os.FileInfo) (uid, gid int) {
	stat := info.Sys().(*syscall.Stat_t)
	return int(stat.Uid), int(stat.Gid)
}
