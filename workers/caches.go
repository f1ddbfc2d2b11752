package workers

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
)

// maxCacheDirs limits the number of cache directories that a collector reports.
const maxCacheDirs = 1000

// CacheDirs returns the directories below a cache root, two levels deep,
// sorted, at most 1,000: those of the first level before those of the second. A
// missing root has none. Names that jobs cannot request are left out.
func CacheDirs(root string) ([]string, error) {
	first, err := directories(root, maxCacheDirs)
	if err != nil {
		return nil, err
	}
	all := slices.Clone(first)
	for _, name := range first {
		if len(all) >= maxCacheDirs {
			break
		}
		second, err := directories(filepath.Join(root, name), maxCacheDirs-len(all))
		if err != nil {
			return nil, err
		}
		for _, s := range second {
			all = append(all, name+"/"+s)
		}
	}
	all = slices.DeleteFunc(all, func(d string) bool { return bench.CheckCacheDir(d) != nil })
	slices.Sort(all)
	return all, nil
}

// directories returns at most most directories in a directory; none if it is
// missing or unreadable.
func directories(dir string, most int) ([]string, error) {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for cache directories: %w", err)
	}
	defer f.Close()
	entries, err := f.ReadDir(most)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("looking for cache directories in %s: %w", dir, err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// cacheReport reports changed cache directories to the API, once.
type cacheReport struct {
	root     string
	reported []string
}

// changed returns the cache directories if they differ from the last report;
// nil if they do not or cannot be read.
func (r *cacheReport) changed() *[]string {
	if r.root == "" {
		return nil
	}
	found, err := CacheDirs(r.root)
	if err != nil || slices.Equal(found, r.reported) {
		return nil
	}
	return &found
}

// delivered records the reported directories.
func (r *cacheReport) delivered(dirs *[]string) {
	if dirs != nil {
		r.reported = *dirs
	}
}
