package badinput_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each case in testdata/life.txt has a test, here or in the package where it can be
// tested more directly.
func TestLifeCasesHaveTests(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "life.txt"))
	require.NoError(t, err)
	asked := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		what, where, ok := strings.Cut(line, ": ")
		require.True(t, ok, "%q is not 'what: where'", line)
		require.NotContains(t, asked, what, "it is listed twice")
		asked[what] = where
		file, test, inGo := strings.Cut(where, "#")
		source, err := os.ReadFile(filepath.FromSlash(file))
		require.NoError(t, err, what)
		if inGo {
			require.Contains(t, string(source), "func "+test+"(t *testing.T)", "%s: %s has no such test", what, file)
		} else {
			require.Equal(t, ".txtar", filepath.Ext(file), what)
		}
	}
	require.Len(t, asked, 12)
}
