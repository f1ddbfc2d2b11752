package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A comment begins with what its name is for. "X is what …" and "Xs are those of …" have to
// be read to their end, and often twice, before they say anything.
func TestCommentsBeginWithTheirPurpose(t *testing.T) {
	t.Parallel()
	var found []string
	for _, path := range filesBelow(t, "..", ".go") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			if roundabout.MatchString(line) {
				found = append(found, fmt.Sprintf("%s:%d: %s", filepath.ToSlash(path), n, strings.TrimSpace(line)))
			}
		}
	}
	require.Empty(t, found, "comments that begin with what, who, how, that, where or those of")
}

var roundabout = regexp.MustCompile(`^\s*// \w+ (is|are) (what|who|how|that|where|those of) `)

func TestRoundaboutComments(t *testing.T) {
	t.Parallel()
	for comment, refused := range map[string]bool{
		"// limit is what an account may have":         true,
		"\t// Score is that of the suspicion.":         true,
		"// ticks are those of the axis":               true,
		"// limit bounds an account's running jobs.":   false,
		"// Score of the suspicion.":                   false,
		"\treturn false // done is what callers ask":   false,
		"// errors are whatever the last attempt had.": false,
	} {
		require.Equal(t, refused, roundabout.MatchString(comment), comment)
	}
}
