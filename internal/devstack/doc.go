// Package devstack starts and watches the local processes of a stand-alone
// installation: the embedded Temporal server, a private Postgres cluster and
// the service's own processes, all with their data below one state directory.
//
// It knows how to start, watch, restart and stop a process, and what Temporal and
// Postgres need for that. It must not know what the service does with them: no task
// queue, no table, no workflow. It imports no other package of this project.
package devstack
