// Package sizing decides on which size class the jobs of the record run, and lets
// what is known of their shapes grow with each run.
//
// It brings together what package sizeclass knows about sizes, where a job can run
// at all, what its project says, and the stored statistics. It decides when a job is
// among the next to be handed out, so that it knows as much as can be known. It must
// not know how jobs are handed out or run, and keeps none from running: what it cannot
// find out it does without.
package sizing
