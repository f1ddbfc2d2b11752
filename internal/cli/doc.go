// Package cli formats the output of commands: tables, live progress and durations,
// from answers of the API and from local results. It also reads project and queue
// files.
//
// It is pure apart from the writers it is given: the clock and the size of the
// terminal are arguments. It must not know flags, exit codes, or how the API is
// reached.
package cli
