//go:build unix

package measure

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// emptyDir removes everything in a directory, however deeply nested: it moves the subdirectories of a directory up before it
// removes that directory, so that neither the length of paths nor the number of open files limits it. It follows no symbolic
// link. No process may change the directory meanwhile.
func emptyDir(dir string) error {
	top, err := openDir(unix.AT_FDCWD, dir)
	if err != nil {
		return fmt.Errorf("emptying %s: %w", dir, err)
	}
	defer top.Close()
	moved := 0
	for {
		// Names that flatten gives are free: a directory that has one of them is emptied like others, and the number only grows.
		dirs, err := unlinkFiles(top)
		if err != nil {
			return fmt.Errorf("emptying %s: %w", dir, err)
		}
		if len(dirs) == 0 {
			return nil
		}
		for _, name := range dirs {
			if err := flatten(top, name, &moved); err != nil {
				return fmt.Errorf("emptying %s: %w", dir, err)
			}
		}
	}
}

// RemoveTree removes a directory like [os.RemoveAll], however deeply its contents are nested. No process may change it
// meanwhile.
func RemoveTree(dir string) error {
	if err := emptyDir(dir); err != nil {
		return err
	}
	return os.Remove(dir)
}

// flatten moves the subdirectories of a directory in top up to top, and removes the directory with all its files.
func flatten(top *os.File, name string, moved *int) error {
	at := int(top.Fd())
	// Commands may have locked out the account that they share with the collector.
	if err := unix.Fchmodat(at, name, 0o700, 0); err != nil {
		return &fs.PathError{Op: "chmod", Path: name, Err: err}
	}
	dir, err := openDir(at, name)
	if err != nil {
		return err
	}
	defer dir.Close()
	below, err := unlinkFiles(dir)
	if err != nil {
		return err
	}
	for _, child := range below {
		// Only accounts that may write to a directory can move it.
		_ = unix.Fchmodat(int(dir.Fd()), child, 0o700, 0)
		for {
			*moved++
			err := unix.Renameat(int(dir.Fd()), child, at, ".benchloom-"+strconv.Itoa(*moved))
			if err == nil {
				break
			}
			if !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.ENOTDIR) {
				return &fs.PathError{Op: "rename", Path: child, Err: err}
			}
		}
	}
	if err := unix.Unlinkat(at, name, unix.AT_REMOVEDIR); err != nil {
		return &fs.PathError{Op: "rmdir", Path: name, Err: err}
	}
	return nil
}

func openDir(at int, name string) (*os.File, error) {
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// unlinkFiles removes everything but directories, and returns the names of these.
func unlinkFiles(dir *os.File) (dirs []string, err error) {
	if _, err := dir.Seek(0, 0); err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		err := unix.Unlinkat(int(dir.Fd()), name, 0)
		switch {
		case err == nil:
		case errors.Is(err, unix.EISDIR), errors.Is(err, unix.EPERM): // POSIX: EPERM for a directory
			dirs = append(dirs, name)
		default:
			return nil, &fs.PathError{Op: "unlink", Path: name, Err: err}
		}
	}
	return dirs, nil
}
