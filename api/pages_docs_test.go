package api_test

import (
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
)

var (
	// pageRow matches a row of the table of pages: address, words, parameters.
	pageRow = regexp.MustCompile("(?m)^\\| `(/[^`]*)` \\|[^|]*\\|([^|]*)\\|$")
	// parameterValues matches a parameter with the values that it may have.
	parameterValues = regexp.MustCompile("`([a-z]+)` \\(([^)]*)\\)")
)

// A page that is given a value that it does not know names those that the documentation
// lists, in the same order.
func TestPagesKnowTheDocumentedValues(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	b.register(t, "c1")
	r, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"true"}}})
	require.NoError(t, err)
	detail, err := b.writer.Request(t.Context(), string(r.ID))
	require.NoError(t, err)
	fill := strings.NewReplacer("{p}", "go", "{r}", string(r.ID), "{g}", string(r.ID), "{c}", "c1", "{j}", string(detail.Jobs[0].Key))
	text, err := os.ReadFile("../docs/pages.md")
	require.NoError(t, err)
	checked := 0
	for _, row := range pageRow.FindAllStringSubmatch(string(text), -1) {
		for _, parameter := range parameterValues.FindAllStringSubmatch(row[2], -1) {
			values := strings.ReplaceAll(parameter[2], "`", "")
			refused := b.page(t, "", fill.Replace(row[1])+"?"+url.Values{parameter[1]: {"none-such"}}.Encode())
			require.Equal(t, http.StatusBadRequest, refused.status, "%s: %s", row[1], parameter[1])
			require.Contains(t, refused.text(), values, "%s: %s", row[1], parameter[1])
			checked++
		}
	}
	require.GreaterOrEqual(t, checked, 10)
}
