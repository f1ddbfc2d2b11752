package main

import (
	"database/sql"
	"fmt"
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
