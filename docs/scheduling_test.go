// Package docs_test keeps what the documentation promises in agreement with the
// tree.
package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every requirement of the scheduling specification has one row in
// docs/scheduling.md, and every test that the page names exists.
func TestEachRequirementIsShownByATest(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("scheduling.md")
	require.NoError(t, err)
	tests := testsOf(t, "..")
	testName := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)`")
	for _, named := range testName.FindAllStringSubmatch(string(text), -1) {
		require.True(t, tests[named[1]], "docs/scheduling.md names %s, which does not exist", named[1])
	}
	shown := make(map[string]bool)
	row := regexp.MustCompile(`^\| (C[A-Z]-[0-9]+) \|`)
	for line := range strings.Lines(string(text)) {
		id := row.FindStringSubmatch(line)
		if id == nil {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		require.Len(t, cells, 4, line)
		require.False(t, shown[id[1]], "%s has two rows", id[1])
		require.Regexp(t, testName, cells[3], "%s names no test", id[1])
		shown[id[1]] = true
	}
	for group, last := range map[string]int{"CQ": 9, "CM": 11, "CC": 7, "CD": 4} {
		for i := range last {
			id := fmt.Sprintf("%s-%d", group, i+1)
			require.True(t, shown[id], "%s has no row", id)
			delete(shown, id)
		}
	}
	require.Empty(t, shown, "no such requirement")
}

// testsOf lists the names of all tests below a directory.
func testsOf(t *testing.T, root string) map[string]bool {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9_]+)\(`)
	names := make(map[string]bool)
	for _, path := range filesBelow(t, root, "_test.go") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			names[string(m[1])] = true
		}
	}
	return names
}

// filesBelow lists the files below a directory whose names end in a suffix. It leaves out
// test data, what was built, and hidden directories.
func filesBelow(t *testing.T, root, suffix string) []string {
	t.Helper()
	var files []string
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin" || d.Name() == "testdata" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, suffix):
			files = append(files, path)
		}
		return nil
	}))
	return files
}
