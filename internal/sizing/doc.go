// Package sizing decides on which size class jobs run, and learns from each run what
// jobs of its shape need.
//
// It combines the rules of package sizeclass with the fleet, the project's configuration
// and the stored statistics. It decides as late as possible, when a job is about to be
// handed out, to use all that was learned until then. It must not know how jobs are
// handed out or run. It never keeps a job from running: if it cannot decide, the job
// runs where it waits.
package sizing
