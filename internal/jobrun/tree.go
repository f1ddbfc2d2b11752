package jobrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Owner is the user that commands run as, and the owner of everything they may
// change.
type Owner struct{ UID, GID int }

// copier copies directory trees. Copies are writable for their owner, even if
// the original is not, and keep modification times, from which build tools tell
// which files are out of date. Symbolic links stay links; sockets, pipes and
// devices are left out.
type copier struct {
	owner *Owner
	// link lists directories, relative to the tree's root, whose files are hard
	// linked instead of copied.
	link []string
}

// tree copies the directory from to the directory to. Files that exist in to
// are replaced, never written through, so that neither a link's target nor a
// hard-linked original changes.
func (c copier) tree(ctx context.Context, from, to string) error {
	return c.dir(ctx, from, to, ".")
}

func (c copier) dir(ctx context.Context, from, to, rel string) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("copying %s: it is not a directory", from)
	}
	if err := makeDir(to); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		source, target := filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())
		if entry.IsDir() {
			err = c.dir(ctx, source, target, filepath.Join(rel, entry.Name()))
		} else {
			err = c.file(source, target, c.linked(rel))
		}
		if err != nil {
			return err
		}
	}
	return c.finish(to, info)
}

func (c copier) linked(rel string) bool {
	return slices.ContainsFunc(c.link, func(dir string) bool {
		return rel == dir || dir == "." || strings.HasPrefix(rel, dir+string(filepath.Separator))
	})
}

// file copies or links one entry that is not a directory.
func (c copier) file(from, to string, link bool) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		if err := replacing(to, func() error { return os.Symlink(target, to) }); err != nil {
			return err
		}
		return c.give(to)
	case !mode.IsRegular():
		return nil
	case link && replacing(to, func() error { return os.Link(from, to) }) == nil:
		return nil // same inode: owner, mode and times are already right
	}
	if err := replacing(to, func() error { return copyContents(from, to) }); err != nil {
		return err
	}
	return c.finish(to, info)
}

// finish gives a copy the owner, mode and modification time of its original.
func (c copier) finish(path string, original fs.FileInfo) error {
	if err := c.give(path); err != nil {
		return err
	}
	mode := original.Mode().Perm() | 0o600
	if original.IsDir() {
		mode |= 0o700
	}
	if err := os.Chmod(path, mode); err != nil {
		return err
	}
	return os.Chtimes(path, original.ModTime(), original.ModTime())
}

func (c copier) give(path string) error {
	if c.owner == nil {
		return nil
	}
	return os.Lchown(path, c.owner.UID, c.owner.GID)
}

// copyContents leaves copying to the kernel, so that blocks are shared where
// the file system can.
func copyContents(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(target, source); err != nil {
		return errors.Join(err, target.Close())
	}
	return target.Close()
}

// replacing removes what exists at path and calls create, which must refuse to
// touch anything that exists.
func replacing(path string, create func() error) error {
	err := create()
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := removeTree(path); err != nil {
		return err
	}
	return create()
}

// makeDir creates a directory unless there is one, replacing anything else.
func makeDir(path string) error {
	err := os.Mkdir(path, 0o700)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		return nil
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	return os.Mkdir(path, 0o700)
}

// removeTree deletes a file or directory, including read-only directories such
// as those of Go's module cache. It succeeds if there is nothing to delete.
func removeTree(path string) error {
	err := os.RemoveAll(path)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	walkErr := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		// This is called before the directory is read.
		if entry != nil && entry.IsDir() && err == nil {
			return os.Chmod(name, 0o700)
		}
		return err
	})
	if walkErr != nil {
		return fmt.Errorf("deleting %s: %w", path, walkErr)
	}
	return os.RemoveAll(path)
}
