package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/definitions"
)

// A newcomer who copies the files of graphs.md has a folder that is valid and makes what
// the text says.
func TestTheDefinitionsOfTheGuideAreValid(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("graphs.md")
	require.NoError(t, err)
	files := fstest.MapFS{}
	for _, found := range regexp.MustCompile("(?s)\n`definitions/([a-z/.]+)`[^\n]*\n\n```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		files[found[1]] = &fstest.MapFile{Data: []byte(found[2])}
	}
	require.Len(t, files, 3)
	folder, err := definitions.Read(files)
	require.NoError(t, err)
	tried, err := folder.Check(t.Context())
	require.NoError(t, err)
	require.Len(t, tried, 3)
	nodes := map[string]int{}
	for _, one := range tried {
		nodes[one.Branch] = one.Nodes
	}
	require.Equal(t, map[string]int{"main": 9, "release/*": 9, "try": 6}, nodes)
}

// Each requirement on graphs has one row, and each test that a row names exists.
func TestTheRequirementsOnGraphsNameTheirTests(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("graphs.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "\n## Requirements and tests\n")
	require.True(t, found)
	var tests strings.Builder
	for _, dir := range []string{"api", "internal/graph", "internal/graphset", "internal/definitions", "internal/plan", "internal/store", "internal/waittime", "internal/e2e", "internal/e2e/pages", "activities/orchestration", "internal/jobrun"} {
		list, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(dir), "*_test.go"))
		require.NoError(t, err)
		for _, name := range list {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			tests.Write(text)
		}
	}
	for _, name := range regexp.MustCompile("`((?:Test|Benchmark)[A-Za-z]+)`").FindAllStringSubmatch(table, -1) {
		require.Positive(t, strings.Count(tests.String(), "func "+name[1]+"("), "there is no %s", name[1])
	}
	rows := 0
	for line := range strings.Lines(table) {
		if ids, _, isRow := strings.Cut(strings.TrimPrefix(line, "| "), " | "); isRow && strings.HasPrefix(ids, "L") {
			rows += len(strings.Split(ids, ", "))
		}
	}
	require.Equal(t, 9+5+5+6+1+3+6, rows, "LO, LR, LP, LT, LC, LM and LS")
}
