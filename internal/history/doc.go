// Package history arranges the histories of series: which of them come first, which share a chart, and how several are
// summed up in one line. It gives no verdicts; the order in which it shows series says where to look first.
//
// The package must not know how values are stored, drawn or shown.
package history
