// Package flame turns the output of profilers into one form, that of pprof, and a profile
// into a table of functions, a flame graph, and the difference between two profiles.
//
// [Parse] reads a format; everything else works on google/pprof's [profile.Profile], with the
// values of one of its sample types. A profile explains a measurement and never is one: no
// value from here enters a comparison of results.
//
// The package is pure and bounded: whatever its input, it ends with a profile or with an error that
// names the place. It must not know where profiles are kept, how they came about, or which page
// shows them.
package flame
