package pages

import (
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	// pictureOf matches the pictures that the documentation shows, by name and look.
	pictureOf = regexp.MustCompile(`\(images/pages/([a-z-]+)-(wide|narrow|dark)\.png\)`)
	// headingOf matches the heading above the pictures of a page, with its address.
	headingOf = regexp.MustCompile("(?m)^### .*: `(/[^`]*)`$")
)

// Each picture is there in both sizes, and each that is there is shown.
func TestEachPageHasItsPictures(t *testing.T) {
	t.Parallel()
	shown := make(map[string][]string)
	for _, picture := range pictureOf.FindAllStringSubmatch(documentation(t), -1) {
		shown[picture[1]] = append(shown[picture[1]], picture[2])
	}
	require.NotEmpty(t, shown)
	for _, one := range (&Pages{}).pages() {
		require.True(t, slices.ContainsFunc(headingOf.FindAllStringSubmatch(documentation(t), -1), func(heading []string) bool {
			return placeholder.ReplaceAllString(heading[1], "{}") == placeholder.ReplaceAllString(one.pattern, "{}")
		}), "docs/pages.md has no picture of %s", one.pattern)
	}
	var files []string
	for name, looks := range shown {
		require.Contains(t, looks, "wide", name)
		require.Contains(t, looks, "narrow", name)
		for _, look := range looks {
			files = append(files, name+"-"+look+".png")
		}
	}
	stored, err := filepath.Glob("../../docs/images/pages/*.png")
	require.NoError(t, err)
	for i, file := range stored {
		stored[i] = filepath.Base(file)
	}
	require.ElementsMatch(t, files, stored, "take them with: go test ./internal/e2e/pages -run TestLongTypicalPages -update")
}
