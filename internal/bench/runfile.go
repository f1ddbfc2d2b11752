package bench

import (
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// Bounds of the files that a run keeps.
const (
	// MaxRunFiles bounds their number, MaxRunFile the size of one in bytes.
	MaxRunFiles = 100
	MaxRunFile  = 64 << 20
	// maxRunFilePath bounds the length of a path in bytes.
	maxRunFilePath = 500
)

// RunFile is a file that a run keeps: one that a command of a graph names in its uploads.
type RunFile struct {
	// Path is relative to the job's directory, with slashes.
	Path string
	// Digest is the SHA-256 of the content, in hexadecimal.
	Digest    string
	Size      int64 // in bytes
	CreatedAt time.Time
}

// CheckRunFilePath refuses a path that does not stay within the job's directory.
func CheckRunFilePath(path string) error {
	if !fs.ValidPath(path) || path == "." || len(path) > maxRunFilePath || strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }) {
		return invalid("path", path, fmt.Sprintf("write a path within the job's directory, with slashes, of at most %d bytes", maxRunFilePath))
	}
	return nil
}
