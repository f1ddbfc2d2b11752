// Package bench holds the words of the domain: targets, size classes, test
// cases, requests, jobs, runs, collectors and the IDs that tie them together.
//
// Everything here is a value: parsed or built by a constructor that refuses
// illegal states, compared with ==, printed with String and read back by the
// matching Parse function. The package must not know how anything is stored,
// scheduled, measured or sent; it imports nothing of this project.
package bench
