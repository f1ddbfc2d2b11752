package graph

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Difference holds what changes from one graph to another.
type Difference struct {
	// Added and Removed list nodes by name.
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
	// Changed lists the nodes of both graphs that differ.
	Changed []NodeDifference `json:"changed,omitempty"`
	// EdgesAdded and EdgesRemoved are between nodes of both graphs. A changed condition
	// is in both.
	EdgesAdded   []Edge `json:"edges_added,omitempty"`
	EdgesRemoved []Edge `json:"edges_removed,omitempty"`
}

// NodeDifference holds what differs in a node.
type NodeDifference struct {
	Node   string            `json:"node"`
	Values []ValueDifference `json:"values"`
}

// ValueDifference is a value that differs, as JSON; empty: not there.
type ValueDifference struct {
	// Path leads to the value within the node's encoding, such as definition.iterations.
	Path string `json:"path"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// Diff returns what changes from one graph to another.
func Diff(from, to *Graph) (Difference, error) {
	var d Difference
	for _, n := range from.nodes {
		other, kept := to.Node(n.Name)
		if !kept {
			d.Removed = append(d.Removed, n.Name)
			continue
		}
		values, err := nodeDifference(n, other)
		if err != nil {
			return Difference{}, fmt.Errorf("comparing node %q: %w", n.Name, err)
		}
		if len(values) > 0 {
			d.Changed = append(d.Changed, NodeDifference{n.Name, values})
		}
	}
	for _, n := range to.nodes {
		if _, known := from.index[n.Name]; !known {
			d.Added = append(d.Added, n.Name)
		}
	}
	d.EdgesRemoved = edgesMissing(from, to)
	d.EdgesAdded = edgesMissing(to, from)
	return d, nil
}

// edgesMissing returns the edges of one graph that another one with both nodes lacks.
func edgesMissing(of, in *Graph) []Edge {
	there := make(map[Edge]bool, len(in.edges))
	for _, e := range in.edges {
		there[e] = true
	}
	var missing []Edge
	for _, e := range of.edges {
		_, from := in.index[e.From]
		_, to := in.index[e.To]
		if from && to && !there[e] {
			missing = append(missing, e)
		}
	}
	return missing
}

func nodeDifference(a, b Node) ([]ValueDifference, error) {
	if a.Job.hash == b.Job.hash && a.LimitSeconds == b.LimitSeconds && a.Latest == b.Latest {
		return nil, nil
	}
	from, err := values(a)
	if err != nil {
		return nil, err
	}
	to, err := values(b)
	if err != nil {
		return nil, err
	}
	paths := make(map[string]bool, len(from)+len(to))
	for path := range from {
		paths[path] = true
	}
	for path := range to {
		paths[path] = true
	}
	var out []ValueDifference
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if from[path] != to[path] {
			out = append(out, ValueDifference{path, from[path], to[path]})
		}
	}
	return out, nil
}

// values returns the values of a node's encoding by their paths, lists as one value.
func values(n Node) (map[string]string, error) {
	encoded, err := encode(n)
	if err != nil {
		return nil, err
	}
	var tree map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &tree); err != nil {
		return nil, fmt.Errorf("reading an encoded node: %w", err)
	}
	var job map[string]json.RawMessage
	if err := json.Unmarshal(tree["job"], &job); err != nil {
		return nil, fmt.Errorf("reading an encoded job: %w", err)
	}
	delete(tree, "job")
	delete(tree, "name")
	tree["kind"], tree["definition"] = job["kind"], job["definition"]
	out := make(map[string]string)
	return out, flatten("", tree, out)
}

func flatten(at string, tree map[string]json.RawMessage, into map[string]string) error {
	for key, value := range tree {
		path := strings.TrimPrefix(at+"."+key, ".")
		if !strings.HasPrefix(string(value), "{") {
			into[path] = string(value)
			continue
		}
		var below map[string]json.RawMessage
		if err := json.Unmarshal(value, &below); err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		if err := flatten(path, below, into); err != nil {
			return err
		}
	}
	return nil
}

// Empty reports whether nothing differs.
func (d Difference) Empty() bool {
	return len(d.Added)+len(d.Removed)+len(d.Changed)+len(d.EdgesAdded)+len(d.EdgesRemoved) == 0
}

// Words tells the difference, one line for each: nodes added and removed, what changed in
// the others, and what they need.
func (d Difference) Words() []string {
	var lines []string
	for _, name := range d.Added {
		lines = append(lines, name+" is new")
	}
	for _, name := range d.Removed {
		lines = append(lines, name+" is gone")
	}
	for _, n := range d.Changed {
		for _, v := range n.Values {
			lines = append(lines, n.Node+": "+v.words())
		}
	}
	type ends struct{ from, to string }
	before := make(map[ends]Condition)
	for _, e := range d.EdgesRemoved {
		before[ends{e.From, e.To}] = e.Condition
	}
	for _, e := range d.EdgesAdded {
		between := ends{e.From, e.To}
		if was, changed := before[between]; changed {
			lines = append(lines, fmt.Sprintf("%s needs %s (%s) instead of (%s)", e.To, e.From, e.Condition, was))
			delete(before, between)
			continue
		}
		lines = append(lines, fmt.Sprintf("%s now needs %s (%s)", e.To, e.From, e.Condition))
	}
	for _, e := range d.EdgesRemoved {
		if _, gone := before[ends{e.From, e.To}]; gone {
			lines = append(lines, fmt.Sprintf("%s no longer needs %s", e.To, e.From))
		}
	}
	return lines
}

func (v ValueDifference) words() string {
	path := strings.TrimPrefix(v.Path, "definition.")
	switch {
	case v.From == "":
		return fmt.Sprintf("%s is new: %s", path, v.To)
	case v.To == "":
		return fmt.Sprintf("%s is gone; it was %s", path, v.From)
	}
	return fmt.Sprintf("%s was %s, is %s", path, v.From, v.To)
}
