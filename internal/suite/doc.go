// Package suite reads benchmark suites: folders with a file suite.yaml that
// says what is measured and how. It expands a suite into jobs and test cases,
// resolves each test case into commands to run ([Recipe]), and packs folders
// into bundles that are addressed by the hash of their contents.
//
// Everything that can be wrong with a suite is found when it is loaded, with
// file, line and column; what has been loaded can be run.
//
// The package reads and writes files and nothing else: it must not know how
// commands are run, where artifacts come from, or who asked for a job.
package suite
