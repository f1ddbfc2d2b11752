package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// PackError lists the failures that did not stop the packing of results.
type PackError struct {
	// Artifacts could not be packed. They are read from their rows, and are due again after 10
	// minutes, doubled each further time up to a day, or with their next change.
	Artifacts []Unpackable
	// Lost names parts of histories that could not be read. They are removed, and the
	// artifacts that had points there are stale: packing these derives them anew.
	Lost []string
}

// Unpackable is an artifact that could not be packed.
type Unpackable struct {
	ID  int64
	Tag string
	Err error
}

// namedTroubles bounds the failures that an error names.
const namedTroubles = 5

func (e *PackError) Error() string {
	var texts []string
	for _, a := range e.Artifacts {
		texts = append(texts, fmt.Sprintf("artifact %s is read from its rows, as it could not be packed: %v", a.Tag, a.Err))
	}
	for _, text := range e.Lost {
		texts = append(texts, text+" could not be read, and is derived anew")
	}
	if more := len(texts) - namedTroubles; more > 0 {
		texts = append(texts[:namedTroubles], fmt.Sprintf("%d others", more))
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns why artifacts could not be packed.
func (e *PackError) Unwrap() []error {
	errs := make([]error, len(e.Artifacts))
	for i, a := range e.Artifacts {
		errs[i] = a.Err
	}
	return errs
}

// told returns e as an error if it lists any failure.
func (e *PackError) told() error {
	if len(e.Artifacts)+len(e.Lost) == 0 {
		return nil
	}
	return e
}

// record postpones the artifacts that could not be packed.
func (e *PackError) record(ctx context.Context, q execer) error {
	for _, a := range e.Artifacts {
		if _, err := q.Exec(ctx, `
			insert into pack_failure (artifact_id, tries, retry_at, reason)
			select id, 1, now() + interval '10 minutes', @reason from artifact where id = @artifact
			on conflict (artifact_id) do update set tries = pack_failure.tries + 1, failed_at = now(), reason = excluded.reason,
				retry_at = now() + least(interval '1 day', interval '10 minutes' * power(2, least(pack_failure.tries, 10)))`,
			pgx.NamedArgs{"artifact": a.ID, "reason": cleanText(a.Err.Error())}); err != nil {
			return err
		}
	}
	return nil
}

// execer carries out a statement. The pool and transactions implement it.
type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// blames reports whether a transaction failed because of the results that it packs, rather
// than the database's state, its lack of space, or this program.
func blames(ctx context.Context, tx pgx.Tx, err error) bool {
	if ctx.Err() != nil || tx.Conn().IsClosed() || IsTransient(err) {
		return false
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch e.Code[:2] {
		case "25", "42", "53", "57", "58": // state, statement, resources, operator, system
			return e.Code == "57014" // it takes longer than a statement may
		}
	}
	return true
}
