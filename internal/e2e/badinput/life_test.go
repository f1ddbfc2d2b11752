package badinput_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the life of a request must bear: each of the inputs that are listed has its
// test, here or where it can be asked more directly.
func TestWhatTheLifeOfARequestMustBear(t *testing.T) {
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
