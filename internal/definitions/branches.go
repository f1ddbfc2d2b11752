package definitions

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
)

// branchesFile names the file of the branches.
const branchesFile = "branches.yaml"

// Branch says what a branch sets, allows and uses.
type Branch struct {
	// Name is a branch, or a pattern of several in which * stands for any text.
	Name string `json:"name"`
	// Protected marks a branch whose work goes first, and whose graphs nobody changes.
	Protected bool `json:"protected"`
	// Customise allows jobs and graphs that differ from their templates.
	Customise bool `json:"customise"`
	// Definitions is the place whose definitions the branch uses instead of the folder's
	// own: repository@revision, or a local directory. Empty means the folder's own.
	Definitions string `json:"definitions,omitempty"`
	// Switches and Parameters override defaults.
	Switches   map[string]Value `json:"switches,omitempty"`
	Parameters map[string]Value `json:"parameters,omitempty"`

	at position
}

// branches is the content of the file of the branches.
type branches struct {
	switches []Parameter
	list     []Branch
	// raw holds the parameters as they are written, until all templates are read.
	raw []map[string]pair
}

// readBranches reads the file of the branches.
func readBranches(v *value, ps *problems) branches {
	d := &decoder{problems: ps}
	o := d.object(v, "switches", "branches")
	o.need("branches")
	var out branches
	if s, given := o.get("switches"); given {
		out.switches = d.declared(s)
		for _, p := range out.switches {
			if p.Default == nil {
				ps.add(p.at, "the switch %q has no default; give it one, which a branch may override", p.Name)
			}
		}
	}
	list, given := o.get("branches")
	if !given {
		return out
	}
	if list.kind != mapping {
		d.mistyped(list, "a mapping of branches")
		return out
	}
	for _, p := range list.pairs {
		out.branch(d, p)
	}
	return out
}

func (b *branches) branch(d *decoder, p pair) {
	o := d.object(p.value, "protected", "customise", "definitions", "switches", "parameters")
	checkHoles(p.value, nil, d.problems)
	out := Branch{Name: p.key, Protected: o.truth("protected"), Definitions: o.text("definitions"), at: p.at}
	if p.key == "" || len(p.key) > 255 || strings.ContainsFunc(p.key, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		d.add(p.at, "%q cannot name a branch", p.key)
	}
	out.Customise = !out.Protected
	if v, given := o.get("customise"); given {
		if out.Customise = o.truth("customise"); out.Customise && out.Protected {
			d.add(v.at, "the branch is protected: nobody may customise its graphs; remove one of the two")
		}
	}
	if v, given := o.get("definitions"); given {
		if err := checkPlace(out.Definitions); err != nil {
			d.add(v.at, "%v", err)
		}
	}
	if s, given := o.get("switches"); given {
		out.Switches = d.overrides(s, b.switches)
	}
	raw := make(map[string]pair)
	if v, given := o.get("parameters"); given {
		if v.kind != mapping {
			d.mistyped(v, "a mapping of parameters")
		}
		for _, one := range v.pairs {
			raw[one.key] = one
		}
	}
	b.list, b.raw = append(b.list, out), append(b.raw, raw)
}

// overrides reads values of declared switches.
func (d *decoder) overrides(v *value, declared []Parameter) map[string]Value {
	if v.kind != mapping {
		d.mistyped(v, "a mapping of names and values")
		return nil
	}
	out := make(map[string]Value)
	for _, p := range v.pairs {
		i := slices.IndexFunc(declared, func(s Parameter) bool { return s.Name == p.key })
		if i < 0 {
			d.add(p.at, "the switch %q is not declared", p.key)
			continue
		}
		read, err := declared[i].read(p.value)
		if err != nil {
			d.add(p.value.at, "%v", err)
			continue
		}
		out[p.key] = read
	}
	return out
}

// checkPlace refuses a place of definitions that is neither repository@revision nor a
// directory.
func checkPlace(s string) error {
	repository, revision, both := cutLast(s, "@")
	switch {
	case strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) || s == "" || strings.HasPrefix(s, "-"):
	case !both:
		return nil
	case repository != "" && revision != "" && !strings.HasPrefix(revision, "-") && !strings.ContainsAny(revision, " ~^:?*[\\"):
		return nil
	}
	return fmt.Errorf("%q is no place of definitions; write repository@revision, or a local directory", s)
}

// cutLast cuts a text at the last separator.
func cutLast(s, separator string) (before, after string, found bool) {
	i := strings.LastIndex(s, separator)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(separator):], true
}

// settle reads the parameters of branches, which are those of graph templates.
func (b *branches) settle(graphs map[string]*graphTemplate, ps *problems) {
	d := &decoder{problems: ps}
	for i := range b.list {
		for _, key := range slices.Sorted(maps.Keys(b.raw[i])) {
			p := b.raw[i][key]
			known := false
			for _, name := range slices.Sorted(maps.Keys(graphs)) {
				for _, parameter := range graphs[name].parameters {
					if parameter.Name != key {
						continue
					}
					known = true
					read, err := parameter.read(p.value)
					if err != nil {
						d.add(p.value.at, "graph template %s: %v", name, err)
						continue
					}
					if b.list[i].Parameters == nil {
						b.list[i].Parameters = make(map[string]Value)
					}
					b.list[i].Parameters[key] = read
				}
			}
			if !known {
				d.add(p.at, "no graph template has a parameter %q", key)
			}
		}
	}
}

// find returns the entry for a branch: its own, else the first pattern that matches. Without a
// file of branches all branches are alike.
func (b *branches) find(name string) (Branch, error) {
	if b.list == nil {
		return Branch{Name: name, Customise: true}, nil
	}
	for _, one := range b.list {
		if one.Name == name {
			return one, nil
		}
	}
	for _, one := range b.list {
		if matches(one.Name, name) {
			return one, nil
		}
	}
	names := make([]string, len(b.list))
	for i, one := range b.list {
		names[i] = one.Name
	}
	return Branch{}, fmt.Errorf("%w: the branch %q is not in %s, which has %s; add it, or a pattern that matches it", bench.ErrInvalid, name, branchesFile, strings.Join(names, ", "))
}

// scope returns the variables that a branch sets, with the defaults of switches.
func (b *branches) scope(name string, of Branch) scope {
	s := scope{"branch": name}
	for _, p := range b.switches {
		s["switches."+p.Name] = p.Default
		if v, set := of.Switches[p.Name]; set {
			s["switches."+p.Name] = v
		}
	}
	return s
}

// types returns the types of the variables that every branch sets.
func (b *branches) types() map[string]Type {
	types := map[string]Type{"branch": TypeString}
	for _, p := range b.switches {
		types["switches."+p.Name] = p.Type
	}
	return types
}

// matches reports whether a text matches a pattern in which * stands for any text.
func matches(pattern, text string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, first)
	if !ok {
		return false
	}
	for {
		var piece string
		if piece, rest, wild = strings.Cut(rest, "*"); !wild {
			return strings.HasSuffix(text, piece)
		}
		i := strings.Index(text, piece)
		if i < 0 {
			return false
		}
		text = text[i+len(piece):]
	}
}
