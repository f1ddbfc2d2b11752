// Package e2e tests the whole service as a user meets it: the real binaries, the
// embedded Temporal, a private Postgres, real processes and real HTTP.
//
// It holds tests only. They find the binaries through BENCHLOOM_BIN and
// BENCHLOOM_TEMPORAL_DEV, else in bin/, and fail when these are missing: 'make
// test' builds them.
package e2e
