// Package bench defines the types of the domain: targets, size classes, test cases,
// requests, jobs, runs, collectors and their IDs.
//
// Everything here is a value. Parsers of names and IDs refuse invalid ones. Requests,
// jobs and runs have one constructor for each kind; Validate enforces the rules, and
// fields that belong together are embedded as a group. Every such error wraps
// [ErrInvalid]. The package must not know how anything is stored, scheduled, measured
// or sent; it imports no other package of this project.
package bench
