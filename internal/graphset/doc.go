// Package graphset derives what is shown of a request's graphs from their rows: the state of each node by the rule of
// internal/graph, and sums of them for each graph and for the set. It also decides which jobs a retrigger repeats.
//
// The package is pure. It must not know how rows are read, and shows nothing.
package graphset
