package collection

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
)

// files are the operations of a file system on which the spool's durability rests; disk
// implements them. They are called under no lock, one block at a time.
type files interface {
	// WriteTemp makes the contents of a new file durable, and returns its path.
	WriteTemp(dir string, contents []byte) (path string, err error)
	Rename(from, to string) error
	// SyncDir makes the names in a directory durable.
	SyncDir(dir string) error
}

// tempPrefix begins the names of files that are being written.
const tempPrefix = "writing-"

// disk is the file system of this machine.
type disk struct{}

func (disk) WriteTemp(dir string, contents []byte) (_ string, err error) {
	f, err := os.CreateTemp(dir, tempPrefix+"*")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignore(f.Close(), fs.ErrClosed), os.Remove(f.Name()))
		}
	}()
	if _, err := f.Write(contents); err != nil {
		return "", err
	}
	if err := f.Sync(); err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

func (disk) Rename(from, to string) error { return os.Rename(from, to) }

func (disk) SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // directories cannot be opened for that, and NTFS journals names
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("syncing the directory %s: %w", dir, err)
	}
	return nil
}

func ignore(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}
