// Package fairshare decides the order of waiting jobs. From the configuration of queues
// and the limits of accounts it derives which jobs are next, at which level and weight,
// and which are held.
//
// It is pure, and must not know where configurations and jobs are stored, or how
// Temporal divides a task queue among its waiting jobs.
package fairshare
