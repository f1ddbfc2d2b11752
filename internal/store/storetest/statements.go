package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Statements counts what Postgres carries out in one database.
type Statements struct {
	t    testing.TB
	conn *pgx.Conn
}

// CountStatements begins to count the statements of all sessions that connect to the
// database at a URL from [URL] afterwards. The test fails if Postgres has no
// pg_stat_statements, which belongs to its contrib modules.
func CountStatements(t testing.TB, url string) *Statements {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatalf("connecting to the test's database: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	for _, sql := range []string{
		`create extension pg_stat_statements`,
		`do $$ begin execute format('alter database %I set pg_stat_statements.track = top', current_database()); end $$`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("counting statements: %v; install PostgreSQL's contrib modules", err)
		}
	}
	return &Statements{t, conn}
}

// Reset begins to count anew.
func (s *Statements) Reset() {
	s.t.Helper()
	_, err := s.conn.Exec(s.t.Context(), `select pg_stat_statements_reset()`)
	if err != nil {
		s.t.Fatalf("counting statements anew: %v", err)
	}
}

// Calls returns how often each statement was carried out since the last reset.
func (s *Statements) Calls() map[string]int64 {
	s.t.Helper()
	rows, err := s.conn.Query(s.t.Context(), `
		select query, calls from pg_stat_statements where dbid = (select oid from pg_database where datname = current_database())`)
	calls := make(map[string]int64)
	var query string
	var n int64
	_, each := pgx.ForEachRow(rows, []any{&query, &n}, func() error {
		calls[query] += n
		return nil
	})
	if err := errors.Join(err, each); err != nil {
		s.t.Fatalf("reading the counted statements: %v", err)
	}
	return calls
}
