package collection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchloom/benchloom/internal/diskspace"
)

const (
	// cacheClosed and cacheOpen are the modes of a project's caches between and during its jobs if commands run under a
	// separate account, since they may not be able to have separate mounts as well.
	cacheClosed os.FileMode = 0o700
	cacheOpen   os.FileMode = 0o711
)

// openCache returns the directory of a project's suite that outlives jobs. Commands can enter its parent directory only until
// closeCache is called: two projects may have suites of the same name and do not trust each other.
func (c *Collector) openCache(project, suite string) (dir string, closeCache func(), err error) {
	own := filepath.Join(c.CacheDir, project)
	c.caches.grow(filepath.Join(own, suite))
	if err := os.MkdirAll(own, cacheClosed); err != nil {
		return "", nil, fmt.Errorf("making the caches of project %s: %w", project, err)
	}
	if c.Machine.Owner == nil {
		return filepath.Join(own, suite), func() {}, nil
	}
	if err := os.Chmod(own, cacheOpen); err != nil {
		return "", nil, fmt.Errorf("opening the caches of project %s: %w", project, err)
	}
	return filepath.Join(own, suite), func() {
		if err := os.Chmod(own, cacheClosed); err != nil {
			c.Log.Warn("the caches of a project stay open to commands", "project", project, "error", err)
		}
	}, nil
}

// cacheSizes remembers the sizes of caches, since walking through large ones takes a while.
type cacheSizes struct {
	mu    sync.Mutex
	known map[string]diskspace.Usage
	// grown is the directory of the last job, not measured since.
	grown string
}

func (s *cacheSizes) grow(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grown = dir
}

// tidy removes caches after a job that has used one.
func (c *Collector) tidy(ctx context.Context) {
	c.caches.mu.Lock()
	used := c.caches.grown != ""
	c.caches.mu.Unlock()
	if !used {
		return
	}
	removed, err := c.BoundCaches(context.WithoutCancel(ctx))
	if len(removed) > 0 {
		c.Log.WarnContext(ctx, "removed caches: together they held more than they may", "directories", removed, "bytes", c.CacheLimit.Bytes, "files", c.CacheLimit.Files)
	}
	if err != nil {
		c.Log.WarnContext(ctx, "caches stay larger than they may be", "error", err)
	}
}

// cacheEntry is the directory of a suite in CacheDir.
type cacheEntry struct {
	dir  string
	used time.Time
	size diskspace.Usage
}

// BoundCaches removes caches until the rest is within CacheLimit, unless a job runs or begins: first each cache that alone
// exceeds it, then the least recently used ones. It returns the removed paths.
func (c *Collector) BoundCaches(ctx context.Context) (removed []string, err error) {
	if c.CacheLimit == (diskspace.Usage{}) {
		return nil, nil
	}
	c.caches.mu.Lock()
	defer c.caches.mu.Unlock()
	entries, err := c.measureCaches(ctx)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, e := range exceeding(entries, c.CacheLimit) {
		gone, err := c.removeDir(ctx, e.dir, func(fs.FileInfo) bool { return true })
		if gone {
			removed = append(removed, e.dir)
			delete(c.caches.known, e.dir)
		}
		errs = append(errs, err)
	}
	return removed, errors.Join(errs...)
}

// measureCaches lists all caches. It walks through those that may have grown; c.caches.mu is held.
func (c *Collector) measureCaches(ctx context.Context) ([]cacheEntry, error) {
	projects, err := directories(c.CacheDir)
	if err != nil {
		return nil, err
	}
	if c.caches.known == nil {
		c.caches.known = make(map[string]diskspace.Usage)
	}
	delete(c.caches.known, c.caches.grown)
	c.caches.grown = ""
	now := time.Now()
	var entries []cacheEntry
	for _, project := range projects {
		suites, err := directories(project)
		if err != nil {
			return nil, err
		}
		for _, dir := range suites {
			info, err := os.Stat(dir)
			if err != nil {
				continue // removed meanwhile
			}
			e := cacheEntry{dir: dir, used: info.ModTime()}
			if e.used.After(now) || strings.HasPrefix(filepath.Base(dir), removedPrefix) {
				e.used = time.Time{} // commands may set it
			}
			size, known := c.caches.known[dir]
			if !known {
				if size, err = diskspace.Measure(ctx, dir, time.Time{}); ctx.Err() != nil {
					return nil, err
				}
				if err != nil {
					size = c.CacheLimit.Exceeded() // so deep, or so strange, that it cannot be measured
				}
				c.caches.known[dir] = size
			}
			e.size = size
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// exceeding returns the caches to remove.
func exceeding(entries []cacheEntry, limit diskspace.Usage) []cacheEntry {
	var remove, rest []cacheEntry
	var total diskspace.Usage
	for _, e := range entries {
		if e.size.Exceeds(limit) {
			remove = append(remove, e)
			continue
		}
		rest, total = append(rest, e), total.Plus(e.size)
	}
	slices.SortFunc(rest, func(a, b cacheEntry) int { return cmp.Or(a.used.Compare(b.used), strings.Compare(a.dir, b.dir)) })
	for _, e := range rest {
		if !total.Exceeds(limit) {
			break
		}
		remove, total = append(remove, e), total.Minus(e.size)
	}
	return remove
}
