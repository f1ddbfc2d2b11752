//go:build linux || darwin

package diskspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

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

// Measure returns what the files below a directory occupy: allocated blocks, each hard-linked file once. Only those count that were
// made or changed since a time, or up to two seconds before; the zero time counts all. Files that vanish meanwhile, and those on other file
// systems, do not count.
func Measure(ctx context.Context, dir string, since time.Time) (Usage, error) {
	type inode struct{ device, number uint64 }
	linked := make(map[inode]bool)
	var device uint64
	var total Usage
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var stat unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &stat)
		}
		if err != nil {
			if path != dir && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)) {
				return nil
			}
			return err
		}
		id := inode{uint64(stat.Dev), stat.Ino}
		if path == dir {
			device = id.device
		}
		if id.device != device && entry.IsDir() {
			return fs.SkipDir
		}
		if !entry.IsDir() && stat.Nlink > 1 {
			if linked[id] {
				return nil
			}
			linked[id] = true
		}
		// Unlike other times, that of the last change cannot be set. Kernels take it from a clock that lags behind.
		if changed, _ := stat.Ctim.Unix(); changed >= since.Unix()-1 {
			total.Bytes += stat.Blocks * 512 // stat(2): units of 512 bytes
			total.Files++
		}
		return nil
	})
	if err != nil {
		return Usage{}, fmt.Errorf("measuring the size of %s: %w", dir, err)
	}
	return total, nil
}
