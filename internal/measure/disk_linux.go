package measure

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// diskUsage returns the space that the files below a directory occupy, in bytes: allocated blocks, each hard-linked file
// once, without other file systems mounted below. Files that vanish during the walk do not count.
func diskUsage(ctx context.Context, dir string) (int64, error) {
	type inode struct{ device, number uint64 }
	linked := map[inode]bool{}
	var root uint64
	var total int64
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			var info fs.FileInfo
			if info, err = entry.Info(); err == nil {
				stat := info.Sys().(*syscall.Stat_t)
				id := inode{uint64(stat.Dev), stat.Ino}
				switch {
				case path == dir:
					root = id.device
				case id.device != root && entry.IsDir():
					return fs.SkipDir
				}
				if stat.Nlink > 1 && !entry.IsDir() {
					if linked[id] {
						return nil
					}
					linked[id] = true
				}
				total += stat.Blocks * 512 // stat(2): units of 512 bytes, whatever the block size
				return nil
			}
		}
		if path != dir && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)) {
			if entry != nil && entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("measuring the size of %s: %w", dir, err)
	}
	return total, nil
}

// diskFree returns the free space of a directory's file system, in bytes.
func diskFree(dir string) (int64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, fmt.Errorf("reading the free space of %s: %w", dir, err)
	}
	return int64(stat.Bfree) * int64(stat.Bsize), nil
}
