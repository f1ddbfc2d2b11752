package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	markerName   = "entry.json"
	shrinkLock   = "shrink" // name of the lock held while shrinking; distinct from entries, whose names contain a "-"
	lockFileType = ".lock"
)

// Entry describes one stored artifact.
type Entry struct {
	Request   Request   `json:"request"` // resolved
	Identity  string    `json:"identity"`
	Bytes     int64     `json:"bytes"` // sum of the sizes of its files
	FetchedAt time.Time `json:"fetched_at"`
	LastUsed  time.Time `json:"-"`
	InUse     bool      `json:"-"` // by any process; also while it is being fetched again

	name string
}

// List returns the stored artifacts, most recently used first, without those used in place.
func (c *Cache) List() ([]Entry, error) {
	entries, err := c.scan()
	if err != nil {
		return nil, err
	}
	for i, e := range entries {
		l, err := tryLock(c.lockPath(e.name), true)
		if err != nil {
			return nil, err
		}
		if l == nil {
			entries[i].InUse = true
		} else if err := l.unlock(); err != nil {
			return nil, err
		}
	}
	slices.Reverse(entries)
	return entries, nil
}

// Purge removes every stored artifact of the tag, whatever its provider, target and parameters. Artifacts in use stay and
// are returned as kept.
func (c *Cache) Purge(tag string) (removed, kept []Entry, err error) {
	entries, err := c.scan()
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if !c.hasTag(e, tag) {
			continue
		}
		ok, err := c.evict(e.name)
		if err != nil {
			return removed, kept, fmt.Errorf("purging %s: %w", e.Request, err)
		}
		if ok {
			removed = append(removed, e)
		} else {
			e.InUse = true
			kept = append(kept, e)
		}
	}
	return removed, kept, nil
}

// hasTag reports whether tag, as a person writes it, means the entry: "go1.25.3" and "1.25.3" are the same release.
func (c *Cache) hasTag(e Entry, tag string) bool {
	if e.Request.Tag == tag {
		return true
	}
	asked := e.Request
	asked.Tag = tag
	resolved, err := c.Resolve(asked)
	return err == nil && resolved.Key() == e.Request.Key()
}

// scan returns all valid entries, the least recently used first.
func (c *Cache) scan() ([]Entry, error) {
	files, err := os.ReadDir(filepath.Join(c.dir, "entries"))
	if err != nil {
		return nil, fmt.Errorf("listing artifact cache: %w", err)
	}
	var entries []Entry
	for _, file := range files {
		// An entry that cannot be read is being removed, or is damaged and will be removed by sweep or the next fetch.
		if e, err := c.readEntry(file.Name()); err == nil {
			entries = append(entries, e)
		}
	}
	slices.SortStableFunc(entries, func(a, b Entry) int { return a.LastUsed.Compare(b.LastUsed) })
	return entries, nil
}

// shrink evicts the least recently used artifacts that are not in use until the limits are met.
func (c *Cache) shrink(ctx context.Context) error {
	if c.maxBytes == 0 && c.maxEntries == 0 {
		return nil
	}
	return c.evictWhile(ctx, func(count int, bytes int64) bool {
		return c.maxEntries > 0 && count > c.maxEntries || c.maxBytes > 0 && bytes > c.maxBytes
	})
}

// evictIdle evicts every artifact that is not in use and returns the number of bytes freed.
func (c *Cache) evictIdle(ctx context.Context) (freed int64, err error) {
	first := int64(-1)
	last := int64(0)
	err = c.evictWhile(ctx, func(_ int, bytes int64) bool {
		if first < 0 {
			first = bytes
		}
		last = bytes
		return true
	})
	return first - last, err
}

// evictWhile evicts artifacts that are not in use, least recently used first, while goOn returns true. goOn is called with
// the number and size of the remaining artifacts before each eviction and at the end.
func (c *Cache) evictWhile(ctx context.Context, goOn func(count int, bytes int64) bool) (err error) {
	// Two concurrent evictions would together evict twice as much as needed. A caller that waits here may hold the lock of
	// an entry; the holder of this lock never waits for one.
	l, err := lock(ctx, c.lockPath(shrinkLock), true, func() {})
	if err != nil {
		return fmt.Errorf("shrinking artifact cache: %w", err)
	}
	defer func() { err = errors.Join(err, l.unlock()) }()
	entries, err := c.scan()
	if err != nil {
		return err
	}
	count, bytes := len(entries), int64(0)
	for _, e := range entries {
		bytes += e.Bytes
	}
	for _, e := range entries {
		if !goOn(count, bytes) {
			return nil
		}
		ok, err := c.evict(e.name)
		if err != nil {
			return fmt.Errorf("evicting %s: %w", e.Request, err)
		}
		if ok {
			count, bytes = count-1, bytes-e.Bytes
		}
	}
	goOn(count, bytes)
	return nil
}

// evict removes an entry and its files in tmp, unless it is in use or being fetched.
func (c *Cache) evict(name string) (bool, error) {
	l, err := tryLock(c.lockPath(name), true)
	if l == nil || err != nil {
		return false, err
	}
	return true, errors.Join(c.removeEntry(name), l.unlockAndRemove())
}

func (c *Cache) removeEntry(name string) error {
	work := c.tmpDir(name)
	if err := removeTree(work); err != nil {
		return err
	}
	if err := os.Rename(c.entryDir(name), work); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return removeTree(work)
}

// sweep removes leftovers of crashed processes: unfinished fetches and removals, damaged entries, locks without an entry.
func (c *Cache) sweep() error {
	leftovers := map[string]bool{}
	for _, sub := range []string{"tmp", "entries", "locks"} {
		files, err := os.ReadDir(filepath.Join(c.dir, sub))
		if err != nil {
			return err
		}
		for _, file := range files {
			name := strings.TrimSuffix(file.Name(), lockFileType)
			if _, err := c.readEntry(name); sub == "tmp" || err != nil {
				leftovers[name] = true
			}
		}
	}
	delete(leftovers, shrinkLock)
	for name := range leftovers {
		if err := c.sweepOne(name); err != nil {
			return fmt.Errorf("removing leftovers of %s: %w", name, err)
		}
	}
	return nil
}

func (c *Cache) sweepOne(name string) error {
	l, err := tryLock(c.lockPath(name), true)
	if l == nil || err != nil {
		return err
	}
	// The entry may have become valid before it was locked.
	if _, err := c.readEntry(name); err == nil {
		return errors.Join(removeTree(c.tmpDir(name)), l.unlock())
	}
	return errors.Join(c.removeEntry(name), l.unlockAndRemove())
}

// writeMarker writes the marker file durably. It is private because its parameters may contain credentials of a download.
func writeMarker(dir string, e Entry) (err error) {
	data, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(dir, markerName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Write(append(data, '\n')); err != nil {
		return err
	}
	return file.Sync()
}

func treeSize(dir string) (int64, error) {
	var total int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		total += info.Size()
		return nil
	})
	return total, err
}

// removeTree removes dir even if it contains directories without write permission.
func removeTree(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	walkErr := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return err
	})
	return errors.Join(walkErr, os.RemoveAll(dir))
}

// promote moves everything in from into dir.
func promote(from, dir string) error {
	files, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := os.Rename(filepath.Join(from, file.Name()), filepath.Join(dir, file.Name())); err != nil {
			return err
		}
	}
	return nil
}
