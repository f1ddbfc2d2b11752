package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/benchloom/benchloom/internal/store"
)

// scope says what a token that is restricted to one project may change with an operation.
// Reading is not restricted. The zero value stands for nothing: the operation concerns
// several projects, or none.
type scope string

const (
	// ofProject: its own project. The handler finds what it changes by lookup, which
	// refuses other projects.
	ofProject scope = "project"
	// ofNoProject: anything. What it stores is addressed by its content.
	ofNoProject scope = "content"
)

type restrictedKey struct{}

// restrict refuses an operation of the whole service, and makes [lookup] refuse projects other
// than the token's.
func restrict(ctx huma.Context, p store.Principal) (huma.Context, error) {
	switch of, _ := ctx.Operation().Metadata[scopeKey].(scope); of {
	case ofProject:
		return huma.WithValue(ctx, restrictedKey{}, p), nil
	case ofNoProject:
		return ctx, nil
	}
	return ctx, problemf(http.StatusForbidden, "other-project", "the token %s of %s may change only project %s, and this concerns the whole service; use another token, or ask an administrator for one", p.Token, p.Owner, p.Project)
}

// mayChange refuses a project when the caller's token is restricted to another one.
func mayChange(ctx context.Context, project string) error {
	p, restricted := ctx.Value(restrictedKey{}).(store.Principal)
	if !restricted || p.Project == project {
		return nil
	}
	return problemf(http.StatusForbidden, "other-project", "the token %s of %s may change only project %s, not %.80s; use another token, or ask an administrator for one", p.Token, p.Owner, p.Project, project)
}
