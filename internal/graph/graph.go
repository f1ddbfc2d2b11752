package graph

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Bounds of one graph.
const (
	MaxNodes = 10_000
	// MaxEdges allows two layers of 700 nodes that all need each other.
	MaxEdges = 500_000
)

// DefaultLimit bounds the time for which a node stays blocked after an input ended badly, unless it
// says otherwise: the longest deadline of a task in Taskcluster.
const DefaultLimit = 5 * 24 * time.Hour

// Node is a job's place in a graph. Two nodes may have the same job.
type Node struct {
	// Name identifies the node within its graph.
	Name string `json:"name"`
	Job  Job    `json:"job"`
	// LimitSeconds bounds the time for which the node stays blocked after an input ended badly, before
	// it is skipped; 0: [DefaultLimit].
	LimitSeconds int `json:"limit_seconds,omitempty"`
	// Latest makes the node see the latest run of each input; otherwise an input that
	// succeeded once has succeeded.
	Latest bool `json:"latest,omitempty"`
}

// Limit returns how long the node stays blocked after an input ended badly.
func (n Node) Limit() time.Duration {
	if n.LimitSeconds == 0 {
		return DefaultLimit
	}
	return time.Duration(n.LimitSeconds) * time.Second
}

// Edge says that a node needs another one.
type Edge struct {
	// From is the input, and To the node that needs it.
	From      string    `json:"from"`
	To        string    `json:"to"`
	Condition Condition `json:"on"`
}

// Graph is a set of nodes and edges without cycles. It never changes. Its methods return
// shared lists that must not be changed.
type Graph struct {
	nodes     []Node // by name
	edges     []Edge // by From and To
	index     map[string]int
	inputs    [][]link // by node
	outputs   [][]link
	layers    [][]int
	canonical []byte
	hash      string
}

// link is one end of an edge, seen from the other.
type link struct{ edge, node int }

// New returns the graph of nodes and edges, whatever their order. Its errors are a
// [CycleError], [SizeError], [NodeError] or [EdgeError]; all wrap [bench.ErrInvalid].
func New(nodes []Node, edges []Edge) (*Graph, error) {
	if n := len(nodes); n == 0 || n > MaxNodes {
		return nil, &SizeError{"nodes", n, MaxNodes}
	}
	if n := len(edges); n > MaxEdges {
		return nil, &SizeError{"edges", n, MaxEdges}
	}
	g := &Graph{nodes: slices.Clone(nodes), edges: slices.Clone(edges)}
	slices.SortFunc(g.nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(g.edges, func(a, b Edge) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	if err := g.indexNodes(); err != nil {
		return nil, err
	}
	if err := g.linkEdges(); err != nil {
		return nil, err
	}
	if err := g.layer(); err != nil {
		return nil, err
	}
	g.canonical = canonicalGraph(g.nodes, g.edges)
	g.hash = digest(graphPrefix, g.canonical)
	return g, nil
}

// graphPrefix keeps hashes of graphs apart from those of anything else.
const graphPrefix = "benchloom graph 1\n"

// canonicalGraph encodes a graph as encoding/json would. It puts the encodings of jobs in
// as they are, because reading each again takes most of the time. Names and conditions
// need no escapes.
func canonicalGraph(nodes []Node, edges []Edge) []byte {
	var out bytes.Buffer
	text := func(key, value string) {
		out.WriteString(key)
		out.WriteByte('"')
		out.WriteString(value)
		out.WriteByte('"')
	}
	separator := `{"nodes":[`
	for _, n := range nodes {
		out.WriteString(separator)
		text(`{"name":`, n.Name)
		out.WriteString(`,"job":`)
		out.Write(n.Job.canonical)
		if n.LimitSeconds > 0 {
			out.WriteString(`,"limit_seconds":` + strconv.Itoa(n.LimitSeconds))
		}
		if n.Latest {
			out.WriteString(`,"latest":true`)
		}
		out.WriteByte('}')
		separator = ","
	}
	out.WriteString(`],"edges":[`)
	separator = ""
	for _, e := range edges {
		out.WriteString(separator)
		text(`{"from":`, e.From)
		text(`,"to":`, e.To)
		text(`,"on":`, string(e.Condition))
		out.WriteByte('}')
		separator = ","
	}
	out.WriteString("]}")
	return out.Bytes()
}

func (g *Graph) indexNodes() error {
	g.index = make(map[string]int, len(g.nodes))
	for i, n := range g.nodes {
		if _, twice := g.index[n.Name]; twice {
			return &NodeError{Node: n.Name, Twice: true}
		}
		g.index[n.Name] = i
		err := cmp.Or(bench.CheckParameter("node", n.Name), checkLimit(n.LimitSeconds))
		if err == nil && n.Job.definition == nil {
			err = invalid("job", "", "the node has none")
		}
		if err != nil {
			return &NodeError{Node: n.Name, err: err}
		}
	}
	return nil
}

func (g *Graph) linkEdges() error {
	g.inputs, g.outputs = make([][]link, len(g.nodes)), make([][]link, len(g.nodes))
	for i, e := range g.edges {
		from, known := g.index[e.From]
		if !known {
			return &EdgeError{e, e.From, fmt.Sprintf("the graph has no node %q", e.From)}
		}
		to, known := g.index[e.To]
		if !known {
			return &EdgeError{e, e.To, fmt.Sprintf("the graph has no node %q", e.To)}
		}
		if from == to {
			return &EdgeError{e, "", "a node cannot need itself"}
		}
		if i > 0 && g.edges[i-1].From == e.From && g.edges[i-1].To == e.To {
			return &EdgeError{e, "", "it is there twice; keep one"}
		}
		if err := e.Condition.check(); err != nil {
			return &EdgeError{e, "", err.Error()}
		}
		g.inputs[to] = append(g.inputs[to], link{i, from})
		g.outputs[from] = append(g.outputs[from], link{i, to})
	}
	return nil
}

// layer puts each node in the first layer after those of its inputs.
func (g *Graph) layer() error {
	missing := make([]int, len(g.nodes))
	var at []int
	for i := range g.nodes {
		if missing[i] = len(g.inputs[i]); missing[i] == 0 {
			at = append(at, i)
		}
	}
	placed := 0
	for len(at) > 0 {
		g.layers = append(g.layers, at)
		placed += len(at)
		var next []int
		for _, i := range at {
			for _, out := range g.outputs[i] {
				if missing[out.node]--; missing[out.node] == 0 {
					next = append(next, out.node)
				}
			}
		}
		slices.Sort(next)
		at = next
	}
	if placed < len(g.nodes) {
		return &CycleError{g.cycle(missing)}
	}
	return nil
}

// cycle returns a cycle among the nodes that still miss inputs. Each of them has such a
// node as an input, so walking backwards closes a cycle.
func (g *Graph) cycle(missing []int) []string {
	i := slices.IndexFunc(missing, func(n int) bool { return n > 0 })
	seen := make(map[int]int)
	var way []int
	for {
		if begin, twice := seen[i]; twice {
			way = way[begin:]
			break
		}
		seen[i] = len(way)
		way = append(way, i)
		next := slices.IndexFunc(g.inputs[i], func(in link) bool { return missing[in.node] > 0 })
		i = g.inputs[i][next].node
	}
	slices.Reverse(way)
	first := slices.Index(way, slices.Min(way))
	names := make([]string, 0, len(way))
	for _, i := range slices.Concat(way[first:], way[:first]) {
		names = append(names, g.nodes[i].Name)
	}
	return names
}

// Parse reads a graph in canonical form, and refuses every other form.
func Parse(canonical []byte) (*Graph, error) {
	var e struct {
		Nodes []struct {
			Name         string          `json:"name"`
			Job          json.RawMessage `json:"job"`
			LimitSeconds int             `json:"limit_seconds"`
			Latest       bool            `json:"latest"`
		} `json:"nodes"`
		Edges []Edge `json:"edges"`
	}
	if err := decode(canonical, &e); err != nil {
		return nil, fmt.Errorf("reading a graph: %w", err)
	}
	nodes := make([]Node, 0, len(e.Nodes))
	for _, n := range e.Nodes {
		j, err := ParseJob(n.Job)
		if err != nil {
			return nil, fmt.Errorf("reading a graph: node %q: %w", n.Name, err)
		}
		nodes = append(nodes, Node{n.Name, j, n.LimitSeconds, n.Latest})
	}
	g, err := New(nodes, e.Edges)
	if err != nil {
		return nil, fmt.Errorf("reading a graph: %w", err)
	}
	if !bytes.Equal(g.canonical, canonical) {
		return nil, fmt.Errorf("reading a graph: %w: it is not in canonical form", bench.ErrInvalid)
	}
	return g, nil
}

// Canonical returns the one encoding of the graph, as JSON.
func (g *Graph) Canonical() []byte { return g.canonical }

// Hash returns the content hash: SHA-256 of the canonical encoding, 64 hexadecimal digits.
func (g *Graph) Hash() string { return g.hash }

// MarshalJSON returns the canonical encoding.
func (g *Graph) MarshalJSON() ([]byte, error) { return g.canonical, nil }

// Len returns the number of nodes.
func (g *Graph) Len() int { return len(g.nodes) }

// Nodes returns the nodes by name.
func (g *Graph) Nodes() []Node { return g.nodes }

// Edges returns the edges by From and To.
func (g *Graph) Edges() []Edge { return g.edges }

// Node returns a node by its name.
func (g *Graph) Node(name string) (Node, bool) {
	i, ok := g.index[name]
	if !ok {
		return Node{}, false
	}
	return g.nodes[i], true
}

// Inputs returns the edges to a node, by From; none for an unknown node.
func (g *Graph) Inputs(name string) []Edge { return g.edgesOf(name, g.inputs) }

// Dependents returns the edges from a node, by To; none for an unknown node.
func (g *Graph) Dependents(name string) []Edge { return g.edgesOf(name, g.outputs) }

func (g *Graph) edgesOf(name string, links [][]link) []Edge {
	i, ok := g.index[name]
	if !ok {
		return nil
	}
	edges := make([]Edge, 0, len(links[i]))
	for _, l := range links[i] {
		edges = append(edges, g.edges[l.edge])
	}
	return edges
}

// Layers divides the nodes so that each stands in the first layer after all of its
// inputs, by name within a layer.
func (g *Graph) Layers() [][]string {
	layers := make([][]string, 0, len(g.layers))
	for _, at := range g.layers {
		names := make([]string, 0, len(at))
		for _, i := range at {
			names = append(names, g.nodes[i].Name)
		}
		layers = append(layers, names)
	}
	return layers
}

// Order returns all nodes, each after its inputs, in the same order for the same graph.
func (g *Graph) Order() []string { return slices.Concat(g.Layers()...) }
