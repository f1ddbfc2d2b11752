package store_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

// contracted lists what a migration takes away, with the version of the last program that
// used it. CONTRIBUTING.md has the rule.
var contracted = map[int64]map[string]int64{}

// Old and new programs run side by side while replicas are replaced: what the version
// before reads and writes is still there after each migration.
func TestMigrationsLeaveWhatTheVersionBeforeUses(t *testing.T) {
	t.Parallel()
	url := storetest.EmptyURL(t)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(context.Background())) })
	const baseline = 100
	require.NoError(t, store.MigrateTo(t.Context(), url, baseline))
	before := columns(t, conn)
	require.Contains(t, before, "benchmark_request.id")
	for version := int64(baseline + 1); version <= store.KnownSchema(); version++ {
		require.NoError(t, store.MigrateTo(t.Context(), url, version))
		after := columns(t, conn)
		broken := incompatible(before, after)
		for _, what := range slices.Sorted(maps.Keys(broken)) {
			last, listed := contracted[version][what]
			if !listed {
				t.Errorf("migration %d %s %s, which the version before uses: add what replaces it, and take it away one release later (see CONTRIBUTING.md)", version, broken[what], what)
				continue
			}
			var oldest int64
			require.NoError(t, conn.QueryRow(t.Context(), `select oldest_program from schema_compatibility`).Scan(&oldest))
			require.Greater(t, oldest, last, "migration %d %s %s, which programs up to %d use: it must raise schema_compatibility.oldest_program", version, broken[what], what, last)
		}
		before = after
	}
}

// column holds the properties that statements rely on.
type column struct {
	Type string
	// Required means that an insert must name it.
	Required bool
	Nullable bool
}

func columns(t *testing.T, conn *pgx.Conn) map[string]column {
	t.Helper()
	rows, err := conn.Query(t.Context(), `
		select table_name || '.' || column_name, data_type,
			is_nullable = 'NO' and column_default is null and is_identity = 'NO' and is_generated = 'NEVER', is_nullable = 'YES'
		from information_schema.columns where table_schema = 'public'`)
	require.NoError(t, err)
	found := make(map[string]column)
	var name string
	var c column
	_, err = pgx.ForEachRow(rows, []any{&name, &c.Type, &c.Required, &c.Nullable}, func() error {
		found[name] = c
		return nil
	})
	require.NoError(t, err)
	return found
}

// incompatible says what programs that were written for the columns before cannot use any
// more, by column.
func incompatible(before, after map[string]column) map[string]string {
	broken := make(map[string]string)
	tables := make(map[string]bool)
	for name, was := range before {
		table, _, _ := strings.Cut(name, ".")
		tables[table] = true
		switch is, there := after[name]; {
		case !there:
			broken[name] = "drops"
		case is.Type != was.Type:
			broken[name] = "changes the type of"
		case is.Required && !was.Required:
			broken[name] = "removes the default of"
		case was.Nullable && !is.Nullable:
			broken[name] = "forbids null in"
		}
	}
	for name, is := range after {
		table, _, _ := strings.Cut(name, ".")
		if _, old := before[name]; !old && tables[table] && is.Required {
			broken[name] = "requires a value for the new"
		}
	}
	return broken
}

func TestIncompatibleMigrationsAreRecognised(t *testing.T) {
	t.Parallel()
	before := map[string]column{"run.id": {Type: "text", Required: true}, "run.note": {Type: "text", Nullable: true}}
	for name, c := range map[string]struct {
		after map[string]column
		want  map[string]string
	}{
		"a column and a table more": {map[string]column{"run.id": before["run.id"], "run.note": before["run.note"], "run.size": {Type: "bigint"}, "log.id": {Type: "text", Required: true}}, map[string]string{}},
		"a column less":             {map[string]column{"run.id": before["run.id"]}, map[string]string{"run.note": "drops"}},
		"a column renamed": {
			map[string]column{"run.key": before["run.id"], "run.note": before["run.note"]},
			map[string]string{"run.id": "drops", "run.key": "requires a value for the new"},
		},
		"another type":  {map[string]column{"run.id": {Type: "bigint", Required: true}, "run.note": before["run.note"]}, map[string]string{"run.id": "changes the type of"}},
		"null no more":  {map[string]column{"run.id": before["run.id"], "run.note": {Type: "text"}}, map[string]string{"run.note": "forbids null in"}},
		"default taken": {map[string]column{"run.id": before["run.id"], "run.note": {Type: "text", Required: true}}, map[string]string{"run.note": "removes the default of"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, incompatible(before, c.after))
		})
	}
}

// A process starts with its own schema only, whoever is first; a newer one is refused with
// what to do.
func TestAProcessAwaitsItsSchema(t *testing.T) {
	t.Parallel()
	url := storetest.EmptyURL(t)
	s := storetest.Open(t, url)
	log := slog.New(slog.DiscardHandler)
	began := make(chan error, 1)
	go func() { began <- s.AwaitSchema(t.Context(), log) }()
	require.NoError(t, store.MigrateTo(t.Context(), url, store.KnownSchema()-1))
	require.Empty(t, began)
	require.NoError(t, store.Migrate(t.Context(), url))
	require.NoError(t, <-began)

	r := record{Store: s, t: t, url: url}
	r.execute(`insert into goose_db_version (version_id, is_applied) values (9999, true)`)
	err := s.AwaitSchema(t.Context(), log)
	require.ErrorIs(t, err, store.ErrSchemaTooNew)
	require.ErrorContains(t, err, fmt.Sprintf("schema version 9999 and this program knows versions up to %d; run the newer program", store.KnownSchema()))
}

// A running replica goes on while the newer schema still suits it, and ends once it does
// not.
func TestARunningProcessEndsWithASchemaThatDoesNotSuitIt(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	log := slog.New(slog.DiscardHandler)
	ended := make(chan error, 1)
	go func() { ended <- r.WatchSchemaEvery(t.Context(), 10*time.Millisecond, log) }()
	r.execute(`insert into goose_db_version (version_id, is_applied) values (9999, true)`)
	stopped, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	require.NoError(t, r.WatchSchemaEvery(stopped, 10*time.Millisecond, log), "it is compatible")
	require.Empty(t, ended)

	r.execute(`update schema_compatibility set oldest_program = 9999`)
	err := <-ended
	require.ErrorIs(t, err, store.ErrSchemaTooNew)
	require.ErrorContains(t, err, "run the newer program")
}

// Programs up to 290 take the parts of histories for damaged, and would derive them anew again and again.
func TestProgramsThatCannotReadHistoriesEnd(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	require.Greater(t, r.count(`select oldest_program from schema_compatibility`), 290)
}

// Each migration has a schema of its own, the last one first.
func TestSchemasHaveDigests(t *testing.T) {
	t.Parallel()
	digests := store.SchemaDigests()
	files, err := filepath.Glob("migrations/*.sql")
	require.NoError(t, err)
	require.Len(t, digests, len(files))
	seen := make(map[string]bool)
	for _, d := range digests {
		require.Len(t, d, 64)
		require.False(t, seen[d])
		seen[d] = true
	}
	first, err := os.ReadFile(files[0])
	require.NoError(t, err)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d\n%s", filepath.ToSlash(files[0]), len(first), first))
	require.Equal(t, hex.EncodeToString(sum[:]), digests[len(digests)-1])
}
