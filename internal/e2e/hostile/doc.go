// Package hostile attacks a running service as a collector, a client or a proxy would that
// means harm, and as outages do that mean nothing: one test at least for each thing that
// was once found to break it. The list of findings is counted; each names its tests.
//
// It holds tests only, which look for the binaries as those of internal/e2e do.
package hostile
