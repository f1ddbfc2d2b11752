package collection

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/measure"
)

// removedPrefix marks directories that are being removed; no suite has such a name.
const removedPrefix = ".removed-"

// use records that a job uses a directory of the cache or of the suites. A failure only
// causes the directory to be removed early, and made again.
func use(dir string) {
	now := time.Now()
	_ = os.Chtimes(dir, now, now)
}

// RemoveUnused removes cache directories and files of suites that no job of this collector
// has used since, unless a job runs or begins. It returns the paths removed. What an
// earlier call did not finish is removed, too.
func (c *Collector) RemoveUnused(ctx context.Context, since time.Time) (removed []string, err error) {
	projects, err := directories(c.CacheDir)
	errs := []error{err}
	for _, root := range append(projects, c.Suites.dir) {
		found, err := unusedDirs(root, since)
		errs = append(errs, err)
		for _, dir := range found {
			gone, err := c.removeDir(ctx, dir, func(info fs.FileInfo) bool { return info.ModTime().Before(since) })
			if gone {
				removed = append(removed, dir)
			}
			errs = append(errs, err)
		}
	}
	if c.using.TryLock() { // else a job may be making a cache in one of them
		for _, dir := range projects {
			_ = os.Remove(dir) // unless it still has caches
		}
		c.using.Unlock()
	}
	return removed, errors.Join(errs...)
}

// removeDir removes a directory for which still reports true. A job waits only while the
// directory is renamed.
func (c *Collector) removeDir(ctx context.Context, dir string, still func(fs.FileInfo) bool) (removed bool, err error) {
	if ctx.Err() != nil || !c.using.TryLock() {
		return false, nil //nolint:nilerr // another time
	}
	aside := filepath.Join(filepath.Dir(dir), removedPrefix+strings.TrimPrefix(filepath.Base(dir), removedPrefix))
	info, err := os.Stat(dir)
	if err == nil && still(info) && aside != dir {
		err = os.Rename(dir, aside)
	}
	c.using.Unlock()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil // another collector of this machine was first
	case err != nil:
		return false, fmt.Errorf("removing an unused cache directory: %w", err)
	case !still(info):
		return false, nil
	}
	if err := measure.RemoveTree(aside); err != nil {
		return false, fmt.Errorf("removing an unused cache directory: %w", err)
	}
	return true, nil
}

// unusedDirs lists the directories in a directory that were last used before.
func unusedDirs(root string, before time.Time) ([]string, error) {
	found, err := directories(root)
	return slices.DeleteFunc(found, func(dir string) bool {
		info, err := os.Stat(dir)
		return err != nil || !info.ModTime().Before(before)
	}), err
}

// directories lists the paths of the directories in a directory, if there is one.
func directories(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for cache directories: %w", err)
	}
	var found []string
	for _, e := range entries {
		if e.IsDir() {
			found = append(found, filepath.Join(root, e.Name()))
		}
	}
	return found, nil
}
