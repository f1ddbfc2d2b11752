package pages

import (
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/apiclient"
)

// act is an action that a page offers: a form for those who may, and the command line for
// all.
type act struct {
	// Name tells the forms of a page apart.
	Name, Title, About string
	// Address takes the form.
	Address string
	// Fields are sent besides the reason and the key.
	Fields []field
	// Pick offers a choice in the form; nil: there is none.
	Pick *pick
	// NeedsReason is set when the reason must be given, Grave when the action ends
	// something.
	NeedsReason, Grave bool
	// Allowed says whether the visitor may act; WhyNot says what is missing.
	Allowed bool
	WhyNot  string
	// Command does the same on the command line; empty: the page has it elsewhere.
	Command string
	// Key makes the action happen once, however often the form is sent.
	Key string
}

// pick is a choice of one of several values.
type pick struct {
	Name, Label string
	Values      []string
}

// field is a hidden field of a form.
type field struct{ Name, Value string }

// Rights, as roles of tokens.
const (
	rightToWrite = "writer"
	rightToAdmin = "admin"
)

// may reports whether the visitor has a role in a project, and what is missing. The API
// decides; this only spares people forms that it would refuse.
func (v *visit) may(role, project string) (bool, string) {
	rank := map[string]int{"reader": 1, rightToWrite: 2, rightToAdmin: 3}
	switch {
	case v.who.Role == "":
		return false, "This needs a token with the role " + role + "; sign in with one."
	case rank[v.who.Role] < rank[role]:
		return false, fmt.Sprintf("This needs the role %s; your token has the role %s.", role, v.who.Role)
	case v.who.Project != "" && v.who.Project != project:
		return false, "Your token may change only project " + v.who.Project + "."
	}
	return true, ""
}

// offer completes an action for the visitor.
func (p *Pages) offer(v *visit, role, project string, a act) (act, error) {
	a.Allowed, a.WhyNot = v.may(role, project)
	var raw [12]byte
	if _, err := io.ReadFull(p.Random, raw[:]); err != nil {
		return a, fmt.Errorf("drawing the key of a form: %w", err)
	}
	a.Key = "page-" + hex.EncodeToString(raw[:])
	return a, nil
}

// sent returns the reason and the key of a form that was sent.
func (v *visit) sent() apiclient.Act {
	return apiclient.Act{Reason: strings.TrimSpace(v.PostFormValue("reason")), IdempotencyKey: v.PostFormValue("key")}
}

// quoted writes words as a shell reads them.
func quoted(words ...string) string {
	words = slices.Clone(words)
	for i, w := range words {
		plain := func(r rune) bool {
			return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@%+", r)
		}
		if w == "" || strings.IndexFunc(w, func(r rune) bool { return !plain(r) }) >= 0 {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
