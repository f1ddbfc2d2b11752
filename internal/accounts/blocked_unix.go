//go:build unix

package accounts

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Blocked returns the outermost directory above path, or path itself, that the account cannot enter; "" if it can enter all.
// Access control lists are not read.
func (a Account) Blocked(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("looking whether account %s can enter %s: %w", a.Name, path, err)
	}
	blocked := ""
	for dir := real; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return "", fmt.Errorf("looking whether account %s can enter %s: %w", a.Name, path, err)
		}
		mode, stat := info.Mode().Perm(), info.Sys().(*syscall.Stat_t)
		switch {
		case stat.Uid == a.UID:
			mode >>= 6
		case stat.Gid == a.GID:
			mode >>= 3
		}
		if info.IsDir() && mode&1 == 0 {
			blocked = dir
		}
		if dir == filepath.Dir(dir) {
			return blocked, nil
		}
	}
}

// Give makes the account own a directory and everything in it, unless it owns the directory already.
func (a Account) Give(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("giving %s to account %s: %w", dir, a.Name, err)
	}
	if info.Sys().(*syscall.Stat_t).Uid == a.UID {
		return nil
	}
	// The directory itself comes last, as the mark that the rest is done.
	err = filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		return os.Lchown(path, int(a.UID), int(a.GID))
	})
	if err == nil {
		err = os.Lchown(dir, int(a.UID), int(a.GID))
	}
	if err != nil {
		return fmt.Errorf("giving %s to account %s: %w", dir, a.Name, err)
	}
	return nil
}
