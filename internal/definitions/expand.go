package definitions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
)

// maxRounds bounds the rounds of the loops of a template: conditions may leave out most of
// the nodes.
const maxRounds = 10 * graph.MaxNodes

// Bounds of the output of a small template: the bytes of all jobs of a graph together, and the
// names that are compared with patterns.
const (
	maxJobs     = 32 << 20
	maxCompared = 10_000_000
)

// Call describes one expansion of a template.
type Call struct {
	Template string
	Branch   string
	// Parameters hold values; missing ones are the branch's, else the defaults.
	Parameters map[string]Value
}

// Expansion is a graph with its inputs.
type Expansion struct {
	Template string `json:"template"`
	// Definitions is the folder's content hash.
	Definitions string `json:"definitions"`
	// Branch is the branch's name, and Rule what holds for it.
	Branch string `json:"branch"`
	Rule   Branch `json:"rule"`
	// Parameters are the ones in effect, given or not.
	Parameters map[string]Value `json:"parameters,omitempty"`
	// Hash is the graph's content hash.
	Hash  string       `json:"graph_hash"`
	Graph *graph.Graph `json:"graph"`
}

// Expand makes the graph of a template. The same folder, branch and parameters give the
// same graph, byte for byte. The error is an [*Error] if a place in the folder is at fault,
// wraps [bench.ErrInvalid] if the call is, and is the context's cause if the context ended.
func (f *Folder) Expand(ctx context.Context, call Call) (*Expansion, error) {
	t, err := f.template(call.Template)
	if err != nil {
		return nil, err
	}
	rule, err := f.branches.find(call.Branch)
	if err != nil {
		return nil, err
	}
	if !t.isFor(call.Branch) {
		return nil, fmt.Errorf("%w: the graph template %s is not for the branch %q; it is for %s", bench.ErrInvalid, t.name, call.Branch, strings.Join(t.only, ", "))
	}
	given, err := values("the graph template "+t.name, t.parameters, call.Parameters, rule.Parameters)
	if err != nil {
		return nil, err
	}
	e := &expander{template: t, branch: f.branches.scope(call.Branch, rule), given: given, from: make(map[string]position)}
	g, err := e.graph(ctx)
	if err != nil {
		return nil, e.placed(err)
	}
	return &Expansion{
		Template: t.name, Definitions: f.hash, Branch: call.Branch, Rule: rule, Parameters: given, Hash: g.Hash(), Graph: g,
	}, nil
}

func (t *graphTemplate) isFor(branch string) bool {
	return len(t.only) == 0 || slices.ContainsFunc(t.only, func(pattern string) bool { return matches(pattern, branch) })
}

// expander makes the graph of one template.
type expander struct {
	template *graphTemplate
	branch   scope // what the branch sets
	given    scope // the parameters
	nodes    []graph.Node
	needs    []wanted
	rounds   int
	cost     uint64
	size     int // of all jobs, in bytes
	compared int // names with patterns
	// from tells where each node comes from.
	from map[string]position
}

// wanted is an input of a node, before patterns are resolved.
type wanted struct {
	to, node string
	need     *need
}

// placed turns an error with a place into a problem of the folder.
func (e *expander) placed(err error) error {
	var at *placedError
	var cycle *graph.CycleError
	var node *graph.NodeError
	ps := &problems{}
	switch {
	case errors.As(err, &at):
		ps.add(at.at, "%s", at.message)
	case errors.As(err, &cycle):
		ps.add(e.from[cycle.Nodes[0]], "%v", cycle)
	case errors.As(err, &node):
		ps.add(e.from[node.Node], "%v", node)
	case errors.Is(err, bench.ErrInvalid):
		var known *Error
		if errors.As(err, &known) {
			return err
		}
		ps.add(e.template.at, "%v", err)
	default:
		return err
	}
	return ps.err()
}

func (e *expander) graph(ctx context.Context) (*graph.Graph, error) {
	for i := range e.template.nodes {
		if err := e.node(ctx, &e.template.nodes[i]); err != nil {
			return nil, err
		}
	}
	if n := len(e.nodes); n > graph.MaxNodes {
		return graph.New(e.nodes, nil) // says so
	}
	edges, err := e.edges(ctx)
	if err != nil {
		return nil, err
	}
	return graph.New(e.nodes, edges)
}

// node adds the nodes of one entry of the template.
func (e *expander) node(ctx context.Context, n *nodeTemplate) error {
	s := maps.Clone(e.given)
	maps.Copy(s, e.branch)
	lists := make([][]string, len(n.loops))
	for i, l := range n.loops {
		filled, err := s.fill(l.list)
		if err != nil {
			return err
		}
		for _, item := range filled.list {
			if item.kind == listing || item.kind == mapping {
				return &placedError{item.at, fmt.Sprintf("this is %s; a loop goes over strings", item.kind)}
			}
			lists[i] = append(lists[i], literalText(item))
		}
	}
	return e.loop(ctx, n, s, lists)
}

// loop goes over the lists that are left, the first one outermost.
func (e *expander) loop(ctx context.Context, n *nodeTemplate, s scope, lists [][]string) error {
	if len(lists) == 0 {
		return e.one(ctx, n, s)
	}
	name := n.loops[len(n.loops)-len(lists)].name
	for _, entry := range lists[0] {
		s[name] = entry
		if err := e.loop(ctx, n, s, lists[1:]); err != nil {
			return err
		}
	}
	return nil
}

// one adds a node if its condition holds.
func (e *expander) one(ctx context.Context, n *nodeTemplate, s scope) error {
	if e.rounds++; e.rounds > maxRounds {
		return &placedError{n.at, fmt.Sprintf("the loops of this template go round more than %d times; make their lists shorter", maxRounds)}
	}
	if e.rounds%checkEvery == 0 && ctx.Err() != nil {
		return fmt.Errorf("expanding the graph template %s: %w", e.template.name, context.Cause(ctx))
	}
	if n.when != nil {
		holds, cost, err := n.when.holds(ctx, s)
		if e.cost += cost; err == nil && e.cost > totalCost {
			err = &placedError{n.when.at, fmt.Sprintf("the conditions of this template take more than %d steps together; make them simpler, or the lists of loops shorter", totalCost)}
		}
		if err != nil {
			return e.during(err, n, s)
		}
		if !holds {
			return nil
		}
	}
	// Excess nodes are counted, so that the number can be told, but not made.
	if len(e.nodes) > graph.MaxNodes {
		e.nodes = append(e.nodes, graph.Node{})
		return nil
	}
	made, err := e.make(n, s)
	if err != nil {
		return e.during(err, n, s)
	}
	if e.size += len(made.Job.Canonical()); e.size > maxJobs {
		return &placedError{n.at, fmt.Sprintf("the jobs of this template have more than %d MB together; divide it", maxJobs>>20)}
	}
	e.nodes = append(e.nodes, made)
	if _, twice := e.from[made.Name]; !twice {
		e.from[made.Name] = n.at
	}
	for i := range n.needs {
		name, err := s.fill(n.needs[i].node)
		if err != nil {
			return e.during(err, n, s)
		}
		if len(e.needs) == graph.MaxEdges {
			return &placedError{n.needs[i].at, fmt.Sprintf("the nodes have more than %d needs; put a node between those that all need the same", graph.MaxEdges)}
		}
		e.needs = append(e.needs, wanted{made.Name, literalText(name), &n.needs[i]})
	}
	return nil
}

// during adds the branch and the values of the loops to an error: the same place may be right
// for others.
func (e *expander) during(err error, n *nodeTemplate, s scope) error {
	at := fmt.Sprintf(" (on branch %s", s["branch"])
	for _, l := range n.loops {
		at += fmt.Sprintf(", %s = %s", l.name, s[l.name])
	}
	at += ")"
	var placed *placedError
	var list *Error
	switch {
	case errors.As(err, &placed):
		return &placedError{placed.at, placed.message + at}
	case errors.As(err, &list):
		ps := &problems{}
		for _, p := range list.Problems {
			ps.add(position{p.File, p.Line, p.Column}, "%s", p.Message+at)
		}
		return ps.err()
	}
	return err
}

// make makes a node.
func (e *expander) make(n *nodeTemplate, s scope) (graph.Node, error) {
	name, err := s.fill(n.name)
	if err != nil {
		return graph.Node{}, err
	}
	out := graph.Node{Name: literalText(name)}
	ps := &problems{}
	d := &decoder{problems: ps}
	for key, v := range map[string]*value{"limit": n.limit, "latest": n.latest} {
		if v == nil {
			continue
		}
		filled, err := s.fill(v)
		if err != nil {
			return graph.Node{}, err
		}
		o := object{d, n.at, map[string]pair{key: {key, v.at, filled}}}
		if key == "limit" {
			out.LimitSeconds = o.seconds(key)
		} else {
			out.Latest = o.truth(key)
		}
	}
	if out.Job, err = e.work(n, s, d); err != nil {
		return graph.Node{}, err
	}
	return out, ps.err()
}

// work makes the job of a node.
func (e *expander) work(n *nodeTemplate, s scope, d *decoder) (graph.Job, error) {
	b := n.body
	if n.job != nil {
		inner, err := e.inner(n, s)
		if err != nil {
			return graph.Job{}, err
		}
		b, s = &n.job.body, inner
	}
	filled, err := s.fill(b.value)
	if err != nil {
		return graph.Job{}, err
	}
	j := d.job(&body{b.kind, b.at, filled})
	return j, d.err()
}

// inner returns the variables of a job template: its parameters, and what the branch sets.
func (e *expander) inner(n *nodeTemplate, s scope) (scope, error) {
	inner := maps.Clone(e.branch)
	for _, p := range n.job.parameters {
		inner[p.Name] = p.Default
	}
	for _, w := range n.with {
		filled, err := s.fill(w.value)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(n.job.parameters, func(p Parameter) bool { return p.Name == w.key })
		read, err := n.job.parameters[i].read(filled)
		if err != nil {
			return nil, &placedError{w.value.at, err.Error()}
		}
		inner[w.key] = read
	}
	return inner, nil
}

// edges resolves the needs of the nodes.
func (e *expander) edges(ctx context.Context) ([]graph.Edge, error) {
	names := slices.Sorted(maps.Keys(e.from))
	var edges []graph.Edge
	type ends struct{ from, to string }
	seen := make(map[ends]graph.Condition)
	for i, w := range e.needs {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return nil, fmt.Errorf("expanding the graph template %s: %w", e.template.name, context.Cause(ctx))
		}
		if e.compared > maxCompared {
			return nil, &placedError{w.need.at, fmt.Sprintf("more than %d names are compared with patterns; name nodes, or begin patterns with what only the wanted nodes begin with", maxCompared)}
		}
		var found []string
		if strings.Contains(w.node, "*") {
			found = e.matching(names, w)
		} else if _, known := e.from[w.node]; known {
			found = []string{w.node}
		}
		if len(found) == 0 && !w.need.optional {
			return nil, &placedError{w.need.at, fmt.Sprintf("the node %q needs %q, which the graph does not have on branch %s; name another, or write {node: %q, optional: true}", w.to, w.node, e.branch["branch"], w.node)}
		}
		for _, from := range found {
			if before, twice := seen[ends{from, w.to}]; twice {
				if before != w.need.on {
					return nil, &placedError{w.need.at, fmt.Sprintf("the node %q needs %q on %s and on %s; write one of them", w.to, from, before, w.need.on)}
				}
				continue
			}
			seen[ends{from, w.to}] = w.need.on
			if edges = append(edges, graph.Edge{From: from, To: w.to, Condition: w.need.on}); len(edges) > graph.MaxEdges {
				return nil, &placedError{w.need.at, fmt.Sprintf("the graph has more than %d edges; put a node between those that all need the same", graph.MaxEdges)}
			}
		}
	}
	return edges, nil
}

// matching returns the nodes whose names match a pattern, without the one that needs them.
func (e *expander) matching(names []string, w wanted) []string {
	prefix, _, _ := strings.Cut(w.node, "*")
	i, _ := slices.BinarySearch(names, prefix)
	var found []string
	for ; i < len(names) && strings.HasPrefix(names[i], prefix); i++ {
		e.compared++
		if names[i] != w.to && matches(w.node, names[i]) {
			found = append(found, names[i])
		}
	}
	return found
}
