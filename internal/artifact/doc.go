// Package artifact gets the things to be benchmarked — toolchains, builds of one commit — onto this machine and keeps them
// in a cache that all collectors of the machine share.
//
// A [Request] names an artifact: provider, tag, target and the provider's parameters. [Cache.Acquire] turns it into a
// directory that stays as it is until its [Handle] is released. A [Provider] knows one place that artifacts come from.
// Those that download implement [Fetcher], and the cache stores what they fetch; those that find something already
// installed implement [Locator], and it is used in place.
//
// Errors are an [*Error] wherever the reason is known; [KindOf] sorts any error into what a caller has to decide on.
//
// The package knows nothing of jobs, workflows, the HTTP API or the database, and imports nothing of this project.
package artifact
