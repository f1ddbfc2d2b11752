package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// TokenCommandRecord stores the tokens that commands create.
type TokenCommandRecord interface {
	// CreateToken returns store.ErrNotFound for an unknown project.
	CreateToken(ctx context.Context, t store.Token, secretHash []byte, validity time.Duration, act store.Act) (store.Token, error)
	// RotateToken returns store.ErrNotFound for an unknown token or one of a collector,
	// and store.ErrTokenRevoked.
	RotateToken(ctx context.Context, r store.Rotation, act store.Act) (store.Token, error)
	// RevokeToken returns store.ErrNotFound for an unknown token.
	RevokeToken(ctx context.Context, id bench.TokenID, act store.Act) (store.Token, store.Operation, error)
	// Tokens lists tokens; with ended, also those that are no longer valid.
	Tokens(ctx context.Context, ended bool) ([]store.Token, error)
}

type tokenHandlers struct {
	*base
	record TokenCommandRecord
}

// restrictedTokenFor is the default validity of a token that is restricted to a project:
// those are the tokens of CI systems, which are copied to places that nobody remembers.
const restrictedTokenFor = 90 * 24 * time.Hour

func (s *tokenHandlers) register() {
	handle(s.base, operation{id: "list-tokens", method: http.MethodGet, path: "/tokens", need: toAdmin, tag: "tokens",
		summary: "List tokens", description: "Their secrets are stored nowhere. Those that were revoked or have expired are only listed with all."}, s.listTokens)
	handle(s.base, operation{id: "create-token", method: http.MethodPost, path: "/tokens", need: toAdmin, tag: "tokens", status: http.StatusCreated,
		summary: "Create a token", description: "Only this answer has the secret. A token restricted to a project changes nothing outside it, and expires after 90 days unless another validity is asked for. Collectors get theirs by enrolment."}, s.createToken)
	handle(s.base, operation{id: "rotate-token", method: http.MethodPost, path: "/tokens/{token}/rotate", need: toAdmin, tag: "tokens",
		summary: "Give a token another secret", description: "Only this answer has the new secret. The former one stays valid for the overlap."}, s.rotateToken)
	handle(s.base, operation{id: "revoke-token", method: http.MethodPost, path: "/tokens/{token}/revoke", need: toAdmin, tag: "tokens",
		summary: "Revoke a token", description: "It is refused at once by this process, and within ten seconds by others. Revoking it again changes nothing."}, s.revokeToken)
}

type listTokens struct {
	All bool `query:"all" doc:"Also those that were revoked or have expired."`
}

func (s *tokenHandlers) listTokens(ctx context.Context, in *listTokens) (*body[apiclient.TokenList], error) {
	stored, err := s.record.Tokens(ctx, in.All)
	if err != nil {
		return nil, err
	}
	list := apiclient.TokenList{Tokens: make([]apiclient.Token, 0, len(stored))}
	for _, t := range stored {
		list.Tokens = append(list.Tokens, tokenOf(t))
	}
	return answer(list, nil)
}

func tokenOf(t store.Token) apiclient.Token {
	return apiclient.Token{
		ID: t.ID, Owner: t.Owner, Role: t.Role, Project: t.Project, Collector: t.Collector,
		CreatedBy: t.CreatedBy, CreatedAt: t.CreatedAt, ExpiresAt: t.ExpiresAt, RevokedAt: t.RevokedAt,
	}
}

type createToken struct{ Body apiclient.NewToken }

func (s *tokenHandlers) createToken(ctx context.Context, in *createToken) (*body[apiclient.CreatedToken], error) {
	t := in.Body
	who, err := act(ctx, apiclient.Act{Reason: t.Reason})
	if err != nil {
		return nil, err
	}
	switch {
	case bench.CheckQueue(bench.UserQueue+t.Owner) != nil:
		return nil, invalid("the account %.80q is not valid: it has at least one character, and no white space or control characters", t.Owner)
	case t.Project != "" && rank[t.Role] < rank[RoleWriter]:
		return nil, invalid("a token with the role %s changes nothing, so a project does not restrict it; leave the project out, or use the role writer", t.Role)
	}
	if t.Project != "" {
		if _, err := s.project(ctx, t.Project, http.StatusUnprocessableEntity); err != nil {
			return nil, err
		}
	}
	var validity time.Duration
	if t.Project != "" {
		validity = restrictedTokenFor
	}
	if t.ValidSeconds != nil {
		validity = time.Duration(*t.ValidSeconds) * time.Second
	}
	id, err := bench.NewTokenID(s.Random)
	if err != nil {
		return nil, err
	}
	secret, err := NewToken(s.Random)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256([]byte(secret))
	created, err := s.record.CreateToken(ctx, store.Token{ID: id, Owner: t.Owner, Role: t.Role, Project: t.Project}, hash[:], validity, who)
	return answer(apiclient.CreatedToken{Token: tokenOf(created), Secret: secret}, err)
}

type rotateToken struct {
	Token string `path:"token" doc:"ID of the token." example:"t7k2m4q9xt2"`
	Body  apiclient.TokenRotation
}

func (s *tokenHandlers) rotateToken(ctx context.Context, in *rotateToken) (*body[apiclient.CreatedToken], error) {
	id, err := bench.ParseTokenID(in.Token)
	if err != nil {
		return nil, err
	}
	who, err := act(ctx, apiclient.Act{Reason: in.Body.Reason})
	if err != nil {
		return nil, err
	}
	secret, err := NewToken(s.Random)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256([]byte(secret))
	rotated, err := s.record.RotateToken(ctx, store.Rotation{
		ID: id, SecretHash: hash[:], Overlap: time.Duration(in.Body.OverlapSeconds) * time.Second, Validity: time.Duration(in.Body.ValidSeconds) * time.Second,
	}, who)
	switch {
	case errors.Is(err, store.ErrTokenRevoked):
		return nil, problemf(http.StatusConflict, "revoked", "token %s was revoked; create another one with 'benchloom token create'", id)
	case errors.Is(err, store.ErrNotFound):
		return nil, problemf(http.StatusNotFound, "unknown-token", "no account has a token %s; 'benchloom token list' shows them; a collector gets another token with 'benchloom collector invite NAME --replace'", id)
	case err != nil:
		return nil, err
	}
	s.tokens.forgetToken(id)
	return answer(apiclient.CreatedToken{Token: tokenOf(rotated), Secret: secret}, nil)
}

type revokeToken struct {
	Token string `path:"token" doc:"ID of the token." example:"t7k2m4q9xt2"`
	Body  apiclient.TokenRevocation
}

func (s *tokenHandlers) revokeToken(ctx context.Context, in *revokeToken) (*body[apiclient.RevokedToken], error) {
	id, err := bench.ParseTokenID(in.Token)
	if err != nil {
		return nil, err
	}
	who, err := act(ctx, apiclient.Act{Reason: in.Body.Reason})
	if err != nil {
		return nil, err
	}
	if id == caller(ctx).Token {
		return nil, problemf(http.StatusConflict, "own-token", "token %s is the one that you use; revoke it with another administrator's, or give it another secret with 'benchloom token rotate %s'", id, id)
	}
	revoked, done, err := s.record.RevokeToken(ctx, id, who)
	if errors.Is(err, store.ErrNotFound) {
		return nil, problemf(http.StatusNotFound, "unknown-token", "there is no token %s; 'benchloom token list --all' shows them", id)
	}
	if err != nil {
		return nil, err
	}
	s.tokens.forgetToken(id)
	return answer(apiclient.RevokedToken{Token: tokenOf(revoked), Changed: done.Result.Changed}, nil)
}
