package main

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// setRevision makes a database file look as if another program had written it.
func setRevision(t *testing.T, file string, revision int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+uriPath(file))
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	_, err = db.ExecContext(t.Context(), fmt.Sprintf("PRAGMA user_version = %d", revision))
	require.NoError(t, err)
}

// A file that has grown, for example under a version that kept each pass of a Schedule for
// a month, shrinks at the next start.
func TestUnusedSpaceIsGivenBack(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "temporal.db")
	require.NoError(t, prepareSchema(t.Context(), file))
	execute := func(statement string) {
		t.Helper()
		db, err := sql.Open("sqlite", "file:"+uriPath(file))
		require.NoError(t, err)
		defer func() { require.NoError(t, db.Close()) }()
		_, err = db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	size := func() int64 {
		t.Helper()
		info, err := os.Stat(file)
		require.NoError(t, err)
		return info.Size()
	}
	execute("CREATE TABLE filler (data BLOB)")
	execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 80) INSERT INTO filler SELECT zeroblob(1 << 20) FROM n")
	require.NoError(t, prepareSchema(t.Context(), file))
	require.Greater(t, size(), int64(wasteful), "it is in use")
	execute("DELETE FROM filler")
	require.Greater(t, size(), int64(wasteful), "SQLite keeps it for later")
	require.NoError(t, prepareSchema(t.Context(), file))
	require.Less(t, size(), int64(wasteful)/10)
}
