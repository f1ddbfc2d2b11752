// Package waittime computes how long jobs wait for a collector, and which part of them starts in time.
//
// A job waits from the moment from which it could run until it starts. Time in which it could not run stands apart, by its
// reason, and never counts as waiting. A service level counts the jobs that became able to run within a period: those that
// started within the objective, against those that started later or wait for longer than that already.
//
// The package must not know where times come from, what a pool or a queue is, or who reads the figures.
package waittime
