//go:build unix

package machine

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// readAt reads once, unlike [os.File.ReadAt], which goes on until it has been told that there is no more. It returns 0 there.
func readAt(file *os.File, to []byte, at int64) (int, error) {
	for {
		n, err := unix.Pread(int(file.Fd()), to, at)
		if !errors.Is(err, unix.EINTR) {
			return max(n, 0), err
		}
	}
}
