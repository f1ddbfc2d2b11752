package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Definitions are the files of a definitions folder.
type Definitions struct {
	// Hash is their content hash, Files their texts by name.
	Hash  string
	Files map[string]string
	// Source says where they are from, such as repository@revision, as branches name it;
	// empty: unknown.
	Source string
}

// DefinitionsPush records who gave definitions to a project.
type DefinitionsPush struct {
	Row     int64
	Project string
	Hash    string
	Source  string
	By      string
	At      time.Time
	// Current reports that it is the project's newest push.
	Current bool
}

// pushColumns selects the columns of a [DefinitionsPush] from push p.
const pushColumns = `p.id as row, p.project, p.hash, p.source, p.pushed_by as by, p.pushed_at as at,
	not exists (select from definitions_push l where l.project = p.project and l.id > p.id) as current`

// PushDefinitions gives definitions, checked by the caller, to a project. If the
// project's newest push has them from the same source, nothing changes. ErrNotFound
// reports an unknown project.
func (s *Store) PushDefinitions(ctx context.Context, project string, d Definitions, act Act) (Operation, error) {
	what := Operation{Action: "definitions push", Project: project, Subject: project, Detail: detail(map[string]string{"hash": d.Hash, "source": d.Source})}
	return s.audited(ctx, what, act, func(tx pgx.Tx, _ int64) (OperationResult, error) {
		// Concurrent pushes go one after the other.
		if err := affected(tx.Exec(ctx, `select from project where name = $1 for no key update`, project)); err != nil {
			return OperationResult{}, err
		}
		last, err := one[DefinitionsPush](ctx, tx, `select `+pushColumns+` from definitions_push p where p.project = $1 order by p.id desc limit 1`, project)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return OperationResult{}, err
		}
		if err == nil && last.Hash == d.Hash && last.Source == d.Source {
			return OperationResult{Message: fmt.Sprintf("definitions %.12s are there since %s", d.Hash, last.At.UTC().Format(time.RFC3339))}, nil
		}
		if _, err := tx.Exec(ctx, `insert into definitions (hash, files) values ($1, $2) on conflict (hash) do nothing`, d.Hash, d.Files); err != nil {
			return OperationResult{}, err
		}
		_, err = tx.Exec(ctx, `insert into definitions_push (project, hash, source, pushed_by) values ($1, $2, $3, $4)`, project, d.Hash, d.Source, act.Who)
		return OperationResult{Changed: true, Message: fmt.Sprintf("definitions %.12s count from now on", d.Hash)}, err
	})
}

// DefinitionsPushes lists the pushes of a project, the newest first, at most limit; those
// before a row if that is not 0.
func (s *Store) DefinitionsPushes(ctx context.Context, project string, before int64, limit int) ([]DefinitionsPush, error) {
	list, err := all[DefinitionsPush](ctx, s.pool, `
		select `+pushColumns+` from definitions_push p where p.project = $1 and ($2 = 0 or p.id < $2) order by p.id desc limit $3`, project, before, limit)
	return list, wrap("listing the definitions of project "+project, err)
}

// PushedDefinitions returns the newest push of a project's definitions whose hash begins
// with hash and that are from source; empty ones match all. It returns ErrNotFound if there
// is none.
func (s *Store) PushedDefinitions(ctx context.Context, project, hash, source string) (DefinitionsPush, error) {
	p, err := one[DefinitionsPush](ctx, s.pool, `
		select `+pushColumns+` from definitions_push p
		where p.project = $1 and starts_with(p.hash, $2) and ($3 = '' or p.source = $3) order by p.id desc limit 1`, project, hash, source)
	return p, wrap("looking for definitions of project "+project, err)
}

// DefinitionsFiles returns the files of definitions by their content hash; ErrNotFound if
// there are none.
func (s *Store) DefinitionsFiles(ctx context.Context, hash string) (map[string]string, error) {
	files, err := value[map[string]string](ctx, s.pool, `select files from definitions where hash = $1`, hash)
	return files, wrap("reading definitions "+hash, err)
}
