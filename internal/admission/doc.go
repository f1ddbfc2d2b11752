// Package admission orders the requests of one project, decides which of them may start now, and says when each
// is expected to start and end.
//
// The order has four groups: requests in progress, releases, requests whose artifacts are ready, requests that
// wait for artifacts. Within the third, a request stands behind its unfinished ancestors. See [Order] for the
// rules and [Policy] for the one choice there is.
//
// [DecodeState] and [EncodeState] read and write the state from which an order follows: the format of
// `benchloom queue simulate`, in which admissions are recorded, too, so that each can be decided again. [View] adds
// estimates to the order, from a [Snapshot] of the record.
//
// The package is pure: a result depends on nothing but the arguments, and an order not even on the order in which
// the requests are given. It must not know where requests are stored or files lie, what time it is, or anything of
// Temporal.
package admission
