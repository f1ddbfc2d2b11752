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

// maxCacheDirs bounds how many cache directories a collector reports.
const maxCacheDirs = 1000

// CacheDirs names the directories below a cache root, two levels deep, sorted, at
// most 1,000: those of the first level before those of the second. A root that is
// not there has none. Names that nobody could ask for are left out.
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

// directories names some directories in a directory. One that is gone or closed
// to us has none.
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

// cacheReport tells the API of changed cache directories, once.
type cacheReport struct {
	root     string
	reported []string
}

// changed are the cache directories where they differ from what was reported last;
// nil where they do not, or cannot be read now.
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

// delivered remembers what has been reported.
func (r *cacheReport) delivered(dirs *[]string) {
	if dirs != nil {
		r.reported = *dirs
	}
}
