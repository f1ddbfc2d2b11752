package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// schemaEvery is the interval at which a process looks at the schema's version.
const schemaEvery = 30 * time.Second

// schema describes the schema of a database.
type schema struct {
	Version int64 // of its last migration; 0: there is none
	Oldest  int64 // version of the oldest program that works with it
}

// KnownSchema returns the version of this program's schema: the number of its last
// migration.
func KnownSchema() int64 {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil || len(names) == 0 {
		panic(fmt.Sprintf("store: the program has no migrations: %v", err)) // they are embedded: cannot happen
	}
	number, _, _ := strings.Cut(strings.TrimPrefix(names[len(names)-1], "migrations/"), "_") // by name
	version, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		panic("store: the migration " + names[len(names)-1] + " does not begin with its number")
	}
	return version
}

// SchemaDigests identifies schemas by the content of their migrations: first this program's
// schema, then each earlier one, down to that of the first migration. What was made for
// another schema may not suit this program.
func SchemaDigests() []string {
	sum := sha256.New()
	names, err := fs.Glob(migrations, "migrations/*.sql")
	var digests []string
	for _, name := range names { // in the order of their numbers
		var text []byte
		if text, err = migrations.ReadFile(name); err != nil {
			break
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
		digests = append(digests, hex.EncodeToString(sum.Sum(nil)))
	}
	if err != nil || len(digests) == 0 {
		panic(fmt.Sprintf("store: the program cannot read its migrations: %v", err)) // they are embedded: cannot happen
	}
	slices.Reverse(digests)
	return digests
}

// AwaitSchema returns when the database has this program's schema: an API migrates it, and
// other processes may start first. A database that a newer program has migrated is refused
// with [ErrSchemaTooNew]. An outage is waited out until the context ends.
func (s *Store) AwaitSchema(ctx context.Context, log *slog.Logger) error {
	known := KnownSchema()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for told := false; ; {
		found, err := s.schema(ctx)
		switch {
		case err == nil && found.Version > known:
			return tooNew(found.Version, known)
		case err == nil && found.Version == known:
			return nil
		case err != nil && !IsTransient(err) && ctx.Err() == nil:
			return err
		case !told:
			told = true
			log.WarnContext(ctx, "waiting for the database's schema: start or update an API, which migrates it", "version", found.Version, "needed", known, "error", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the database's schema: %w", errors.Join(err, context.Cause(ctx)))
		case <-tick.C:
		}
	}
}

// WatchSchema looks at the schema's version until the context ends; then it returns nil.
// If a newer program has migrated the database, this one goes on while the schema still
// has what it reads and writes, so that replicas can be replaced one after the other.
// Otherwise it returns [ErrSchemaTooNew] immediately.
func (s *Store) WatchSchema(ctx context.Context, log *slog.Logger) error {
	return s.watchSchema(ctx, schemaEvery, log)
}

func (s *Store) watchSchema(ctx context.Context, every time.Duration, log *slog.Logger) error {
	known := KnownSchema()
	tick := time.NewTicker(every)
	defer tick.Stop()
	told := known
	for {
		// Callers that need the database notice if it does not answer.
		if found, err := s.schema(ctx); err == nil {
			if found.Oldest > known {
				return tooNew(found.Version, known)
			}
			if found.Version > told {
				told = found.Version
				log.WarnContext(ctx, "a newer version of Benchloom has migrated the database; this one goes on, replace it soon", "version", found.Version, "known", known)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func tooNew(version, known int64) error {
	return fmt.Errorf("%w: it has schema version %d and this program knows versions up to %d; run the newer program", ErrSchemaTooNew, version, known)
}

// schema reads the version of the database's schema; zeros if it has none yet.
func (s *Store) schema(ctx context.Context) (schema, error) {
	var found schema
	version, err := value[int64](ctx, s.pool, `select coalesce(max(version_id), 0) from goose_db_version where is_applied`)
	if noTable(err) {
		return found, nil
	}
	if err != nil {
		return found, fmt.Errorf("reading the database's schema version: %w", err)
	}
	found.Version = version
	found.Oldest, err = value[int64](ctx, s.pool, `select oldest_program from schema_compatibility`)
	if noTable(err) {
		return found, nil // from before versions were compared
	}
	return found, wrap("reading which programs the database's schema suits", err)
}

// noTable reports that a statement names a table that does not exist.
func noTable(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "42P01"
}
