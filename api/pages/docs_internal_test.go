package pages

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	// rowOfPage matches a row of the table of pages: address, words, parameters.
	rowOfPage   = regexp.MustCompile("(?m)^\\| `(/[^`]*)` \\|[^|]*\\|([^|]*)\\|$")
	placeholder = regexp.MustCompile(`\{[^}]*\}`)
	// valuesOf matches the values of a parameter, codeOf names.
	valuesOf = regexp.MustCompile(`\([^)]*\)`)
	codeOf   = regexp.MustCompile("`([^`]*)`")
)

func documentation(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/pages.md")
	require.NoError(t, err)
	return string(text)
}

// The addresses and parameters that people may rely on are written down: all, and no others.
func TestTheDocumentationListsEachPageWithItsParameters(t *testing.T) {
	t.Parallel()
	text := documentation(t)
	documented := make(map[string][]string)
	for _, row := range rowOfPage.FindAllStringSubmatch(text, -1) {
		names := []string{}
		for _, name := range codeOf.FindAllStringSubmatch(valuesOf.ReplaceAllString(row[2], ""), -1) {
			names = append(names, name[1])
		}
		slices.Sort(names)
		documented[placeholder.ReplaceAllString(row[1], "{}")] = names
	}
	known := map[string][]string{signInAddress: {"next"}}
	for _, one := range (&Pages{}).pages() {
		names := append([]string{}, one.parameters...)
		slices.Sort(names)
		known[placeholder.ReplaceAllString(one.pattern, "{}")] = names
	}
	require.Equal(t, known, documented)
}
