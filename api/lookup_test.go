package api_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// A commit hash may be abbreviated wherever a tag is taken.
func TestCommitHashesMayBeAbbreviated(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	older, newer := "1234567"+strings.Repeat("a", 33), "1234567"+strings.Repeat("b", 33)
	for _, tag := range []string{older, newer, "1234567b-rc1", "cafebabe"} {
		b.measure(t, tag, 1, c)
	}
	const a, n = "1234567a", "1234567bb"

	compared, err := b.nobody.Compare(t.Context(), apiclient.CompareQuery{Project: "go", A: a, B: n})
	require.NoError(t, err)
	require.Equal(t, []string{older, newer}, []string{compared.A, compared.B})
	shown, err := b.nobody.Request(t.Context(), "go:"+a)
	require.NoError(t, err)
	require.Equal(t, older, shown.Tag)
	list, err := b.nobody.Requests(t.Context(), apiclient.RequestQuery{Project: "go", Tag: n})
	require.NoError(t, err)
	require.Len(t, list.Requests, 1)
	var out bytes.Buffer
	require.NoError(t, b.nobody.Export(t.Context(), &out, "go", "csv", a))
	require.Contains(t, out.String(), older)
	require.NotContains(t, out.String(), newer)
	asked, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Type: bench.AdHoc, Tag: n, Versus: a})
	require.NoError(t, err)
	require.Equal(t, []string{newer, older}, []string{asked.Tag, asked.Versus})

	// Several commits, none, too few characters, or a tag of that very name.
	_, err = b.nobody.Compare(t.Context(), apiclient.CompareQuery{Project: "go", A: "1234567", B: n})
	require.ErrorContains(t, err, `"1234567" stands for several commits of project go: `+older+`, `+newer+`; write more of its characters`)
	for _, unknown := range []string{"7654321", "123456", "1234567B"} {
		_, err = b.nobody.Request(t.Context(), "go:"+unknown)
		require.ErrorIs(t, err, apiclient.ErrNotFound)
		require.ErrorContains(t, err, unknown)
	}
	compared, err = b.nobody.Compare(t.Context(), apiclient.CompareQuery{Project: "go", A: a, B: "cafebabe"})
	require.NoError(t, err)
	require.Equal(t, "cafebabe", compared.B)

	// A release's tag is a version, whatever it looks like.
	release, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Type: bench.Release, Tag: "1234567"})
	require.NoError(t, err)
	require.Equal(t, "1234567", release.Tag)
}
