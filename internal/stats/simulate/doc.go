// Package simulate runs detection, re-measuring and verdicts on projects whose noise and changes are known, and counts how
// often the answers are wrong. docs/statistics.md has the figures.
//
// A project is a line of commits, each of which is a request: all test cases are measured, internal/suspect finds what may
// differ from its history, suspects are measured in turns within a budget as the service does it, and internal/verdict
// decides. The rule that [stats.Compare] implements compares the same values for reference.
//
// The package uses only the exported interfaces of the rules, so that it shows what the service does. It is pure: random
// numbers come in, and equal seeds give equal figures.
package simulate
