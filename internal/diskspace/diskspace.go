// Package diskspace tells how much room a file system has, and whether the part that keeps the service alive is still free.
//
// It must not know whose files these are.
package diskspace

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"
)

// ShortHeader is the header of an HTTP answer that says "not ready" only because the reserve is used.
const ShortHeader = "Benchloom-Disk"

// Space is the room on a file system. Sizes are in bytes.
type Space struct {
	Size, Free int64
	// Files is the number of files that the file system can hold, FreeFiles that of those that can still be made. Both are 0 if
	// it has no such bound.
	Files, FreeFiles int64
}

// Usage of disk space by files: bytes, and the number of files and directories.
type Usage struct{ Bytes, Files int64 }

// Plus returns the sum.
func (u Usage) Plus(other Usage) Usage { return Usage{u.Bytes + other.Bytes, u.Files + other.Files} }

// Minus returns the difference.
func (u Usage) Minus(other Usage) Usage { return Usage{u.Bytes - other.Bytes, u.Files - other.Files} }

// Exceeds reports whether it is more than a limit, of which fields that are 0 limit nothing.
func (u Usage) Exceeds(limit Usage) bool {
	return limit.Bytes > 0 && u.Bytes > limit.Bytes || limit.Files > 0 && u.Files > limit.Files
}

// Exceeded returns what exceeds a limit.
func (u Usage) Exceeded() Usage { return Usage{u.Bytes + 1, u.Files + 1} }

// Used returns what all files below a directory occupy, in bytes; see [Measure].
func Used(ctx context.Context, dir string) (int64, error) {
	used, err := Measure(ctx, dir, time.Time{})
	return used.Bytes, err
}

// Reserve is the room that stays free for the service: its databases, spools and logs.
type Reserve struct {
	// Bytes is the free space to keep. 0: a twentieth of the file system, at most 2 GiB. Negative: none.
	Bytes int64
}

const (
	// share is the part of a file system that is reserved by default.
	share = 20
	// mostBytes and mostFiles bound that: more does not keep anything alive longer.
	mostBytes = 2 << 30
	mostFiles = 20_000
)

// Of returns the reserve of a file system, in bytes and in files.
func (r Reserve) Of(s Space) (bytes, files int64) {
	switch {
	case r.Bytes < 0:
		return 0, 0
	case r.Bytes > 0:
		bytes = r.Bytes
	default:
		bytes = min(s.Size/share, mostBytes)
	}
	return bytes, min(s.Files/share, mostFiles)
}

// ShortError reports a file system on which less than the reserve is free. It wraps ENOSPC.
type ShortError struct {
	Dir   string
	Space Space
	// Bytes and Files are the reserve.
	Bytes, Files int64
}

func (e *ShortError) Error() string {
	free, kept := humanize.IBytes(uint64(max(0, e.Space.Free))), humanize.IBytes(uint64(e.Bytes))
	if e.Space.Free >= e.Bytes {
		free, kept = humanize.Comma(e.Space.FreeFiles)+" files", humanize.Comma(e.Files)
	}
	return fmt.Sprintf("the file system of %s has %s left, less than the reserve of %s: free space there, or change --disk-reserve", e.Dir, free, kept)
}

// Unwrap returns ENOSPC.
func (e *ShortError) Unwrap() error { return syscall.ENOSPC }

// Check returns a *[ShortError] if less than the reserve is free.
func (r Reserve) Check(dir string, s Space) error {
	bytes, files := r.Of(s)
	if s.Free >= bytes && s.FreeFiles >= files {
		return nil
	}
	return &ShortError{Dir: dir, Space: s, Bytes: bytes, Files: files}
}

// Look returns a *[ShortError] if less than the reserve is free on the file system of dir now, and nil where that is not
// known.
func (r Reserve) Look(dir string) error {
	s, err := Of(dir)
	if err != nil {
		return nil //nolint:nilerr // not known
	}
	return r.Check(dir, s)
}
