// Package graph defines graphs of jobs: what runs, and what has to end before.
//
// A [Job] is the definition of a node's work, without history, addressed by the hash of
// its canonical encoding. [New] builds a [Graph] from nodes and edges and refuses cycles,
// graphs that are too large, and edges that lead nowhere. The same nodes and edges, in any
// order, give the same bytes and the same hash.
//
// A graph never changes. What happens to its nodes are [Facts], kept apart from it, and
// one rule, [StateOf], gives the state of a node from its own facts and the states of its
// inputs. [States] applies the rule to a whole graph, [Progress] to what a new fact
// changes. [Diff] tells the differences of two graphs in words.
//
// The package is pure. It must not know how graphs are made, recorded, drawn or run.
package graph
