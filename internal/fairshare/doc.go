// Package fairshare holds the rules of whose turn it is: the configuration of queues
// and of accounts' limits, and what follows from them for waiting jobs: which of them
// go next, at which level, by which weight, and which are held.
//
// It is pure, and must not know where configurations and jobs are kept, or how Temporal
// divides a task queue among the jobs that wait there.
package fairshare
