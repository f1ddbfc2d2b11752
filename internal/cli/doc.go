// Package cli turns what the API answers, or a local run has measured, into
// what the commands print: tables, live progress, durations, and reads the
// project files that people write.
//
// It is pure apart from the writers it is given: the clock and the size of the
// terminal come in as arguments. It must not know flags, exit codes, or how the
// API is reached.
package cli
