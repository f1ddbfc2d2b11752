package machine

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kept is a file that stays open. Its descriptor is kept: [os.File.Fd] may make two system calls.
type kept struct {
	*os.File
	fd int
	// kernel is set if the kernel itself makes the content, so that reading waits for nobody.
	kernel bool
}

func keep(file *os.File) *kept {
	k := &kept{File: file, fd: int(file.Fd())}
	var system unix.Statfs_t
	if unix.Fstatfs(k.fd, &system) == nil {
		switch int64(system.Type) {
		case unix.PROC_SUPER_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC:
			k.kernel = true
		}
	}
	return k
}

// readAt reads once, unlike [os.File.ReadAt], which goes on until it is told that there is no more. At the end it returns 0.
//
// Files made by the kernel are read without telling Go's scheduler, which would wake the runtime's monitor thread for each sample. Other
// files may take long: those of sensors, and /proc where a process serves it (lxcfs).
func (k *kept) readAt(to []byte, at int64) (int, error) {
	for {
		read := unix.Pread
		if k.kernel {
			read = readKernel
		}
		n, err := read(k.fd, to, at)
		if !errors.Is(err, unix.EINTR) {
			return max(n, 0), err
		}
	}
}

func readKernel(fd int, to []byte, at int64) (int, error) {
	if len(to) == 0 {
		return 0, nil
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_PREAD64, uintptr(fd), uintptr(unsafe.Pointer(&to[0])), uintptr(len(to)), uintptr(at), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
