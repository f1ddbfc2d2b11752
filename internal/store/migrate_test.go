package store_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

func TestConcurrentMigrations(t *testing.T) {
	t.Parallel()
	url := storetest.EmptyURL(t)
	s := storetest.Open(t, url)
	require.ErrorContains(t, s.Ping(t.Context()), "no schema")
	for _, err := range together(4, func(int) error { return store.Migrate(t.Context(), url+"&pool_max_conns=2") }) {
		require.NoError(t, err)
	}
	require.NoError(t, s.Ping(t.Context()))
}

// A database with another history is refused, and its dump is the same before and after.
func TestMigrateLeavesOtherHistoriesAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		statement string // makes that database of a migrated one
		want      error
		says      string
	}{
		"a newer version": {
			`insert into goose_db_version (version_id, is_applied) values (9999, true)`, store.ErrSchemaTooNew,
			fmt.Sprintf("schema version 9999 and this program knows versions up to %d; run the newer program", store.KnownSchema()),
		},
		"the last development version": {
			`update goose_db_version set version_id = version_id - (select max(version_id) from goose_db_version) + 23 where version_id >= 100`, store.ErrSchemaTooOld,
			"schema version 23: it cannot be migrated; name an empty database",
		},
		"the first development version": {
			`update goose_db_version set version_id = version_id - (select max(version_id) from goose_db_version) + 1 where version_id >= 100`, store.ErrSchemaTooOld, "schema version 1:",
		},
		"a development version with later migrations": {
			`insert into goose_db_version (version_id, is_applied) values (2, true)`, store.ErrSchemaTooOld, "before v0.1.0",
		},
		"no version, but tables": {
			`drop table goose_db_version`, store.ErrSchemaTooOld, "restored without its schema version",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRecord(t)
			r.execute(c.statement)
			before := storetest.Dump(t, r.url)
			require.Contains(t, before, "CREATE TABLE public.benchmark_request")

			err := store.Migrate(t.Context(), r.url)
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.says)
			require.Equal(t, before, storetest.Dump(t, r.url))
		})
	}
}
