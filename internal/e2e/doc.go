// Package e2e tests the whole service from outside: real binaries, the embedded
// Temporal, a real Postgres, real processes and real HTTP. Each test has a service of its
// own; most of their records are databases of one Postgres, which saves creating one each.
//
// It holds tests only. They look for the binaries in BENCHLOOM_BIN and
// BENCHLOOM_TEMPORAL_DEV, then in bin/, and fail when these are missing. 'make test'
// builds them.
package e2e
