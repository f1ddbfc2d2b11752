//go:build linux || darwin

package diskspace

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Of returns the room on the file system of a directory that is left to processes without special rights.
func Of(dir string) (Space, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return Space{}, fmt.Errorf("reading the free space of %s: %w", dir, err)
	}
	unit := int64(stat.Bsize)
	return Space{
		Size: int64(stat.Blocks) * unit, Free: int64(stat.Bavail) * unit, Files: int64(stat.Files), FreeFiles: int64(stat.Ffree),
	}, nil
}
