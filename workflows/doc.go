// Package workflows holds the durable state machines of Benchloom: Request, Job,
// Queue and Reconcile.
//
// Each workflow function is thin over a struct with its state. Postgres is the
// record and decides; signals are nudges, so a workflow that was reset,
// continued as new or lost a signal asks again and goes on. The package is
// deterministic: it must not know the database, the network, the clock of the
// machine or anything else that a replay could see differently.
package workflows
