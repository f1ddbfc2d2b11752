package store

import (
	"context"
	"encoding/json"
	"time"
)

// Project is a tracked project with its configuration, as JSON, and its suite.
type Project struct {
	Name      string
	Config    json.RawMessage
	SuiteHash string // empty: none yet
	CreatedAt time.Time
	UpdatedAt time.Time
}

const projectColumns = `name, config, coalesce(suite_hash, '') as suite_hash, created_at, updated_at`

// ApplyProject creates or changes a project, and reports whether anything changed. It
// returns ErrNotFound if the project's suite is not stored.
func (s *Store) ApplyProject(ctx context.Context, p Project) (changed bool, err error) {
	tag, err := s.pool.Exec(ctx, `
		insert into project as old (name, config, suite_hash) values ($1, $2, nullif($3, ''))
		on conflict (name) do update set config = excluded.config, suite_hash = excluded.suite_hash, updated_at = now()
		where (old.config, old.suite_hash) is distinct from (excluded.config, excluded.suite_hash)`,
		p.Name, document(p.Config, "{}"), p.SuiteHash)
	return tag.RowsAffected() > 0, wrap("applying project "+p.Name, unknownReference(err))
}

// Project reads a project; ErrNotFound if there is none with that name.
func (s *Store) Project(ctx context.Context, name string) (Project, error) {
	p, err := one[Project](ctx, s.pool, `select `+projectColumns+` from project where name = $1`, name)
	return p, wrap("reading project "+name, err)
}

// Projects reads all projects, by name.
func (s *Store) Projects(ctx context.Context) ([]Project, error) {
	ps, err := all[Project](ctx, s.pool, `select `+projectColumns+` from project order by name`)
	return ps, wrap("reading projects", err)
}

// PutSuite stores a suite's files under their content hash. A stored suite does not
// change.
func (s *Store) PutSuite(ctx context.Context, hash, name string, archive []byte) error {
	_, err := s.pool.Exec(ctx, `insert into suite_bundle (hash, name, archive) values ($1, $2, $3)
		on conflict (hash) do update set created_at = now()`,
		hash, name, archive)
	return wrap("storing suite "+name, err)
}

// SuiteArchive reads a suite's files as they were stored; ErrNotFound if no suite has the
// hash.
func (s *Store) SuiteArchive(ctx context.Context, hash string) (name string, archive []byte, err error) {
	type bundle struct {
		Name    string
		Archive []byte
	}
	b, err := one[bundle](ctx, s.pool, `select name, archive from suite_bundle where hash = $1`, hash)
	return b.Name, b.Archive, wrap("reading suite "+hash, err)
}

// document returns a JSON document as a parameter; absent if there is none.
func document(raw json.RawMessage, absent string) string {
	if len(raw) == 0 {
		return absent
	}
	return cleanJSON(raw)
}
