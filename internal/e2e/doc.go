// Package e2e tests the whole service from outside: real binaries, the embedded
// Temporal, a real Postgres, real processes and real HTTP. Each test has a service of its
// own; most of their records are databases of one Postgres, which saves creating one each.
//
// It holds tests only. They look for the binaries in BENCHLOOM_BIN and
// BENCHLOOM_TEMPORAL_DEV, then in bin/, and fail when these are missing. 'make test'
// builds them.
//
// The quick tests follow each kind of work through the service. Long ones, which begin with
// TestLong, look at disasters (lost databases, restored backups, machines that die), at
// resets in each phase, at shares of time that take minutes to tell, and at walks over
// every page.
package e2e
