package year

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/store"
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
	require.Equal(t, []string{tiny.key(store.SchemaDigests()[0]), "lock"}, names(t, k.Dir))
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
	require.Equal(t, []string{other.key(store.SchemaDigests()[0]), "lock"}, names(t, k.Dir))
}

// A year from before the newest migration is kept: its copies are migrated. One with another
// history of migrations is not used.
func TestLongAYearSurvivesMigrations(t *testing.T) {
	t.Parallel()
	k := Keep{Dir: filepath.Join(t.TempDir(), "years"), Progress: quietly}
	states, schemas := t.TempDir(), store.SchemaDigests()
	require.NotContains(t, schemas, "another")

	// Of an older schema and of one that was never this program's, without results.
	older := filepath.Join(k.Dir, tiny.key(schemas[1]))
	for _, dir := range []string{older, filepath.Join(k.Dir, tiny.key("another"))} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, madeFile), []byte(`{"seconds": 5}`), 0o644))
	}
	kept := names(t, k.Dir)
	require.NoError(t, serve(t.Context(), filepath.Join(older, stateDir), migrateToBeforeTheLast))

	made, err := k.Copy(t.Context(), tiny, filepath.Join(states, "first"))
	require.NoError(t, err)
	require.Equal(t, Made{Seconds: 5}, made)
	require.NoError(t, serve(t.Context(), filepath.Join(states, "first"), func(_ context.Context, url string) error {
		require.Equal(t, store.KnownSchema(), version(t, url))
		return nil
	}))
	require.Equal(t, append(kept, "lock"), names(t, k.Dir))
	require.NoError(t, serve(t.Context(), filepath.Join(older, stateDir), func(_ context.Context, url string) error {
		require.Less(t, version(t, url), store.KnownSchema())
		return nil
	}))

	// Without it, a new one is made.
	require.NoError(t, os.RemoveAll(older))
	made, err = k.Copy(t.Context(), tiny, filepath.Join(states, "second"))
	require.NoError(t, err)
	require.True(t, made.New)
	require.Equal(t, []string{tiny.key(schemas[0]), "lock"}, names(t, k.Dir))
}

// migrateToBeforeTheLast leaves the last migration out, as a program did that had none.
func migrateToBeforeTheLast(ctx context.Context, url string) (err error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*config)
	defer func() { err = errors.Join(err, db.Close()) }()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS(filepath.FromSlash("../../../store/migrations")), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	sources := provider.ListSources()
	_, err = provider.UpTo(ctx, sources[len(sources)-2].Version)
	return err
}

// version returns the schema version of a database.
func version(t *testing.T, url string) (version int64) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	require.NoError(t, conn.QueryRow(t.Context(), `select max(version_id) from goose_db_version where is_applied`).Scan(&version))
	require.NoError(t, conn.Close(t.Context()))
	return version
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
