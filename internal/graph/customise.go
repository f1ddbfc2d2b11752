package graph

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
)

// NodeChange changes one node of a graph.
type NodeChange struct {
	Node string
	// Set holds new values of the job's definition by their paths, such as iterations or
	// constraints.machines; nil stands for none.
	Set map[string]any
	// Remove takes the node out, with its edges.
	Remove bool
}

// Customise returns the graph with some nodes changed, and the difference in words. The error
// wraps [bench.ErrInvalid].
func (g *Graph) Customise(changes []NodeChange) (*Graph, []string, error) {
	nodes, removed := slices.Clone(g.nodes), make(map[string]bool)
	for _, c := range changes {
		i, known := g.index[c.Node]
		if !known {
			return nil, nil, unknownNode(c.Node)
		}
		if c.Remove {
			removed[c.Node] = true
			continue
		}
		job, err := nodes[i].Job.with(c.Set)
		if err != nil {
			return nil, nil, fmt.Errorf("node %q: %w", c.Node, err)
		}
		nodes[i].Job = job
	}
	nodes = slices.DeleteFunc(nodes, func(n Node) bool { return removed[n.Name] })
	edges := slices.DeleteFunc(slices.Clone(g.edges), func(e Edge) bool { return removed[e.From] || removed[e.To] })
	out, err := New(nodes, edges)
	if err != nil {
		return nil, nil, err
	}
	d, err := Diff(g, out)
	return out, d.Words(), err
}

// with returns the job with some values of its definition set.
func (j Job) with(set map[string]any) (Job, error) {
	body, err := encode(j.definition)
	if err != nil {
		return Job{}, err
	}
	var tree map[string]any
	if err := json.Unmarshal(body, &tree); err != nil {
		return Job{}, fmt.Errorf("reading an encoded job: %w", err)
	}
	for _, path := range slices.Sorted(maps.Keys(set)) {
		if err := setAt(tree, strings.Split(path, "."), set[path]); err != nil {
			return Job{}, fmt.Errorf("%w: %s: %w", bench.ErrInvalid, path, err)
		}
	}
	if body, err = encode(tree); err != nil {
		return Job{}, err
	}
	d, err := decodeDefinition(j.Kind(), body)
	if err != nil {
		return Job{}, err
	}
	return NewJob(d)
}

// setAt sets the value at a path; nil takes it out.
func setAt(tree map[string]any, path []string, value any) error {
	name := path[0]
	if len(path) > 1 {
		below, is := tree[name].(map[string]any)
		if tree[name] == nil {
			below, is = make(map[string]any), true
		}
		if !is {
			return fmt.Errorf("%s has a value, and no parts", name)
		}
		tree[name] = below
		return setAt(below, path[1:], value)
	}
	if value == nil {
		delete(tree, name)
		return nil
	}
	tree[name] = value
	return nil
}
