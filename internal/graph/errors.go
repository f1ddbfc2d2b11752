package graph

import (
	"fmt"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
)

// CycleError reports nodes that need each other. It wraps [bench.ErrInvalid].
type CycleError struct {
	// Nodes lists the cycle once, each before the one that needs it.
	Nodes []string
}

func (e *CycleError) Error() string {
	const shown = 10
	way := strings.Join(e.Nodes[:min(shown, len(e.Nodes))], " → ")
	if n := len(e.Nodes) - shown; n > 0 {
		way += fmt.Sprintf(" → … (%d more)", n)
	}
	return fmt.Sprintf("%v: the graph has a cycle, so none of its nodes could begin: %s → %s; remove one of these edges", bench.ErrInvalid, way, e.Nodes[0])
}

// Unwrap returns [bench.ErrInvalid].
func (e *CycleError) Unwrap() error { return bench.ErrInvalid }

// SizeError reports too many nodes or edges, or no node. It wraps [bench.ErrInvalid].
type SizeError struct {
	What      string // nodes or edges
	Got, Most int
}

func (e *SizeError) Error() string {
	advice := "divide it into several graphs of one set"
	if e.What == "edges" {
		advice = "put a node between those that all need the same"
	}
	if e.Got == 0 {
		return fmt.Sprintf("%v: the graph has no nodes, so there is nothing to run", bench.ErrInvalid)
	}
	return fmt.Sprintf("%v: the graph has %d %s; at most %d are allowed: %s", bench.ErrInvalid, e.Got, e.What, e.Most, advice)
}

// Unwrap returns [bench.ErrInvalid].
func (e *SizeError) Unwrap() error { return bench.ErrInvalid }

// NodeError reports a node that is refused. It wraps [bench.ErrInvalid].
type NodeError struct {
	Node string
	// Twice marks a name that two nodes have.
	Twice bool
	err   error
}

func (e *NodeError) Error() string {
	if e.Twice {
		return fmt.Sprintf("%v: two nodes are named %q; give each a name of its own", bench.ErrInvalid, e.Node)
	}
	return fmt.Sprintf("node %q: %v", e.Node, e.err)
}

// Unwrap returns the reason, or [bench.ErrInvalid].
func (e *NodeError) Unwrap() error {
	if e.err == nil {
		return bench.ErrInvalid
	}
	return e.err
}

// EdgeError reports an edge that is refused. It wraps [bench.ErrInvalid].
type EdgeError struct {
	Edge Edge
	// Unknown is the end that names no node; empty: the edge is refused for another
	// reason.
	Unknown string
	rule    string
}

func (e *EdgeError) Error() string {
	return fmt.Sprintf("%v: the edge from %q to %q: %s", bench.ErrInvalid, e.Edge.From, e.Edge.To, e.rule)
}

// Unwrap returns [bench.ErrInvalid].
func (e *EdgeError) Unwrap() error { return bench.ErrInvalid }
