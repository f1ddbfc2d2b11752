// Package suite reads benchmark suites: folders with a file suite.yaml that
// defines what is measured and how. It expands a suite into jobs and test
// cases, resolves each test case into commands to run ([Recipe]), and packs
// folders into bundles that are addressed by the hash of their contents.
//
// All mistakes in a suite are reported when it is loaded, with file, line and
// column; a loaded suite can be run.
//
// The package only reads and writes files: it must not know how commands are
// run, where artifacts come from, or who requested a job.
package suite
