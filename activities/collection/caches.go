package collection

import (
	"fmt"
	"os"
	"path/filepath"
)

const (
	// cacheClosed and cacheOpen are the modes of a project's caches between and during its jobs, where commands have an
	// account of their own: they may not be able to have mounts of their own as well.
	cacheClosed os.FileMode = 0o700
	cacheOpen   os.FileMode = 0o711
)

// openCache returns the directory that outlives the jobs of a project's suite. It lies in one that commands enter only until
// closeCache is called: two projects may have suites of one name, and neither trusts the other.
func (c *Collector) openCache(project, suite string) (dir string, closeCache func(), err error) {
	own := filepath.Join(c.CacheDir, project)
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
