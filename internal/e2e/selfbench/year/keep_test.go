package year

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// tiny is the smallest year.
var tiny = Size{Artifacts: 2, Benchmarks: 1, Values: 1, Rows: 1}

// A year is made once; each stack gets a copy, which does not change it.
func TestAYearIsMadeOnce(t *testing.T) {
	t.Parallel()
	k := Keep{Dir: filepath.Join(t.TempDir(), "years"), Progress: quietly}
	states := t.TempDir()

	// Whoever is interrupted leaves nothing, and a crash what the next one removes.
	interrupted, stop := context.WithCancel(t.Context())
	stop()
	_, err := k.Copy(interrupted, tiny, filepath.Join(states, "interrupted"))
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, os.MkdirAll(filepath.Join(k.Dir, making+"crashed", stateDir), 0o755))

	first, err := k.Copy(t.Context(), tiny, filepath.Join(states, "first"))
	require.NoError(t, err)
	require.True(t, first.New)
	require.Positive(t, first.Bytes)
	require.Equal(t, []string{tiny.key(), "lock"}, names(t, k.Dir))
	require.NoError(t, serve(t.Context(), filepath.Join(states, "first"), func(ctx context.Context, url string) error {
		conn, err := pgx.Connect(ctx, url)
		require.NoError(t, err)
		_, err = conn.Exec(ctx, `delete from sheet`)
		require.NoError(t, err)
		return conn.Close(ctx)
	}))

	second, err := k.Copy(t.Context(), tiny, filepath.Join(states, "second"))
	require.NoError(t, err)
	require.False(t, second.New)
	require.Equal(t, first.Seconds, second.Seconds)
	require.True(t, first.At.Equal(second.At))
	require.NoError(t, serve(t.Context(), filepath.Join(states, "second"), func(ctx context.Context, url string) error {
		conn, err := pgx.Connect(ctx, url)
		require.NoError(t, err)
		var sheets int
		require.NoError(t, conn.QueryRow(ctx, `select count(*) from sheet`).Scan(&sheets))
		require.Equal(t, tiny.Artifacts*Metrics, sheets)
		return conn.Close(ctx)
	}))

	// Another size takes its place.
	other := tiny
	other.Values++
	_, err = k.Copy(t.Context(), other, filepath.Join(states, "third"))
	require.NoError(t, err)
	require.Equal(t, []string{other.key(), "lock"}, names(t, k.Dir))
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestAYearThatDoesNotFitIsRefused(t *testing.T) {
	t.Parallel()
	require.NoError(t, room(t.TempDir(), 1, "a copy"))
	err := room(t.TempDir(), 1<<60, "a copy")
	require.ErrorIs(t, err, ErrNoRoom)
	require.ErrorContains(t, err, "a copy takes 1.0 EiB")
}
