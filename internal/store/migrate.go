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

// Errors of [Migrate]. They leave the database unchanged.
var (
	// ErrSchemaTooOld reports a database from before the first release.
	ErrSchemaTooOld = errors.New("the database was made by a development version of Benchloom, before v0.1.0")
	// ErrSchemaTooNew reports a database that a newer version of the program has
	// migrated.
	ErrSchemaTooNew = errors.New("the database was migrated by a newer version of Benchloom")
)

// baseline is the number of the first migration. Lower numbers belonged to development
// versions, which cannot be migrated; the gap makes their databases recognisable.
const baseline = 100

// migrationLock is the advisory lock held during migration; the number is "benchlom" in
// ASCII.
const migrationLock = 0x62656e63686c6f6d

// Migrate brings the database's schema to this program's version. Concurrent processes
// wait for the one that migrates. A database with another history is left unchanged, with
// [ErrSchemaTooOld] or [ErrSchemaTooNew].
func Migrate(ctx context.Context, url string) error { return migrate(ctx, url, KnownSchema()) }

func migrate(ctx context.Context, url string, to int64) (err error) {
	config, err := pgxpool.ParseConfig(url) // drops the settings of the pool
	if err != nil {
		return fmt.Errorf("reading the database URL: %w", err)
	}
	db := stdlib.OpenDB(*config.ConnConfig)
	defer func() { err = errors.Join(err, db.Close()) }()
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return fmt.Errorf("reading the migrations: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("reading the migrations: %w", err)
	}
	// goose's own locker is no use: goose creates its table before it takes the lock.
	locked, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connecting to the database: %w", err)
	}
	defer func() { err = errors.Join(err, locked.Close()) }()
	if _, err := locked.ExecContext(ctx, `select pg_advisory_lock($1)`, int64(migrationLock)); err != nil {
		return fmt.Errorf("locking the database's schema: %w", err)
	}
	if err := checkSchema(ctx, locked, to); err != nil {
		return err
	}
	if _, err := provider.UpTo(ctx, to); err != nil {
		return fmt.Errorf("migrating the database: %w", err)
	}
	return nil
}

// checkSchema refuses a database whose history does not match the known migrations. It
// changes nothing.
func checkSchema(ctx context.Context, conn *sql.Conn, known int64) error {
	var recorded, filled bool
	if err := conn.QueryRowContext(ctx, `
		select to_regclass('goose_db_version') is not null, to_regclass('benchmark_request') is not null`).Scan(&recorded, &filled); err != nil {
		return fmt.Errorf("looking for the database's schema: %w", err)
	}
	if !recorded && !filled {
		return nil // an empty one
	}
	var first, last int64
	if recorded {
		if err := conn.QueryRowContext(ctx, `
			select coalesce(min(version_id), 0), coalesce(max(version_id), 0) from goose_db_version where is_applied and version_id > 0`).Scan(&first, &last); err != nil {
			return fmt.Errorf("reading the database's schema version: %w", err)
		}
	}
	switch {
	case first == 0 && filled:
		return fmt.Errorf("%w, or restored without its schema version: it cannot be migrated; name an empty database, or restore a whole dump", ErrSchemaTooOld)
	case first > 0 && first < baseline:
		return fmt.Errorf("%w, and has schema version %d: it cannot be migrated; name an empty database, "+
			"or a new state directory with 'benchloom up --state-dir'", ErrSchemaTooOld, last)
	case last > known:
		return tooNew(last, known)
	}
	return nil
}
