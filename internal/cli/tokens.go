package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
)

// TokenSecret writes a new token with its secret.
func TokenSecret(w io.Writer, t apiclient.CreatedToken, _ View) error {
	return write(w, Printable(fmt.Sprintf("token %s of %s: %s; it %s", t.ID, t.Owner, rights(t.Token), expiry(t.Token)))+
		"\n"+t.Secret+"\nThe secret is not shown again; give it to a client as BENCHLOOM_TOKEN, or in a file with --token-file.\n")
}

func rights(t apiclient.Token) string {
	switch {
	case t.Project != "":
		return t.Role + " of project " + t.Project
	case t.Collector != "":
		return t.Role + " " + t.Collector
	}
	return t.Role
}

func expiry(t apiclient.Token) string {
	if t.ExpiresAt == nil {
		return "does not expire"
	}
	return "expires on " + t.ExpiresAt.UTC().Format("2006-01-02 15:04 UTC")
}

// Tokens writes tokens.
func Tokens(w io.Writer, list apiclient.TokenList, v View) error {
	if len(list.Tokens) == 0 {
		return write(w, "There are no tokens.\n")
	}
	t := NewTable(Column{Heading: "token"}, Column{Heading: "account"}, Column{Heading: "role"}, Column{Heading: "project"},
		Column{Heading: "created"}, Column{Heading: "by"}, Column{Heading: "state"})
	day := func(at time.Time) string { return at.In(v.Now.Location()).Format("2006-01-02 15:04") }
	for _, k := range list.Tokens {
		state := "valid"
		switch {
		case k.RevokedAt != nil:
			state = "revoked on " + day(*k.RevokedAt)
		case k.ExpiresAt != nil && !k.ExpiresAt.After(v.Now):
			state = "expired on " + day(*k.ExpiresAt)
		case k.ExpiresAt != nil:
			state = "valid until " + day(*k.ExpiresAt)
		}
		t.Row(string(k.ID), k.Owner, k.Role, k.Project, day(k.CreatedAt), k.CreatedBy, state)
	}
	return t.Write(w, v.Width)
}
