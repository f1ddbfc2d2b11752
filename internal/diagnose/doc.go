// Package diagnose says why a request or a job is where it is, and what would help:
// what it waits for, its position in its queue, why each collector does not take it,
// why it has its size class, what its runs have cost, and what can be repaired.
//
// It is pure: the same facts give the same words. It must not know how the facts are
// read, nor who asks; package inspect below it reads them.
package diagnose
