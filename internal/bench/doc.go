// Package bench holds the words of the domain: targets, size classes, test
// cases, requests, jobs, runs, collectors and the IDs that tie them together.
//
// Everything here is a value. Names and IDs are parsed by functions that refuse what
// cannot be one. Requests, jobs and runs are made by a constructor for each kind;
// their fields stand in embedded groups by meaning, and Validate holds the rules.
// Every refusal wraps [ErrInvalid]. The package must not know how anything is
// recorded, scheduled, measured or sent; it imports nothing of this project.
package bench
