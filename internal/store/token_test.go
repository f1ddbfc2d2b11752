package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	hash := []byte{1, 2, 3}
	_, err := r.PrincipalOf(t.Context(), hash)
	require.ErrorIs(t, err, store.ErrNotFound)

	ada := store.Principal{Kind: "user", Owner: "ada", Role: "reader"}
	twice(t, func() error { return r.PutToken(t.Context(), hash, ada) })
	require.Equal(t, ada, r.principal(hash))

	ada.Role = "admin"
	require.NoError(t, r.PutToken(t.Context(), hash, ada))
	require.Equal(t, ada, r.principal(hash))

	require.Error(t, r.PutToken(t.Context(), hash, store.Principal{Kind: "user", Owner: "ada", Role: "collector"}),
		"a user is no collector")
}

// principal returns the owner of a secret, without the token's ID.
func (r record) principal(secretHash []byte) store.Principal {
	r.t.Helper()
	p, err := r.PrincipalOf(r.t.Context(), secretHash)
	require.NoError(r.t, err)
	_, err = bench.ParseTokenID(string(p.Token))
	require.NoError(r.t, err)
	p.Token = ""
	return p
}

// ci is a writer of the fixture's project.
var ci = store.Token{ID: "taaaaaaaaaa", Owner: "ci", Role: "writer", Project: project}

func TestATokenIsCreatedRotatedAndRevoked(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	created, err := r.CreateToken(t.Context(), ci, hashOf("first"), time.Hour, byAda)
	require.NoError(t, err)
	require.Equal(t, time.Hour, created.ExpiresAt.Sub(created.CreatedAt))
	require.Equal(t, store.Token{ID: ci.ID, Kind: "user", Owner: "ci", Role: "writer", Project: project, CreatedBy: "ada", CreatedAt: created.CreatedAt, ExpiresAt: created.ExpiresAt}, created)
	require.Equal(t, store.Principal{Kind: "user", Owner: "ci", Role: "writer", Project: project}, r.principal(hashOf("first")))

	// With an overlap both secrets are valid, and the token is listed once.
	rotated, err := r.RotateToken(t.Context(), store.Rotation{ID: ci.ID, SecretHash: hashOf("second"), Overlap: time.Minute}, byAda)
	require.NoError(t, err)
	require.Equal(t, time.Hour, rotated.ExpiresAt.Sub(rotated.CreatedAt), "as long as the former secret")
	require.Equal(t, r.principal(hashOf("first")), r.principal(hashOf("second")))
	tokens, err := r.Tokens(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, []store.Token{rotated}, tokens)

	// Without one, all former secrets end, also that within an overlap.
	_, err = r.RotateToken(t.Context(), store.Rotation{ID: ci.ID, SecretHash: hashOf("third"), Validity: 2 * time.Hour}, byAda)
	require.NoError(t, err)
	for _, former := range []string{"first", "second"} {
		_, err = r.PrincipalOf(t.Context(), hashOf(former))
		require.ErrorIs(t, err, store.ErrTokenExpired)
	}
	require.Equal(t, "ci", r.principal(hashOf("third")).Owner)

	// Revoked, none of them comes back: not by rotation, nor with the file of a token.
	for changed := range 2 {
		revoked, done, err := r.RevokeToken(t.Context(), ci.ID, byAda)
		require.NoError(t, err)
		require.NotNil(t, revoked.RevokedAt)
		require.Equal(t, changed == 0, done.Result.Changed)
	}
	_, err = r.RotateToken(t.Context(), store.Rotation{ID: ci.ID, SecretHash: hashOf("fourth")}, byAda)
	require.ErrorIs(t, err, store.ErrTokenRevoked)
	require.NoError(t, r.PutToken(t.Context(), hashOf("third"), store.Principal{Kind: "user", Owner: "ci", Role: "writer"}))
	for _, secret := range []string{"first", "second", "third"} {
		_, err = r.PrincipalOf(t.Context(), hashOf(secret))
		require.ErrorIs(t, err, store.ErrTokenRevoked)
	}
	tokens, err = r.Tokens(t.Context(), false)
	require.NoError(t, err)
	require.Empty(t, tokens)

	entries, err := r.Audit(t.Context(), store.AuditFilter{Project: project, Subject: string(ci.ID), Limit: 10})
	require.NoError(t, err)
	var actions []string
	for _, e := range entries {
		actions = append(actions, e.Who+" "+e.Action)
	}
	require.Equal(t, []string{"ada token revoke", "ada token revoke", "ada token rotate", "ada token rotate", "ada token create"}, actions, "what was refused is not in the audit")
}

func TestATokenExpires(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	_, err := r.CreateToken(t.Context(), ci, hashOf("secret"), time.Hour, byAda)
	require.NoError(t, err)
	r.execute(`update access_token set expires_at = now() - interval '1 second'`)
	p, err := r.PrincipalOf(t.Context(), hashOf("secret"))
	require.ErrorIs(t, err, store.ErrTokenExpired)
	require.Equal(t, ci.ID, p.Token, "the error can name it")
	for ended, want := range map[bool]int{false: 0, true: 1} {
		tokens, err := r.Tokens(t.Context(), ended)
		require.NoError(t, err)
		require.Len(t, tokens, want)
	}
	forever := ci
	forever.ID, forever.Project = "tbbbbbbbbbb", ""
	created, err := r.CreateToken(t.Context(), forever, hashOf("other"), 0, byAda)
	require.NoError(t, err)
	require.Nil(t, created.ExpiresAt)
	rotated, err := r.RotateToken(t.Context(), store.Rotation{ID: forever.ID, SecretHash: hashOf("next")}, byAda)
	require.NoError(t, err)
	require.Nil(t, rotated.ExpiresAt, "it has no end to take over")
}

func TestTokensOfNothingAreRefused(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	unknown := ci
	unknown.Project = "none"
	_, err := r.CreateToken(t.Context(), unknown, hashOf("a"), 0, byAda)
	require.ErrorIs(t, err, store.ErrNotFound)
	restricted := ci
	restricted.Role = "reader"
	_, err = r.CreateToken(t.Context(), restricted, hashOf("a"), 0, byAda)
	require.Error(t, err, "a reader changes nothing")
	_, err = r.RotateToken(t.Context(), store.Rotation{ID: ci.ID, SecretHash: hashOf("b")}, byAda)
	require.ErrorIs(t, err, store.ErrNotFound)
	_, _, err = r.RevokeToken(t.Context(), ci.ID, byAda)
	require.ErrorIs(t, err, store.ErrNotFound)
	entries, err := r.Audit(t.Context(), store.AuditFilter{Limit: 10})
	require.NoError(t, err)
	require.Empty(t, entries)
}
