package jobrun

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/benchloom/benchloom/internal/suite"
)

// errOutside reports a path that a suite's own step must not touch.
var errOutside = errors.New("outside the directories that a step may use")

// places holds the directories of one subject while its block is measured. This
// process carries out file steps and may have more privileges than the commands
// that ran before, so it resolves every path first. The result must lie below one
// of these directories as they were before any command ran.
type places struct {
	paths suite.Paths
	// real holds the directories with symbolic links resolved, by their names
	// in paths.
	real map[string]string
}

// newPlaces resolves the directories, which must exist.
func newPlaces(paths suite.Paths) (places, error) {
	p := places{paths: paths, real: map[string]string{}}
	for _, dir := range []string{paths.Suite, paths.Artifact, paths.Prepared, paths.Work, paths.Cache} {
		if dir == "" {
			continue
		}
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return places{}, fmt.Errorf("resolving a directory of the job: %w", err)
		}
		p.real[dir] = real
	}
	return p, nil
}

// writable resolves a path that a file step changes.
func (p places) writable(path string) (string, error) {
	return p.inside(path, "write below ${prepared}, ${work} or ${cache}", p.paths.Prepared, p.paths.Work, p.paths.Cache)
}

// readable resolves a path that a file step reads.
func (p places) readable(path string) (string, error) {
	return p.inside(path, "read below ${suite}, ${artifact}, ${prepared}, ${work} or ${cache}",
		p.paths.Suite, p.paths.Artifact, p.paths.Prepared, p.paths.Work, p.paths.Cache)
}

// inside resolves the directory of path, as far as it exists, and checks that
// the result is one of the roots or below it. The last element is not followed.
func (p places) inside(path, rule string, roots ...string) (string, error) {
	path = filepath.Clean(path)
	for _, root := range roots {
		if root == "" || !within(path, root) {
			continue
		}
		now, err := filepath.EvalSymlinks(root)
		if err != nil || now != p.real[root] {
			return "", fmt.Errorf("%s is %w; an earlier command removed or replaced %s", path, errOutside, root)
		}
		if path == filepath.Clean(root) {
			return now, nil
		}
		real, err := resolveParent(path)
		if err != nil {
			return "", err
		}
		for _, root := range roots {
			if real != p.real[root] && within(real, p.real[root]) {
				return real, nil
			}
		}
	}
	return "", fmt.Errorf("%s is %w; %s", path, errOutside, rule)
}

// within reports whether path is root or below it. Both are absolute; nothing
// is within an empty root.
func within(path, root string) bool {
	if root == "" || !filepath.IsAbs(path) {
		return false
	}
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}

// resolveParent resolves all symbolic links of a path except in its last
// element. Directories that do not exist yet are left as written.
func resolveParent(path string) (string, error) {
	missing := []string{filepath.Base(path)}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); err == nil {
			real, err := filepath.EvalSymlinks(dir)
			if err != nil {
				return "", err
			}
			return filepath.Join(append([]string{real}, missing...)...), nil
		} else if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return "", err
		}
		missing = append([]string{filepath.Base(dir)}, missing...)
	}
}
