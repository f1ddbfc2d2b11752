// Package graphdraw lays graphs out for drawing: boxes in layers, each to the right of all that it needs, and lines between
// them.
//
// A small graph has a box for each node. In a large one, nodes of one layer, group and state share a box, and long rows of
// layers become bands, so that a graph of any size gives a drawing of a bounded one. Within a layer boxes are ordered by
// the mean place of what they need, which avoids most crossings (barycentre method: Sugiyama, Tagawa, Toda, "Methods for
// Visual Understanding of Hierarchical System Structures", IEEE SMC 11(2), 1981).
//
// The package must not know what nodes and states mean, nor which page shows them.
package graphdraw
