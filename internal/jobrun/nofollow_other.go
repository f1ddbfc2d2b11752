//go:build !unix

package jobrun

import (
	"errors"
	"io/fs"
	"os"
)

// openWithoutFollowing opens a file unless it is a link.
func openWithoutFollowing(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}
