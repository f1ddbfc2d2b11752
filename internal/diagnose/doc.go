// Package diagnose explains the state of requests and jobs: what they wait for, their
// position in the queue, why each collector does not take a job, how its size class was
// chosen, what its runs have cost, and what can be repaired.
//
// It is pure: the same facts give the same explanation. It must not know how the facts
// are read, nor who asks; package inspect below it reads them.
package diagnose
