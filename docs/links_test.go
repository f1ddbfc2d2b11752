package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A link to another document leads to a file that exists, and to an anchor that it has.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	var broken []string
	checked := 0
	for _, path := range filesBelow(t, "..", ".md") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, link := range relativeLinks(string(text)) {
			checked++
			name, anchor, _ := strings.Cut(link, "#")
			target := filepath.Join(filepath.Dir(path), filepath.FromSlash(name))
			if name == "" {
				target = path
			}
			if _, err := os.Stat(target); err != nil {
				broken = append(broken, path+": "+link+": no such file")
				continue
			}
			if anchor == "" {
				continue
			}
			text, err := os.ReadFile(target)
			require.NoError(t, err)
			if !anchors(string(text))[anchor] {
				broken = append(broken, path+": "+link+": no such anchor")
			}
		}
	}
	require.Empty(t, broken)
	require.Greater(t, checked, 100)
}

var (
	fenced   = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	mdLink   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.*?)\s*$`)
	anchorID = regexp.MustCompile(`<a id="([^"]+)">`)
	noAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// relativeLinks lists the links of a document within the repository, without those in code blocks.
func relativeLinks(markdown string) []string {
	var links []string
	for _, found := range mdLink.FindAllStringSubmatch(fenced.ReplaceAllString(markdown, ""), -1) {
		if !strings.Contains(found[1], ":") {
			links = append(links, found[1])
		}
	}
	return links
}

// anchors returns the anchors of a document: those that it names, and those that forges derive from its headings.
func anchors(markdown string) map[string]bool {
	all := make(map[string]bool)
	for _, found := range anchorID.FindAllStringSubmatch(markdown, -1) {
		all[found[1]] = true
	}
	for _, found := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(markdown, ""), -1) {
		all[strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(found[1]), ""), " ", "-")] = true
	}
	return all
}

func TestRelativeLinks(t *testing.T) {
	t.Parallel()
	const markdown = "# A b: `c`, d\n[one](x.md#y) [two](https://example.org) [three](#a-b-c-d)\n```\n[no](z.md)\n# no\n```\n<a id=\"here\"></a>\n"
	require.Equal(t, []string{"x.md#y", "#a-b-c-d"}, relativeLinks(markdown))
	require.Equal(t, map[string]bool{"a-b-c-d": true, "here": true}, anchors(markdown))
}
