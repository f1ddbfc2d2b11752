//go:build linux || darwin

package jobrun

import "golang.org/x/sys/unix"

// freeBytes returns the free space of a directory's file system.
func freeBytes(dir string) (bytes uint64, known bool) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, false
	}
	return uint64(stat.Bavail) * uint64(stat.Bsize), true
}
