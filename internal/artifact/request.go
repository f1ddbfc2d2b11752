package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Request names one artifact.
type Request struct {
	Provider string `json:"provider"` // name of a [Provider], such as "go-toolchain"
	Tag      string `json:"tag"`      // version or SHA
	// Target is the target tuple of the artifact, such as "x86_64-unknown-linux-gnu"; empty means this machine's.
	Target string `json:"target,omitempty"`
	// Parameters configure the provider, which documents their names. Unknown names are refused.
	Parameters map[string]string `json:"parameters,omitempty"`
}

// String returns the artifact's name for people.
func (r Request) String() string {
	s := r.Provider + " " + r.Tag
	if r.Target != "" {
		s += " for " + r.Target
	}
	return s
}

// Key identifies the artifact by the request, not by its content. Two resolved requests (see [Provider]) with the same key
// mean the same artifact.
func (r Request) Key() string {
	var b strings.Builder
	for _, part := range []string{r.Provider, r.Tag, r.Target} {
		b.WriteString(strconv.Quote(part) + " ")
	}
	for _, name := range slices.Sorted(maps.Keys(r.Parameters)) {
		b.WriteString(strconv.Quote(name) + "=" + strconv.Quote(r.Parameters[name]) + " ")
	}
	return strings.TrimSuffix(b.String(), " ")
}

// entryName returns the key as a file name with a readable start and a unique end.
func (r Request) entryName() string {
	const readable = 60 // bytes of provider and tag that are kept; paths of toolchains are long as it is
	clean := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
			return c
		}
		return '_'
	}, r.Provider+"-"+r.Tag)
	sum := sha256.Sum256([]byte(r.Key()))
	return strings.TrimLeft(clean[:min(len(clean), readable)], ".") + "-" + hex.EncodeToString(sum[:8])
}

// onlyParameters refuses parameters that a provider does not know. A known name that ends in "." matches all names with that
// prefix.
func (r Request) onlyParameters(known ...string) error {
	for _, name := range slices.Sorted(maps.Keys(r.Parameters)) {
		if slices.ContainsFunc(known, func(k string) bool {
			return name == k || strings.HasSuffix(k, ".") && strings.HasPrefix(name, k)
		}) {
			continue
		}
		remedy := "remove it: this provider has no parameters"
		if len(known) > 0 {
			remedy = "it knows " + strings.Join(known, ", ")
		}
		return r.invalid(fmt.Sprintf("unknown parameter %q", name), remedy)
	}
	return nil
}

func (r Request) invalid(reason, remedy string) error {
	return &Error{Kind: Invalid, Artifact: r.String(), Reason: reason, Remedy: remedy}
}

// checkTemplate refuses a request whose tag or target would lead out of the template's path. Tags come from submitters,
// templates from suites.
func (r Request) checkTemplate(template string) error {
	for _, placeholder := range [][2]string{{"tag", r.Tag}, {"target", r.Target}} {
		what, value := placeholder[0], placeholder[1]
		if !strings.Contains(template, "{"+what+"}") {
			continue
		}
		if value == "" {
			return r.invalid(what+" is empty, but "+template+" needs it", "name a "+what)
		}
		if strings.HasPrefix(value, "/") || strings.ContainsAny(value, "\\\x00") ||
			slices.Contains(strings.Split(value, "/"), "..") {
			return r.invalid(fmt.Sprintf("%s %q does not fit into a path", what, value), `use a relative name without ".." and "\"`)
		}
	}
	return nil
}

// expand replaces {tag} and {target}; escape is applied to each value.
func (r Request) expand(template string, escape func(string) string) string {
	return strings.NewReplacer("{tag}", escape(r.Tag), "{target}", escape(r.Target)).Replace(template)
}
