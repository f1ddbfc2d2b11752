package api

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jellydator/ttlcache/v3"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// TokenPrefix begins every token, so that leaked tokens are found.
const TokenPrefix = "blm_"

const tokenScheme = "token"

// Roles of users; each includes the permissions of those before it. Collectors have a
// separate role with only the permissions they need.
const (
	RoleReader    = "reader"
	RoleWriter    = "writer"
	RoleAdmin     = "admin"
	RoleCollector = "collector"
)

// Kinds of principals.
const (
	KindUser      = "user"
	KindCollector = "collector"
)

// access names the role that an operation needs.
type access string

const (
	// anyToken: no role, but a token that is sent must be known.
	anyToken access = "anyone"
	// toRead: reader; no token if reading is open.
	toRead access = "reader"
	// toFetch: like toRead, or collector.
	toFetch   access = "reader or collector"
	toWrite   access = "writer"
	toAdmin   access = "admin"
	toCollect access = "collector"
	// toEnroll: the token that collectors share. It opens nothing else.
	toEnroll access = "collector, with the shared token"
)

var rank = map[string]int{RoleReader: 1, RoleWriter: 2, RoleAdmin: 3}

// permits reports whether a principal has the role.
func (a access) permits(p store.Principal) bool {
	switch a {
	case anyToken:
		return true
	case toCollect:
		return p.Role == RoleCollector && p.Collector != ""
	case toEnroll:
		return p.Role == RoleCollector && p.Collector == ""
	case toFetch:
		return toCollect.permits(p) || rank[p.Role] >= rank[RoleReader]
	}
	return rank[p.Role] >= rank[string(a)]
}

// changes reports whether operations of people and CI systems with this access change
// something.
func (a access) changes() bool { return a == toWrite || a == toAdmin }

// open reports whether no token is needed.
func (a access) open(openRead bool) bool {
	return a == anyToken || openRead && (a == toRead || a == toFetch)
}

// Keys of an operation's metadata.
const (
	accessKey = "access"
	scopeKey  = "scope"
)

type principalKey struct{}

// caller returns the owner of the request's token; zero: it has none.
func caller(ctx context.Context) store.Principal {
	p, _ := ctx.Value(principalKey{}).(store.Principal)
	return p
}

// authorize refuses callers without the role that the operation needs.
func (s *base) authorize(ctx huma.Context, next func(huma.Context)) {
	need, _ := ctx.Operation().Metadata[accessKey].(access)
	p, err := s.identify(ctx.Context(), ctx.Header("Authorization"))
	if err == nil && p == (store.Principal{}) && !need.open(s.OpenRead) {
		err = problemf(http.StatusUnauthorized, "unauthorized", "%s %s: this needs a token: send 'Authorization: Bearer %s…'; the command line reads it from BENCHLOOM_TOKEN, or from the state directory of 'benchloom up'", ctx.Method(), ctx.Operation().Path, TokenPrefix)
	}
	if err == nil && p != (store.Principal{}) && !need.permits(p) && !need.open(s.OpenRead) {
		err = forbidden(p, need)
	}
	if err == nil && p.Project != "" && need.changes() {
		ctx, err = restrict(ctx, p)
	}
	if err != nil {
		s.refuse(ctx, s.problemOf(ctx.Context(), err))
		return
	}
	next(huma.WithValue(ctx, principalKey{}, p))
}

// forReaders serves a handler outside the OpenAPI document to callers who may read.
func (s *base) forReaders(next http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.OpenRead {
			next.ServeHTTP(w, r)
			return
		}
		p, err := s.identify(r.Context(), r.Header.Get("Authorization"))
		switch {
		case err != nil:
		case p == (store.Principal{}):
			w.Header().Set("WWW-Authenticate", `Bearer realm="benchloom"`)
			err = problemf(http.StatusUnauthorized, "unauthorized", "%s: reading is closed here: send 'Authorization: Bearer %s…' with a token of the role reader", r.URL.Path, TokenPrefix)
		case !toRead.permits(p):
			err = problemf(http.StatusForbidden, "forbidden", "the token of %s has the role %s, but this needs the role %s; use another token", p.Owner, p.Role, toRead)
		}
		if err != nil {
			s.writeError(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	}
}

// forbidden returns the problem of a caller without the needed role.
func forbidden(p store.Principal, need access) error {
	if need == toCollect && toEnroll.permits(p) {
		return problemf(http.StatusForbidden, "shared-token", "the token of %s is shared by collectors and only gives each of them its own; 'benchloom collector' gets that when it starts: use the same version as the API's", p.Owner)
	}
	return problemf(http.StatusForbidden, "forbidden", "the token of %s has the role %s, but this needs the role %s; use another token, or ask an administrator for one", p.Owner, p.Role, need)
}

// refuse writes an error before a handler is called.
func (s *base) refuse(ctx huma.Context, err error) {
	var headers huma.HeadersError
	if errors.As(err, &headers) {
		for name, values := range headers.GetHeaders() {
			for _, v := range values {
				ctx.AppendHeader(name, v)
			}
		}
	}
	p := &huma.ErrorModel{}
	if !errors.As(err, &p) {
		p = problemf(http.StatusInternalServerError, "internal", "the request failed")
	}
	if p.Status == http.StatusUnauthorized {
		ctx.SetHeader("WWW-Authenticate", `Bearer realm="benchloom"`)
	}
	ctx.SetHeader("Content-Type", "application/problem+json")
	ctx.SetStatus(p.Status)
	_ = s.huma.Marshal(ctx.BodyWriter(), "application/json", p) // fails only if the client is gone
}

// identify returns the owner of the token in an Authorization header; zero without one. It
// counts the call for the rate limits.
func (s *base) identify(ctx context.Context, header string) (store.Principal, error) {
	if header == "" {
		return store.Principal{}, s.limits.stranger(ctx)
	}
	scheme, secret, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") || !strings.HasPrefix(secret, TokenPrefix) {
		return store.Principal{}, s.limits.wrong(ctx, problemf(http.StatusUnauthorized, "unauthorized", "the Authorization header holds no token of Benchloom: send 'Bearer %s…'", TokenPrefix))
	}
	if !s.tokens.seen(secret) {
		if err := s.limits.suspicious(ctx); err != nil {
			return store.Principal{}, err
		}
	}
	p, err := s.tokens.principal(ctx, secret)
	switch {
	case errors.Is(err, store.ErrTokenExpired):
		return store.Principal{}, s.limits.wrong(ctx, problemf(http.StatusUnauthorized, "unauthorized", "the token %s of %s has expired, or was rotated; use its new secret, or ask an administrator for one ('benchloom token rotate %s')", p.Token, p.Owner, p.Token))
	case errors.Is(err, store.ErrTokenRevoked):
		return store.Principal{}, s.limits.wrong(ctx, problemf(http.StatusUnauthorized, "unauthorized", "the token %s of %s was revoked; ask an administrator for another one ('benchloom token create')", p.Token, p.Owner))
	case errors.Is(err, store.ErrNotFound):
		return store.Principal{}, s.limits.wrong(ctx, problemf(http.StatusUnauthorized, "unauthorized", "this token is not known; was it replaced? those of 'benchloom up' are in tokens/ below its state directory, and BENCHLOOM_TOKEN is read first"))
	}
	if err != nil {
		return p, err
	}
	return p, s.limits.known(ctx, secret)
}

// tokenTTL is the time for which a token is cached, and so for which a revoked one still
// works.
const tokenTTL = 10 * time.Second

// maxTokens bounds the cache; beyond it, the least recently used tokens are evicted.
const maxTokens = 10_000

// TokenRecord keeps tokens by the SHA-256 of their secrets.
type TokenRecord interface {
	PutToken(ctx context.Context, secretHash []byte, p store.Principal) error
	// PrincipalOf returns store.ErrNotFound for an unknown token, and
	// store.ErrTokenExpired or store.ErrTokenRevoked, with the principal, for one that
	// is no longer valid.
	PrincipalOf(ctx context.Context, secretHash []byte) (store.Principal, error)
}

// tokenCache finds the owners of tokens. Nothing runs in the background. It expires
// entries by the given clock, because the library knows only the real one.
type tokenCache struct {
	tokens TokenRecord
	now    func() time.Time
	known  *ttlcache.Cache[[sha256.Size]byte, knownToken]
}

type knownToken struct {
	principal store.Principal
	until     time.Time
}

func newTokenCache(tokens TokenRecord, now func() time.Time) *tokenCache {
	return &tokenCache{tokens: tokens, now: now, known: ttlcache.New(ttlcache.WithCapacity[[sha256.Size]byte, knownToken](maxTokens))}
}

func (c *tokenCache) principal(ctx context.Context, secret string) (store.Principal, error) {
	hash := sha256.Sum256([]byte(secret))
	if item := c.known.Get(hash); item != nil && c.now().Before(item.Value().until) {
		return item.Value().principal, nil
	}
	p, err := c.tokens.PrincipalOf(ctx, hash[:])
	if err != nil {
		return p, err
	}
	c.known.Set(hash, knownToken{principal: p, until: c.now().Add(tokenTTL)}, ttlcache.NoTTL)
	return p, nil
}

// seen reports whether a token was known lately. It may have been revoked since.
func (c *tokenCache) seen(secret string) bool { return c.known.Has(sha256.Sum256([]byte(secret))) }

// forget evicts the tokens of a collector.
func (c *tokenCache) forget(collector string) {
	c.evict(func(p store.Principal) bool { return p.Collector == collector })
}

// forgetToken evicts the secrets of a token.
func (c *tokenCache) forgetToken(id bench.TokenID) {
	c.evict(func(p store.Principal) bool { return p.Token == id })
}

func (c *tokenCache) evict(which func(store.Principal) bool) {
	for hash, item := range c.known.Items() {
		if which(item.Value().principal) {
			c.known.Delete(hash)
		}
	}
}

// NewToken draws a token of 160 random bits.
func NewToken(random io.Reader) (string, error) { return newToken(random, TokenPrefix) }

func newToken(random io.Reader, prefix string) (string, error) {
	raw := make([]byte, 20)
	if _, err := io.ReadFull(random, raw); err != nil {
		return "", fmt.Errorf("drawing a token: %w", err)
	}
	return prefix + strings.ToLower(base32.StdEncoding.EncodeToString(raw)), nil
}

// minToken is the minimum length of a token: shorter ones can be guessed.
const minToken = len(TokenPrefix) + 24

// TokenFile names a file with a token, and the token's owner.
type TokenFile struct {
	Path  string
	Owner string
	// Role is [RoleReader], [RoleWriter], [RoleAdmin] or [RoleCollector].
	Role string
}

// BootstrapTokens records the tokens in files. Only their SHA-256 is stored.
func BootstrapTokens(ctx context.Context, tokens TokenRecord, files []TokenFile) error {
	for _, f := range files {
		p := store.Principal{Kind: KindUser, Owner: f.Owner, Role: f.Role}
		if f.Role == RoleCollector {
			p.Kind = KindCollector
		} else if rank[f.Role] == 0 {
			return fmt.Errorf("token file %s: unknown role %q; use reader, writer, admin or collector", f.Path, f.Role)
		}
		if f.Owner == "" {
			return fmt.Errorf("token file %s: the token's owner is not named", f.Path)
		}
		text, err := os.ReadFile(f.Path)
		if err != nil {
			return fmt.Errorf("reading the token of %s: %w", f.Owner, err)
		}
		secret := strings.TrimSpace(string(text))
		if !strings.HasPrefix(secret, TokenPrefix) || len(secret) < minToken || strings.ContainsAny(secret, " \t\r\n") {
			return fmt.Errorf("token file %s: it does not hold one token of at least %d characters beginning with %s; remove it to have a new one made", f.Path, minToken, TokenPrefix)
		}
		hash := sha256.Sum256([]byte(secret))
		if err := tokens.PutToken(ctx, hash[:], p); err != nil {
			return fmt.Errorf("recording the token of %s: %w", f.Owner, err)
		}
	}
	return nil
}
