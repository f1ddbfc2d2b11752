// Package gosuite writes a suite for the benchmarks of a Go module: it finds the
// benchmark functions with the go command and the module's git repository, and writes a
// suite.yaml whose artifacts are built from revisions of that repository.
//
// It must not know projects, services or how a suite is measured.
package gosuite
