// Package admission orders the requests of one project, decides which of them may start now, and estimates when each
// will start and end.
//
// The order has four groups: requests in progress, releases, requests whose artifacts are ready, and requests that wait
// for artifacts. Within the third group, a request comes after its unfinished ancestors. [Order] documents the rules;
// [Policy] is the only setting.
//
// [DecodeState] and [EncodeState] read and write the state that an order depends on, in the format of
// `benchloom queue simulate`. Each admission records its state in this format, so that it can be reproduced. [View]
// adds estimates to the order, from a [Snapshot] of the record.
//
// The package is pure: a result depends only on the arguments, and an order not even on the order in which the requests
// are given. It must not know where requests and files are stored, what time it is, or anything about Temporal.
package admission
