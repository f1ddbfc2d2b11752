package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// ErrSchemaTooNew: the database was migrated by a newer version of the program.
var ErrSchemaTooNew = errors.New("the database was migrated by a newer version")

// migrationLock is the advisory lock under which a database is migrated; the
// number is "benchlom" in ASCII.
const migrationLock = 0x62656e63686c6f6d

// Migrate brings the database's schema to this program's version. Several
// processes may do so at once: one migrates, the others wait for it and find it
// done. A database that a newer program has migrated is left alone, with
// [ErrSchemaTooNew].
func Migrate(ctx context.Context, url string) (err error) {
	config, err := pgxpool.ParseConfig(url) // takes settings of the pool out
	if err != nil {
		return fmt.Errorf("reading the database URL: %w", err)
	}
	db := stdlib.OpenDB(*config.ConnConfig)
	defer func() { err = errors.Join(err, db.Close()) }()
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return fmt.Errorf("reading the migrations: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSessionLocker(sessionLock{}), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("reading the migrations: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrating the database: %w", err)
	}
	has, knows, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("reading the database's version: %w", err)
	}
	if has > knows {
		return fmt.Errorf("the database has schema version %d, this program knows up to %d: run the newer program: %w", has, knows, ErrSchemaTooNew)
	}
	return nil
}

// sessionLock waits for the advisory lock, where goose's own one polls.
type sessionLock struct{}

func (sessionLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, `select pg_advisory_lock($1)`, int64(migrationLock))
	return err
}

func (sessionLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, `select pg_advisory_unlock($1)`, int64(migrationLock))
	return err
}
