//go:build unix

package artifact

import (
	"os"
	"syscall"
)

// openNoFollow opens a file for reading, but not through a link in its place.
func openNoFollow(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}
