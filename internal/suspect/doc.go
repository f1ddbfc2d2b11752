// Package suspect finds series that may differ from their history, so that both sides are measured again in turns.
//
// A suspicion is no verdict, and nobody is told of one: internal/verdict decides. Detection is liberal, since what it misses
// is found by nobody, and what it suspects wrongly costs only machine time.
//
// The package is pure. It knows nothing of the record or of jobs.
package suspect
