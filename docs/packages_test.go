package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A reader finds each package in the list of the README and in the picture of
// docs/architecture.md.
func TestEveryPackageIsListedAndDrawn(t *testing.T) {
	t.Parallel()
	listed, drawn := listedPackages(t), drawnPackages(t)
	folders, err := os.ReadDir(filepath.Join("..", "internal"))
	require.NoError(t, err)
	for _, f := range folders {
		if !f.IsDir() || f.Name() == "e2e" { // tests, which no package imports
			continue
		}
		require.True(t, listed["internal/"+f.Name()], "README.md does not list internal/%s", f.Name())
		require.True(t, drawn[f.Name()], "docs/architecture.md does not draw internal/%s", f.Name())
	}
	for name := range listed {
		require.DirExists(t, filepath.Join("..", filepath.FromSlash(name)), "README.md lists it")
	}
}

// listedPackages reads the table of packages in the README.
func listedPackages(t *testing.T) map[string]bool {
	t.Helper()
	listed := make(map[string]bool)
	for line := range strings.Lines(section(t, filepath.Join("..", "README.md"), "\n## Packages\n", "\n## ")) {
		folders, _, row := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if !row || !strings.HasPrefix(folders, "`") {
			continue
		}
		for name := range strings.SplitSeq(folders, ", ") {
			listed[strings.Trim(name, "`")] = true
		}
	}
	return listed
}

// drawnPackages reads the picture of packages, with and without the folder internal.
func drawnPackages(t *testing.T) map[string]bool {
	t.Helper()
	drawn := make(map[string]bool)
	for name := range strings.FieldsSeq(section(t, "architecture.md", "\n## Packages\n", "\n* ")) {
		drawn[strings.TrimPrefix(name, "internal/")] = true
	}
	return drawn
}

// section returns the part of a document between two texts.
func section(t *testing.T, path, from, to string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), from)
	require.True(t, found, "%s has no %q", path, from)
	rest, _, found = strings.Cut(rest, to)
	require.True(t, found, "%s has no %q after it", path, to)
	return rest
}
