// Package workflows holds the durable state machines of Benchloom: Request, Job,
// Queue, Reconcile, Retain and Watch.
//
// Each workflow function is a thin wrapper around a struct with its state.
// Postgres is the record and decides; signals are nudges. A workflow that was
// reset, continued as new or missed a signal reads the record again and
// continues. The package is deterministic: it must not know the database, the
// network, the machine's clock or anything else that could differ during replay.
package workflows
