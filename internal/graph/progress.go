package graph

import (
	"container/heap"
	"fmt"
	"maps"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// Progress holds the states of a graph's nodes while facts change. Each fact touches only
// the nodes whose states follow from it; [States] over all facts gives the same.
//
// A limit that has passed becomes a fact: the node was skipped, and no later run of an
// input brings it back.
type Progress struct {
	graph  *Graph
	facts  []Facts
	states []State
	counts map[Status]int
	limits limits
	layer  []int
	now    time.Time
}

// Change is a node's step from one state to another.
type Change struct {
	Node     string
	From, To State
}

// NewProgress returns the states that follow from facts. Nodes without facts wait. The
// error wraps [bench.ErrInvalid].
func NewProgress(g *Graph, facts map[string]Facts, now time.Time) (*Progress, error) {
	p := &Progress{
		graph: g, facts: make([]Facts, g.Len()), states: make([]State, g.Len()), counts: make(map[Status]int),
		layer: make([]int, g.Len()), now: now,
	}
	for name, f := range facts {
		i, known := g.index[name]
		if !known {
			return nil, unknownNode(name)
		}
		if err := f.check(); err != nil {
			return nil, fmt.Errorf("node %q: %w", name, err)
		}
		p.facts[i] = f
	}
	for depth, layer := range g.layers {
		for _, i := range layer {
			p.layer[i] = depth
			p.enter(i, p.derive(i))
		}
	}
	return p, nil
}

func unknownNode(name string) error {
	return fmt.Errorf("%w: the graph has no node %q", bench.ErrInvalid, name)
}

// State returns a node's state; the zero State for an unknown node.
func (p *Progress) State(node string) State {
	i, known := p.graph.index[node]
	if !known {
		return State{}
	}
	return p.states[i]
}

// Facts returns the facts of a node, with what passed limits have added.
func (p *Progress) Facts(node string) Facts {
	i, known := p.graph.index[node]
	if !known {
		return Facts{}
	}
	return p.facts[i]
}

// Counts returns the number of nodes with each status.
func (p *Progress) Counts() map[Status]int { return maps.Clone(p.counts) }

// Set records new facts of nodes, all at once, and returns the changes that follow, each
// node's after those of its inputs. Limits that have passed by now are kept first: see
// [Progress.Expire]. The error wraps [bench.ErrInvalid]; nothing has changed then.
func (p *Progress) Set(facts map[string]Facts, now time.Time) ([]Change, error) {
	for name, f := range facts {
		if _, known := p.graph.index[name]; !known {
			return nil, unknownNode(name)
		}
		if err := f.check(); err != nil {
			return nil, fmt.Errorf("node %q: %w", name, err)
		}
	}
	changes := p.Expire(now)
	var touched []int
	for name, f := range facts {
		i := p.graph.index[name]
		p.facts[i] = f
		touched = append(touched, i)
	}
	return append(changes, p.follow(touched)...), nil
}

// Expire skips the nodes whose limits have passed, and returns the changes that follow.
func (p *Progress) Expire(now time.Time) []Change {
	p.now = later(p.now, now)
	var touched []int
	for len(p.limits) > 0 && !p.now.Before(p.limits[0].at) {
		l, _ := heap.Pop(&p.limits).(limit)
		touched = append(touched, l.node)
	}
	return p.follow(touched)
}

// NextLimit returns when the next limit passes.
func (p *Progress) NextLimit() (time.Time, bool) {
	for len(p.limits) > 0 {
		if l := p.limits[0]; p.states[l.node].Until.Equal(l.at) {
			return l.at, true
		}
		heap.Pop(&p.limits) // of a state that has passed
	}
	return time.Time{}, false
}

// follow derives the states of nodes and of what depends on them, layer by layer.
func (p *Progress) follow(touched []int) []Change {
	var changes []Change
	queue := &byLayer{layer: p.layer}
	queued := make(map[int]bool)
	add := func(i int) {
		if !queued[i] {
			queued[i] = true
			heap.Push(queue, i)
		}
	}
	direct := make(map[int]bool, len(touched))
	for _, i := range touched {
		direct[i] = true
		add(i)
	}
	for queue.Len() > 0 {
		i, _ := heap.Pop(queue).(int)
		before, after := p.states[i], p.derive(i)
		changed := !same(before, after)
		if changed {
			p.counts[before.Status]--
			p.enter(i, after)
			changes = append(changes, Change{p.graph.nodes[i].Name, before, after})
		}
		// New facts matter to dependents even if the state stays: a wave, a first success.
		if changed || direct[i] {
			for _, out := range p.graph.outputs[i] {
				add(out.node)
			}
		}
	}
	return changes
}

// enter records a node's state.
func (p *Progress) enter(i int, s State) {
	p.states[i] = s
	p.counts[s.Status]++
	if s.Status == Skipped && p.facts[i].Status == "" {
		f := &p.facts[i]
		f.Status, f.Since, f.Reason = Skipped, s.Since, s.Reason
	}
	if !s.Until.IsZero() {
		heap.Push(&p.limits, limit{s.Until, i})
	}
}

func (p *Progress) derive(i int) State {
	inputs := make([]Input, 0, len(p.graph.inputs[i]))
	for _, l := range p.graph.inputs[i] {
		inputs = append(inputs, Input{p.graph.edges[l.edge], p.states[l.node], p.facts[l.node]})
	}
	return StateOf(p.graph.nodes[i], p.facts[i], inputs, p.now)
}

func same(a, b State) bool {
	return a.Status == b.Status && a.Since.Equal(b.Since) && a.Until.Equal(b.Until) && a.Reason == b.Reason
}

type limit struct {
	at   time.Time
	node int
}

// limits is a heap, the earliest first.
type limits []limit

func (l limits) Len() int { return len(l) }
func (l limits) Less(i, j int) bool {
	return l[i].at.Before(l[j].at) || l[i].at.Equal(l[j].at) && l[i].node < l[j].node
}
func (l limits) Swap(i, j int) { l[i], l[j] = l[j], l[i] }

// Push is for package heap.
func (l *limits) Push(x any) { *l = append(*l, x.(limit)) }

// Pop is for package heap.
func (l *limits) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}

// byLayer is a heap of nodes, those of earlier layers first, so that each is derived once.
type byLayer struct {
	layer []int
	nodes []int
}

func (b *byLayer) Len() int { return len(b.nodes) }
func (b *byLayer) Less(i, j int) bool {
	x, y := b.nodes[i], b.nodes[j]
	return b.layer[x] < b.layer[y] || b.layer[x] == b.layer[y] && x < y
}
func (b *byLayer) Swap(i, j int) { b.nodes[i], b.nodes[j] = b.nodes[j], b.nodes[i] }

// Push is for package heap.
func (b *byLayer) Push(x any) { b.nodes = append(b.nodes, x.(int)) }

// Pop is for package heap.
func (b *byLayer) Pop() any {
	last := b.nodes[len(b.nodes)-1]
	b.nodes = b.nodes[:len(b.nodes)-1]
	return last
}
