// Package fairshare is how queues are configured: which share by weight, which
// are strict, and what an account may have at once.
//
// It checks configurations and says what follows from them for one job. It is pure,
// and must not know where configurations are kept or how Temporal divides a task
// queue.
package fairshare
