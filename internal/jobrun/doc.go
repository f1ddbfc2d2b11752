// Package jobrun runs one job on this machine: it prepares the variants of a
// suite, measures their test cases in interleaved iterations and delivers
// finished blocks to a [Sink].
//
// A block is the test cases of one variant (a benchmark with its profile and
// backend). It is prepared once; then each iteration of each test case, and of
// each subject when two artifacts are compared, starts from a fresh copy of
// what was prepared, always at the same path. Test cases fail individually; an
// error of the machine, the sink or the context ends the whole job.
//
// The package must not know who requested the job, where results go, or how an
// artifact was fetched: nothing of Temporal, HTTP or the database.
package jobrun
