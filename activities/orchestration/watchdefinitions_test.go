package orchestration_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/revision"
)

// Templates of a watched repository are those of its newest commit. Broken ones are a remark
// until they are mended, and the last good ones count on.
func TestDefinitionsFollowTheirRepository(t *testing.T) {
	t.Parallel()
	w := watch(t, `"definitions": "ci/graphs"`)
	w.Revisions = revision.New(t.TempDir(), os.Environ())
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(w.dir, "ci", "graphs", filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		w.git("add", "--all")
	}
	const nightly = "nodes: [{name: tell, notify: {tag: v1}}]\n"
	hash := func() string {
		t.Helper()
		p, err := w.store.PushedDefinitions(t.Context(), project, "", "")
		require.NoError(t, err)
		require.Equal(t, []string{w.dir + "@main", bench.CommitSubmitter}, []string{p.Source, p.By})
		return p.Hash
	}
	w.commit("no templates yet")
	require.Contains(t, w.look().Remarks[0], "the commit has no folder ci/graphs")
	write("graphs/nightly.yaml", nightly)
	w.commit("Add a template")
	found := w.look()
	require.Empty(t, found.Remarks)
	first := hash()
	require.Equal(t, first, found.Definitions)
	require.Empty(t, w.look().Definitions, "nothing has changed")
	w.commit("Change something else")
	require.Empty(t, w.look().Definitions)

	write("graphs/nightly.yaml", "nodes: [{name: tell, notify: {tug: v1}}]\n")
	w.commit("Break it")
	for range 2 {
		require.Contains(t, w.look().Remarks[0], "the definitions ci/graphs of commit")
		require.Contains(t, w.state().Message, "not taken")
		require.Equal(t, first, hash(), "the last good ones count on")
	}
	write("graphs/nightly.yaml", nightly+"description: Tell.\n")
	w.commit("Mend it")
	require.NotEmpty(t, w.look().Definitions)
	require.NotEqual(t, first, hash())
	require.NotContains(t, w.state().Message, "not taken")
	pushes, err := w.store.DefinitionsPushes(t.Context(), project, 0, 10)
	require.NoError(t, err)
	require.Len(t, pushes, 2)
}
