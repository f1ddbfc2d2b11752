package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/schema/sqlite"
	"google.golang.org/protobuf/types/known/durationpb"
	sqlitedriver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// clusterName names the one cluster in every database file.
	clusterName = "active"

	// schemaRevision is stored as SQLite's user_version. It counts the schemas
	// of the Temporal servers that this program has embedded: raise it together
	// with a server whose schema/sqlite differs. Revision 1: server 1.32.
	schemaRevision = 1

	// retention is the time closed workflows of a new namespace stay visible.
	retention = 30 * 24 * time.Hour
)

// pragmas apply to every connection. A commit survives the end of the process, but not that
// of the machine: synchronous=NORMAL syncs the write-ahead log before it is copied into the
// database. After a power failure the file is some commits behind, and Benchloom begins again
// whatever its record has and Temporal lacks. Only one process at a time may hold the file:
// two servers would take the history shard from each other.
var pragmas = map[string]string{
	"journal_mode": "WAL",
	"locking_mode": "EXCLUSIVE",
	"synchronous":  "NORMAL",
}

// openDatabase creates the file with its schema and the namespace if absent, and
// returns the server's configuration for it.
func openDatabase(ctx context.Context, file, namespace string) (*config.SQL, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, fmt.Errorf("resolving the database file's path: %w", err)
	}
	if _, err := os.Stat(filepath.Dir(file)); err != nil {
		return nil, fmt.Errorf("the directory of database file %s cannot be used: %w", file, err)
	}
	if err := prepareSchema(ctx, file); err != nil {
		return nil, err
	}
	conf := &config.SQL{
		PluginName: sqliteplugin.PluginName,
		// The plugin puts the name into a URI as it is.
		DatabaseName:      uriPath(file),
		ConnectAttributes: map[string]string{"mode": "rw"},
	}
	for name, value := range pragmas {
		conf.ConnectAttributes[name] = value
	}
	wanted, err := sqlite.NewNamespaceConfig(clusterName, namespace, false, nil)
	if err != nil {
		return nil, fmt.Errorf("describing namespace %s: %w", namespace, err)
	}
	wanted.Detail.Config.Retention = durationpb.New(retention)
	if err := sqlite.CreateNamespaces(conf, wanted); err != nil {
		return nil, fmt.Errorf("creating namespace %s in database file %s: %w", namespace, file, err)
	}
	return conf, nil
}

// prepareSchema creates the schema in an empty file, in one transaction, so that the
// file is still empty if the process is killed meanwhile.
func prepareSchema(ctx context.Context, file string) (err error) {
	defer func() {
		if err != nil {
			err = explain(file, err)
		}
	}()
	query := url.Values{"mode": {"rwc"}}
	for name, value := range pragmas {
		query.Add("_pragma", name+"="+value)
	}
	db, err := sql.Open("sqlite", "file:"+uriPath(file)+"?"+query.Encode())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()

	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		}
	}()
	var revision, tables int
	if err := conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&revision); err != nil {
		return err
	}
	if err := conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master").Scan(&tables); err != nil {
		return err
	}
	switch {
	case revision == 0 && tables == 0:
		if err := sqlite.SetupSchemaOnDB(schemaWriter{ctx: ctx, conn: conn}); err != nil {
			return err
		}
		if _, err := conn.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", schemaRevision)); err != nil {
			return err
		}
	case revision != schemaRevision:
		return fmt.Errorf("it has schema revision %d, this program needs %d: use the program that wrote it, or move the file away to begin with an empty one", revision, schemaRevision)
	}
	if _, err = conn.ExecContext(ctx, "COMMIT"); err != nil {
		return err
	}
	return compact(ctx, conn)
}

// wasteful is the size of unused space, in bytes, from which it is given back.
const wasteful = 64 << 20

// compact gives unused space back to the file system when more than half of the file is
// unused. SQLite reuses the space of deleted rows, but a file once grown never shrinks by
// itself. Rewriting it takes as long as writing the rest.
func compact(ctx context.Context, conn *sql.Conn) error {
	var pages, unused, size int64
	for pragma, value := range map[string]*int64{"page_count": &pages, "freelist_count": &unused, "page_size": &size} {
		if err := conn.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(value); err != nil {
			return err
		}
	}
	if unused*size < wasteful || 2*unused < pages {
		return nil
	}
	if _, err := conn.ExecContext(ctx, "VACUUM"); err != nil {
		return err
	}
	_, err := conn.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}

// explain translates SQLite's error codes into advice for the user.
func explain(file string, err error) error {
	if sqliteErr, ok := errors.AsType[*sqlitedriver.Error](err); ok {
		switch sqliteErr.Code() & 0xff { // the low byte is the primary code
		case sqlite3.SQLITE_BUSY:
			return fmt.Errorf("database file %s is in use by another process: stop that one first", file)
		case sqlite3.SQLITE_NOTADB:
			return fmt.Errorf("database file %s is not an SQLite database: move it away to begin with an empty one", file)
		}
	}
	return fmt.Errorf("opening database file %s: %w", file, err)
}

// uriPath returns a file's path escaped for an SQLite URI.
func uriPath(file string) string {
	return (&url.URL{Path: filepath.ToSlash(file)}).EscapedPath()
}

// schemaWriter implements the part of the server's AdminDB that schema setup uses. It
// runs statements within the caller's transaction.
type schemaWriter struct {
	sqlplugin.AdminDB
	ctx  context.Context
	conn *sql.Conn
}

func (w schemaWriter) Exec(statement string, args ...any) error {
	_, err := w.conn.ExecContext(w.ctx, statement, args...)
	return err
}
