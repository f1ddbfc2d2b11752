// Package artifact fetches the toolchains and builds to benchmark and keeps them in a cache shared by all collectors of a
// machine.
//
// A [Request] names an artifact: provider, tag, target and the provider's parameters. [Cache.Acquire] turns it into a
// directory that stays as it is until its [Handle] is released. A [Provider] is a source of artifacts. Providers that
// download implement [Fetcher], and the cache stores the result; providers that find installed artifacts implement
// [Locator], and these are used in place.
//
// Errors are an [*Error] wherever the reason is known; [KindOf] classifies any error by what the caller can do about it.
//
// The package knows nothing of jobs, workflows, the HTTP API or the database, and imports nothing of this project.
package artifact
