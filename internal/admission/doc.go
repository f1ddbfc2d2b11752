// Package admission decides in which order the requests of one project are worked on, and which of them may
// start now.
//
// The order has four groups: requests in progress, releases, requests whose artifacts are ready, requests that
// wait for artifacts. Within the third, a request stands behind its unfinished ancestors. See [Order] for the
// rules and [Policy] for the one choice there is.
//
// The package is pure: the result depends on nothing but the arguments, not even on the order in which the
// requests are given. It must not know where requests are stored, what time it is, how many requests may run at
// once, or anything of Temporal.
package admission
