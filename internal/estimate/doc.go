// Package estimate estimates the duration of jobs, and when the requests of a project will start and end.
//
// A job's duration comes from the history of the most similar jobs, and every answer names its basis in words. A forecast
// simulates the requests with these durations: collectors of a pool in parallel, a bounded number of requests at once,
// parents before their children.
//
// The package is pure: the clock and all data are arguments. It must not know where jobs are stored, how requests are
// ordered, or anything about Temporal.
package estimate
