//go:build unix

package jobrun

import (
	"os"
	"syscall"
)

// openWithoutFollowing opens a file unless it is a link, and does not wait for a pipe's
// other end.
func openWithoutFollowing(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}
