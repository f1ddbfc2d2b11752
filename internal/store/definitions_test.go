package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/store"
)

func TestDefinitionsArePushedOnce(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	push := func(hash, source string) store.Operation {
		t.Helper()
		done, err := r.PushDefinitions(t.Context(), project, store.Definitions{Hash: hash, Files: map[string]string{"graphs/a.yaml": hash}, Source: source}, byAda)
		require.NoError(t, err)
		return done
	}
	_, err := r.PushedDefinitions(t.Context(), project, "", "")
	require.ErrorIs(t, err, store.ErrNotFound)
	require.True(t, push("one", "").Result.Changed)
	require.False(t, push("one", "").Result.Changed, "they are there")
	require.True(t, push("two", "far@v2").Result.Changed)
	require.True(t, push("one", "").Result.Changed, "an earlier one counts again")
	require.Equal(t, 2, r.count(`select count(*) from definitions`), "each is stored once")

	pushes, err := r.DefinitionsPushes(t.Context(), project, 0, 10)
	require.NoError(t, err)
	require.Len(t, pushes, 3)
	require.Equal(t, []any{"one", true, "two", false, "one", false}, []any{pushes[0].Hash, pushes[0].Current, pushes[1].Hash, pushes[1].Current, pushes[2].Hash, pushes[2].Current})
	require.Equal(t, "ada", pushes[0].By)
	rest, err := r.DefinitionsPushes(t.Context(), project, pushes[0].Row, 1)
	require.NoError(t, err)
	require.Equal(t, pushes[1:2], rest)

	for _, c := range []struct{ hash, source, want string }{{"", "", "one"}, {"two", "", "two"}, {"", "far@v2", "two"}} {
		p, err := r.PushedDefinitions(t.Context(), project, c.hash, c.source)
		require.NoError(t, err)
		require.Equal(t, c.want, p.Hash)
	}
	for _, c := range []struct{ hash, source string }{{"three", ""}, {"", "far@v3"}, {"one", "far@v2"}} {
		_, err := r.PushedDefinitions(t.Context(), project, c.hash, c.source)
		require.ErrorIs(t, err, store.ErrNotFound)
	}
	files, err := r.DefinitionsFiles(t.Context(), "two")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"graphs/a.yaml": "two"}, files)
	_, err = r.DefinitionsFiles(t.Context(), "three")
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = r.PushDefinitions(t.Context(), "nothing", store.Definitions{Hash: "one"}, byAda)
	require.ErrorIs(t, err, store.ErrNotFound)
}

// Of ten people who push the same at once, one is first.
func TestDefinitionsPushedTogetherAreOnePush(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	for _, err := range together(10, func(int) error {
		_, err := r.PushDefinitions(t.Context(), project, store.Definitions{Hash: "one", Files: map[string]string{"graphs/a.yaml": ""}}, byAda)
		return err
	}) {
		require.NoError(t, err)
	}
	require.Equal(t, 1, r.count(`select count(*) from definitions_push`))
}
