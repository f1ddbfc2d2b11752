// Package sizing decides on which size class jobs run, and learns from each run what
// jobs of its shape need.
//
// It combines the rules of package sizeclass with the fleet, the project's configuration
// and the stored statistics. It decides as late as possible, when a job is among the
// next to be handed out, so that it knows most. It must not know how jobs are handed out
// or run, and keeps none from running: without an answer, a job runs where it waits.
package sizing
