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

// Principal is the account or collector to which a token belongs.
type Principal struct {
	Kind  string // user or collector
	Owner string
	Role  string // reader, writer, admin or collector
	// Collector is the only one that the token opens anything for; empty: any.
	Collector string
}

const projectColumns = `name, config, coalesce(suite_hash, '') as suite_hash, created_at, updated_at`

// ApplyProject creates a project or changes it to what is given. ErrNotFound
// when its suite was not put before.
func (s *Store) ApplyProject(ctx context.Context, p Project) (changed bool, err error) {
	tag, err := s.pool.Exec(ctx, `
		insert into project as old (name, config, suite_hash) values ($1, $2, nullif($3, ''))
		on conflict (name) do update set config = excluded.config, suite_hash = excluded.suite_hash, updated_at = now()
		where (old.config, old.suite_hash) is distinct from (excluded.config, excluded.suite_hash)`,
		p.Name, document(p.Config, "{}"), p.SuiteHash)
	return tag.RowsAffected() > 0, wrap("applying project "+p.Name, unknownReference(err))
}

// Project reads a project; ErrNotFound when there is none of that name.
func (s *Store) Project(ctx context.Context, name string) (Project, error) {
	p, err := one[Project](ctx, s.pool, `select `+projectColumns+` from project where name = $1`, name)
	return p, wrap("reading project "+name, err)
}

// Projects reads all projects, by name.
func (s *Store) Projects(ctx context.Context) ([]Project, error) {
	ps, err := all[Project](ctx, s.pool, `select `+projectColumns+` from project order by name`)
	return ps, wrap("reading projects", err)
}

// PutSuite keeps a suite's files under their content hash. What is there already
// is the same and stays.
func (s *Store) PutSuite(ctx context.Context, hash, name string, archive []byte) error {
	_, err := s.pool.Exec(ctx, `insert into suite_bundle (hash, name, archive) values ($1, $2, $3) on conflict (hash) do nothing`,
		hash, name, archive)
	return wrap("storing suite "+name, err)
}

// SuiteArchive reads a suite's files as they were put; ErrNotFound when no suite
// has the hash.
func (s *Store) SuiteArchive(ctx context.Context, hash string) (name string, archive []byte, err error) {
	type bundle struct {
		Name    string
		Archive []byte
	}
	b, err := one[bundle](ctx, s.pool, `select name, archive from suite_bundle where hash = $1`, hash)
	return b.Name, b.Archive, wrap("reading suite "+hash, err)
}

// PutToken makes the secret with this SHA-256 the principal's; a token that is
// there already becomes the principal's.
func (s *Store) PutToken(ctx context.Context, secretHash []byte, p Principal) error {
	_, err := s.pool.Exec(ctx, `
		insert into access_token (hash, kind, owner, role) values ($1, $2, $3, $4)
		on conflict (hash) do update set kind = excluded.kind, owner = excluded.owner, role = excluded.role`,
		secretHash, p.Kind, p.Owner, p.Role)
	return wrap("storing the token of "+p.Owner, err)
}

// PrincipalOf tells whose secret has this SHA-256; ErrNotFound: nobody's.
func (s *Store) PrincipalOf(ctx context.Context, secretHash []byte) (Principal, error) {
	p, err := one[Principal](ctx, s.pool, `select kind, owner, role, coalesce(collector, '') as collector from access_token where hash = $1`, secretHash)
	return p, wrap("looking a token up", err)
}

// document is a JSON document as a parameter; absent when there is none.
func document(raw json.RawMessage, absent string) string {
	if len(raw) == 0 {
		return absent
	}
	return cleanJSON(raw)
}
