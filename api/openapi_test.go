package api_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
)

var update = flag.Bool("update", false, "rewrite golden files")

// document is as much of an OpenAPI document as the summary shows.
type document struct {
	OpenAPI string `json:"openapi"`
	Paths   map[string]map[string]struct {
		OperationID string                `json:"operationId"`
		Summary     string                `json:"summary"`
		Description string                `json:"description"`
		Security    []map[string][]string `json:"security"`
		RequestBody struct {
			Content map[string]struct {
				Schema struct {
					Ref string `json:"$ref"`
				} `json:"schema"`
			} `json:"content"`
		} `json:"requestBody"`
		Responses map[string]struct {
			Content map[string]struct {
				Schema struct {
					Ref string `json:"$ref"`
				} `json:"schema"`
			} `json:"content"`
		} `json:"responses"`
	} `json:"paths"`
	Components struct {
		Schemas map[string]any `json:"schemas"`
	} `json:"components"`
}

func TestTheOpenAPIDocument(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.send(t, "", http.MethodGet, "/openapi.json", "")
	require.Equal(t, http.StatusOK, r.status)
	var d document
	require.NoError(t, json.Unmarshal([]byte(r.body), &d))
	require.Equal(t, "3.1.0", d.OpenAPI)

	var out strings.Builder
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(d.Paths[path])) {
			op := d.Paths[path][method]
			access := "open"
			if len(op.Security) > 0 {
				_, access, _ = strings.Cut(op.Description, "Needs a token with the role ")
			}
			fmt.Fprintf(&out, "%s %s %s [%s]", strings.ToUpper(method), path, op.OperationID, strings.TrimSuffix(strings.SplitN(access, "\n", 2)[0], "."))
			for _, kind := range slices.Sorted(maps.Keys(op.RequestBody.Content)) {
				fmt.Fprintf(&out, " < %s", shape(kind, op.RequestBody.Content[kind].Schema.Ref))
			}
			for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
				for _, kind := range slices.Sorted(maps.Keys(op.Responses[status].Content)) {
					fmt.Fprintf(&out, " > %s %s", status, shape(kind, op.Responses[status].Content[kind].Schema.Ref))
				}
			}
			out.WriteString("\n")
			require.NotEmpty(t, op.Summary, path)
		}
	}
	const golden = "testdata/openapi.txt"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(out.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String(), "run with -update and look at the difference")

	inYAML := b.send(t, "", http.MethodGet, "/openapi.yaml", "")
	require.Contains(t, inYAML.body, "/api/v1/requests/{request}/cancel:")
}

// shape is a type by its schema, else by its media type.
func shape(kind, ref string) string {
	if ref != "" {
		return strings.TrimPrefix(ref, "#/components/schemas/")
	}
	return kind
}

func TestTheDocumentOfAClosedAPIRequiresTokensForReading(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *api.Config) { c.OpenRead = false })
	var d document
	require.NoError(t, json.Unmarshal([]byte(b.send(t, "", http.MethodGet, "/openapi.json", "").body), &d))
	require.NotEmpty(t, d.Paths["/api/v1/projects"]["get"].Security)
	require.Empty(t, d.Paths["/api/v1/info"]["get"].Security)
}
