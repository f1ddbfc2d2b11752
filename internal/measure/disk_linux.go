package measure

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// disk is an amount of disk space in bytes and of inodes.
type disk struct{ bytes, inodes int64 }

// reaches reports whether one of the limits is reached; 0 means no limit.
func (d disk) reaches(limit disk) bool {
	return limit.bytes > 0 && d.bytes >= limit.bytes || limit.inodes > 0 && d.inodes >= limit.inodes
}

// exceeds reports whether one of the limits is exceeded.
func (d disk) exceeds(limit disk) bool {
	return limit.bytes > 0 && d.bytes > limit.bytes || limit.inodes > 0 && d.inodes > limit.inodes
}

func (d disk) plus(other disk) disk { return disk{d.bytes + other.bytes, d.inodes + other.inodes} }

func (d disk) minus(other disk) disk { return disk{d.bytes - other.bytes, d.inodes - other.inodes} }

func (d disk) most(other disk) disk {
	return disk{max(d.bytes, other.bytes), max(d.inodes, other.inodes)}
}

// endless is the usage of a directory that is nested too deeply to be measured; sums with it stay in range.
var endless = disk{math.MaxInt64 / 4, math.MaxInt64 / 4}

// diskUsage returns what the files below a directory occupy: allocated blocks, each hard-linked file once, without other file
// systems mounted below. Files that vanish during the walk do not count. Directories nested so deeply that they have no path
// (PATH_MAX) count as endless.
func diskUsage(ctx context.Context, dir string) (disk, error) {
	type inode struct{ device, number uint64 }
	linked := map[inode]bool{}
	var root uint64
	var total disk
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
				total.inodes++
				total.bytes += stat.Blocks * 512 // stat(2): units of 512 bytes, whatever the block size
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
	if errors.Is(err, unix.ENAMETOOLONG) {
		return endless, nil
	}
	if err != nil {
		return disk{}, fmt.Errorf("measuring the size of %s: %w", dir, err)
	}
	return total, nil
}

// diskFree returns what is free in a directory's file system.
func diskFree(dir string) (disk, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return disk{}, fmt.Errorf("reading the free space of %s: %w", dir, err)
	}
	return disk{int64(stat.Bfree) * int64(stat.Bsize), int64(stat.Ffree)}, nil
}
