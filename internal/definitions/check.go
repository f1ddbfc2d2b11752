package definitions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
)

// defaultBranch stands for any branch if there is no file of branches.
const defaultBranch = "main"

// samples returns the branches on which templates are tried: each entry of the file, a
// pattern standing for itself. Branches with definitions of their own use no templates of
// the folder.
func (f *Folder) samples() []string {
	if f.branches.list == nil {
		return []string{defaultBranch}
	}
	var names []string
	for _, b := range f.branches.list {
		if b.Definitions == "" {
			names = append(names, b.Name)
		}
	}
	return names
}

// Tried is the expansion of a template on one branch, tried while a folder was checked.
type Tried struct {
	Template string `json:"template"`
	Branch   string `json:"branch"`
	Nodes    int    `json:"nodes"`
	Edges    int    `json:"edges"`
	Hash     string `json:"graph_hash"`
}

// Check expands every template on every branch that it is for, with defaults and examples.
// The error is an [*Error] with all problems, or the context's cause if the context ended.
func (f *Folder) Check(ctx context.Context) ([]Tried, error) {
	ps := &problems{}
	var tried []Tried
	for _, name := range slices.Sorted(maps.Keys(f.graphs)) {
		t := f.graphs[name]
		if !f.sampled(t, ps) {
			continue
		}
		for _, branch := range f.samples() {
			if !t.isFor(branch) {
				continue
			}
			e, err := f.Expand(ctx, f.sample(t, branch))
			if err == nil {
				tried = append(tried, Tried{name, branch, e.Graph.Len(), len(e.Graph.Edges()), e.Hash})
				continue
			}
			var list *Error
			switch {
			case errors.As(err, &list):
				for _, p := range list.Problems {
					ps.add(position{p.File, p.Line, p.Column}, "%s", p.Message)
				}
			case errors.Is(err, bench.ErrInvalid):
				ps.add(t.at, "%v", err)
			default:
				return nil, err
			}
		}
	}
	return tried, ps.err()
}

// sampled reports whether each parameter has a value to try.
func (f *Folder) sampled(t *graphTemplate, ps *problems) bool {
	ok := true
	for _, p := range t.parameters {
		if p.sample() == nil {
			ps.add(p.at, "the parameter %q has neither default nor example, so the template cannot be checked; give one of them", p.Name)
			ok = false
		}
	}
	return ok
}

// sample returns a call with examples for parameters that the branch does not set.
func (f *Folder) sample(t *graphTemplate, branch string) Call {
	rule, _ := f.branches.find(branch)
	call := Call{t.name, branch, make(map[string]Value)}
	for _, p := range t.parameters {
		if _, set := rule.Parameters[p.Name]; !set && p.sample() != nil {
			call.Parameters[p.Name] = p.sample()
		}
	}
	return call
}

// Difference tells what changes from one folder to another.
type Difference struct {
	// From and To are the folders' content hashes.
	From string `json:"from"`
	To   string `json:"to"`
	// Branches tells in words what changes about branches and switches.
	Branches []string `json:"branches,omitempty"`
	// Graphs lists the templates and branches whose graphs differ.
	Graphs []GraphDifference `json:"graphs,omitempty"`
}

// GraphDifference tells what changes in the graph of a template on a branch.
type GraphDifference struct {
	Template string `json:"template"`
	Branch   string `json:"branch"`
	// Only is "from" or "to" if only that folder has this graph; empty if both have it.
	Only string `json:"only,omitempty"`
	// Words tell the difference, one line each.
	Words []string `json:"words,omitempty"`
	// Difference is the same for programs; nil if only one folder has the graph.
	Difference *graph.Difference `json:"difference,omitempty"`
}

// Empty reports whether the folders make the same graphs and treat branches alike.
func (d Difference) Empty() bool { return len(d.Branches)+len(d.Graphs) == 0 }

// Diff tells what changes from one folder to another, in the graphs that each template
// makes for each branch with defaults and examples.
func Diff(ctx context.Context, from, to *Folder) (Difference, error) {
	d := Difference{From: from.hash, To: to.hash}
	if from.hash == to.hash {
		return d, nil
	}
	before, err := from.rendered(ctx)
	if err != nil {
		return Difference{}, err
	}
	after, err := to.rendered(ctx)
	if err != nil {
		return Difference{}, err
	}
	keys := slices.Sorted(maps.Keys(before))
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if before[key] == nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		was, is := before[key], after[key]
		switch {
		case is == nil:
			d.Graphs = append(d.Graphs, GraphDifference{Template: was.Template, Branch: was.Branch, Only: "from"})
		case was == nil:
			d.Graphs = append(d.Graphs, GraphDifference{Template: is.Template, Branch: is.Branch, Only: "to"})
		case was.Hash != is.Hash:
			difference, err := graph.Diff(was.Graph, is.Graph)
			if err != nil {
				return Difference{}, fmt.Errorf("comparing %s on %s: %w", is.Template, is.Branch, err)
			}
			d.Graphs = append(d.Graphs, GraphDifference{Template: is.Template, Branch: is.Branch, Words: difference.Words(), Difference: &difference})
		}
	}
	d.Branches = branchWords(from, to)
	return d, nil
}

// rendered returns all graphs of a folder, by template and branch.
func (f *Folder) rendered(ctx context.Context) (map[string]*Expansion, error) {
	all := make(map[string]*Expansion)
	for _, name := range slices.Sorted(maps.Keys(f.graphs)) {
		t := f.graphs[name]
		for _, branch := range f.samples() {
			if !t.isFor(branch) {
				continue
			}
			e, err := f.Expand(ctx, f.sample(t, branch))
			if err != nil {
				return nil, err
			}
			all[name+"\x00"+branch] = e
		}
	}
	return all, nil
}

// branchWords tells what changes about branches.
func branchWords(from, to *Folder) []string {
	var words []string
	before, after := rules(from), rules(to)
	for _, b := range to.branches.list {
		if _, known := before[b.Name]; !known {
			words = append(words, fmt.Sprintf("branch %s is new", b.Name))
		}
	}
	for _, b := range from.branches.list {
		is, kept := after[b.Name]
		if !kept {
			words = append(words, fmt.Sprintf("branch %s is gone", b.Name))
			continue
		}
		if b.Protected != is.Protected {
			words = append(words, fmt.Sprintf("branch %s is %s", b.Name, map[bool]string{true: "now protected", false: "no longer protected"}[is.Protected]))
		}
		if b.Customise != is.Customise {
			words = append(words, fmt.Sprintf("branch %s %s be customised", b.Name, map[bool]string{true: "may now", false: "may no longer"}[is.Customise]))
		}
		if b.Definitions != is.Definitions {
			own := func(s string) string {
				if s == "" {
					return "its own definitions"
				}
				return "the definitions of " + s
			}
			words = append(words, fmt.Sprintf("branch %s uses %s instead of %s", b.Name, own(is.Definitions), own(b.Definitions)))
		}
		was, now := from.branches.scope(b.Name, b), to.branches.scope(b.Name, is)
		for _, name := range slices.Sorted(maps.Keys(now)) {
			if old, known := was[name]; !known {
				words = append(words, fmt.Sprintf("branch %s: %s is new: %v", b.Name, name, now[name]))
			} else if fmt.Sprint(old) != fmt.Sprint(now[name]) {
				words = append(words, fmt.Sprintf("branch %s: %s was %v, is %v", b.Name, name, old, now[name]))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(was)) {
			if _, kept := now[name]; !kept {
				words = append(words, fmt.Sprintf("branch %s: %s is gone", b.Name, name))
			}
		}
	}
	return words
}

func rules(f *Folder) map[string]Branch {
	all := make(map[string]Branch)
	for _, b := range f.branches.list {
		all[b.Name] = b
	}
	return all
}
