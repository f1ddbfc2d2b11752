//go:build unix && !linux

package machine

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// kept is a file that stays open. Its descriptor is kept: [os.File.Fd] may make two system calls.
type kept struct {
	*os.File
	fd int
}

func keep(file *os.File) *kept { return &kept{file, int(file.Fd())} }

// readAt reads once, unlike [os.File.ReadAt], which goes on until it is told that there is no more. At the end it returns 0.
func (k *kept) readAt(to []byte, at int64) (int, error) {
	for {
		n, err := unix.Pread(k.fd, to, at)
		if !errors.Is(err, unix.EINTR) {
			return max(n, 0), err
		}
	}
}
