// Package estimate says how long jobs will take, and when the requests of a project will start and end.
//
// A job's duration comes from the history of jobs like it, the more alike the better, and every answer says in words what
// it rests on. A forecast plays the requests through with these durations: collectors of a pool in parallel, a bounded number of
// requests at once, parents before their children.
//
// The package is pure: the clock and all data are arguments. It must not know where jobs are stored, how requests are
// ordered, or anything of Temporal.
package estimate
