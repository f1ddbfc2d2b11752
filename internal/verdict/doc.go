// Package verdict decides from pairs measured in turns whether two artifacts differ: changed, no difference, or undecided
// with its reason. docs/decisions/0012-verdicts.md explains the rule.
//
// A [Family] is all series that are re-measured together. They are measured in up to five looks, each a session of its own,
// until each series is decided; between the looks, [Family.Judge] says what is known. Everything that a verdict depends on
// is fixed before measuring: the size of the family, the looks, and the least relevant change of each series.
//
// The package is pure: the same evidence gives the same verdict. It knows nothing of requests, jobs or machines, nor of other
// rows than the one it judges.
package verdict
