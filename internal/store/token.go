package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// Reasons for refusing the secret of a known token.
var (
	// ErrTokenExpired reports that the token has expired, or that the overlap of a rotated
	// secret is over.
	ErrTokenExpired = errors.New("the token has expired")
	// ErrTokenRevoked reports that the token was revoked.
	ErrTokenRevoked = errors.New("the token was revoked")
)

// Principal is the account or collector to which a token belongs.
type Principal struct {
	Kind  string // user or collector
	Owner string
	Role  string // reader, writer, admin or collector
	// Collector is the only collector for which the token is valid; empty: any.
	Collector string
	// Project is the only project that the token may change; empty: any.
	Project string
	// Token is the ID of the token.
	Token bench.TokenID
}

// Token is a token as it is listed. Secrets are not stored, only their SHA-256.
type Token struct {
	ID bench.TokenID
	// Kind is user or collector; Role is reader, writer, admin or collector.
	Kind, Owner, Role string
	// Collector and Project narrow the token down; empty: they do not.
	Collector, Project string
	// CreatedBy is the account that created or rotated it; empty: it comes from a token
	// file or an enrolment.
	CreatedBy string
	CreatedAt time.Time
	// ExpiresAt is nil for a token that does not expire.
	ExpiresAt, RevokedAt *time.Time
}

const tokenColumns = `t.id, t.kind, t.owner, t.role, coalesce(t.collector, '') as collector, coalesce(t.project, '') as project,
	t.created_by, t.created_at, t.expires_at, t.revoked_at`

// PutToken gives the token whose secret has this SHA-256 to the principal, even if it
// belonged to another. A revoked or rotated secret stays refused.
func (s *Store) PutToken(ctx context.Context, secretHash []byte, p Principal) error {
	_, err := s.pool.Exec(ctx, `
		insert into access_token (hash, kind, owner, role) values ($1, $2, $3, $4)
		on conflict (hash) do update set kind = excluded.kind, owner = excluded.owner, role = excluded.role`,
		secretHash, p.Kind, p.Owner, p.Role)
	return wrap("storing the token of "+p.Owner, err)
}

// PrincipalOf returns the owner of the secret with this SHA-256; ErrNotFound if there is
// none, ErrTokenExpired or ErrTokenRevoked, with the principal, if it is no longer valid.
func (s *Store) PrincipalOf(ctx context.Context, secretHash []byte) (Principal, error) {
	type known struct {
		Principal
		Expired, Revoked bool
	}
	k, err := one[known](ctx, s.pool, `
		select kind, owner, role, coalesce(collector, '') as collector, coalesce(project, '') as project, id as token,
			coalesce(expires_at <= now(), false) as expired, revoked_at is not null as revoked
		from access_token where hash = $1`, secretHash)
	switch {
	case err == nil && k.Revoked:
		err = ErrTokenRevoked
	case err == nil && k.Expired:
		err = ErrTokenExpired
	}
	return k.Principal, wrap("looking up a token", err)
}

// CreateToken stores a token by the SHA-256 of its secret. It expires after validity; 0:
// never. ErrNotFound reports an unknown project.
func (s *Store) CreateToken(ctx context.Context, t Token, secretHash []byte, validity time.Duration, act Act) (Token, error) {
	what := Operation{Action: "token create", Project: t.Project, Subject: string(t.ID), Detail: detail(tokenDetail{Owner: t.Owner, Role: t.Role, Validity: inWords(validity)})}
	var created Token
	_, err := s.audited(ctx, what, act, func(tx pgx.Tx, _ int64) (OperationResult, error) {
		var err error
		created, err = one[Token](ctx, tx, `
			insert into access_token as t (hash, id, kind, owner, role, project, created_by, expires_at)
			values (@hash, @id, 'user', @owner, @role, nullif(@project, ''), @by, now() + nullif(@validity::float8, 0) * interval '1 second')
			returning `+tokenColumns,
			pgx.NamedArgs{
				"hash": secretHash, "id": t.ID, "owner": t.Owner, "role": t.Role, "project": t.Project, "by": act.Who, "validity": validity.Seconds(),
			})
		return OperationResult{Changed: true, Message: fmt.Sprintf("%s has a token with the role %s", t.Owner, t.Role)}, unknownReference(err)
	})
	return created, err
}

// tokenDetail is the audit's detail of a token's creation or rotation.
type tokenDetail struct {
	Owner    string `json:"owner,omitempty"`
	Role     string `json:"role,omitempty"`
	Validity string `json:"validity,omitempty"`
	Overlap  string `json:"overlap,omitempty"`
}

// inWords writes a duration; empty for 0.
func inWords(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// Rotation gives a token another secret.
type Rotation struct {
	ID bench.TokenID
	// SecretHash is the SHA-256 of the new secret.
	SecretHash []byte
	// Overlap is the time for which the former secret stays valid.
	Overlap time.Duration
	// Validity of the new secret; 0: the validity that the former one had at its creation.
	Validity time.Duration
}

// RotateToken gives a token another secret. It returns ErrNotFound for an unknown token
// or one of a collector, and ErrTokenRevoked.
func (s *Store) RotateToken(ctx context.Context, r Rotation, act Act) (Token, error) {
	what := Operation{Action: "token rotate", Subject: string(r.ID), Detail: detail(tokenDetail{Validity: inWords(r.Validity), Overlap: inWords(r.Overlap)})}
	var rotated Token
	_, err := s.audited(ctx, what, act, func(tx pgx.Tx, entry int64) (OperationResult, error) {
		before, err := one[Token](ctx, tx, `
			select `+tokenColumns+` from access_token t where t.id = $1 and t.kind = 'user' and t.replaced_at is null for update`, r.ID)
		if err != nil {
			return OperationResult{}, err
		}
		if before.RevokedAt != nil {
			return OperationResult{}, ErrTokenRevoked
		}
		// Also those of earlier rotations, whose overlap is not over yet.
		if _, err := tx.Exec(ctx, `
			update access_token set replaced_at = coalesce(replaced_at, now()),
				expires_at = least(expires_at, now() + make_interval(secs => $2))
			where id = $1`, r.ID, r.Overlap.Seconds()); err != nil {
			return OperationResult{}, err
		}
		validity := r.Validity
		if validity == 0 && before.ExpiresAt != nil {
			validity = before.ExpiresAt.Sub(before.CreatedAt)
		}
		rotated, err = one[Token](ctx, tx, `
			insert into access_token as t (hash, id, kind, owner, role, project, created_by, expires_at)
			values (@hash, @id, 'user', @owner, @role, nullif(@project, ''), @by, now() + nullif(@validity::float8, 0) * interval '1 second')
			returning `+tokenColumns,
			pgx.NamedArgs{
				"hash": r.SecretHash, "id": r.ID, "owner": before.Owner, "role": before.Role, "project": before.Project, "by": act.Who, "validity": validity.Seconds(),
			})
		if err != nil {
			return OperationResult{}, err
		}
		if _, err := tx.Exec(ctx, `update audit set project = $2 where id = $1`, entry, before.Project); err != nil {
			return OperationResult{}, err
		}
		return OperationResult{Changed: true, Message: "the token of " + before.Owner + " has another secret"}, nil
	})
	return rotated, err
}

// RevokeToken ends a token with all of its secrets. Revoking it again changes nothing and
// is no error. ErrNotFound reports an unknown token.
func (s *Store) RevokeToken(ctx context.Context, id bench.TokenID, act Act) (Token, Operation, error) {
	var revoked Token
	done, err := s.audited(ctx, Operation{Action: "token revoke", Subject: string(id)}, act, func(tx pgx.Tx, entry int64) (OperationResult, error) {
		tag, err := tx.Exec(ctx, `update access_token set revoked_at = now() where id = $1 and revoked_at is null`, id)
		if err != nil {
			return OperationResult{}, err
		}
		revoked, err = one[Token](ctx, tx, `select `+tokenColumns+` from access_token t where t.id = $1 and t.replaced_at is null`, id)
		if err != nil {
			return OperationResult{}, err
		}
		if _, err := tx.Exec(ctx, `update audit set project = $2 where id = $1`, entry, revoked.Project); err != nil {
			return OperationResult{}, err
		}
		if tag.RowsAffected() == 0 {
			return OperationResult{Message: "it was revoked before"}, nil
		}
		return OperationResult{Changed: true, Message: fmt.Sprintf("it belonged to %s, with the role %s", revoked.Owner, revoked.Role)}, nil
	})
	return revoked, done, err
}

// Tokens lists tokens by owner and age, those that are no longer valid only with ended.
func (s *Store) Tokens(ctx context.Context, ended bool) ([]Token, error) {
	tokens, err := all[Token](ctx, s.pool, `
		select `+tokenColumns+` from access_token t
		where t.replaced_at is null and ($1 or t.revoked_at is null and coalesce(t.expires_at > now(), true))
		order by t.owner, t.created_at, t.id`, ended)
	return tokens, wrap("listing tokens", err)
}
