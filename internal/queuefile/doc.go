// Package queuefile reads and writes the state of a project's queue as JSON: what is asked for and what is finished, and
// the order that follows from it. It is the format of `benchloom queue simulate`, and of the states that admissions
// record, so that what was decided can be decided again.
//
// Reading is strict: what it does not know, it refuses with the name of the entry and the field. The package must not know
// how the order is made, nor where files are.
package queuefile
