// Package report holds a comparison of two artifacts as it is shown: one row for each series, with what stored results say,
// what was measured in turns, and the verdict. [New] gives the verdicts, once, over all rows; [Report.Select] hides rows
// afterwards and changes none; [WriteText], [WriteMarkdown] and JSON write the same verdicts.
//
// The package is pure: the same input gives the same report, to the byte. It must not know where values come from,
// how they were measured, or who reads the report.
//
// # Where verdicts come from
//
// Stored results of two artifacts are two sessions, perhaps months apart. They describe (change, interval, number of values)
// and raise suspicions, but they never give a verdict: noise between sessions looks like a change. A verdict rests on pairs
// measured in turns, or on exact values; package verdict gives it. If a comparison was stored together with its verdicts,
// those are shown and nothing is judged again.
//
// Only deciding metrics have verdicts. Explaining metrics, such as cache misses, are shown and never counted.
package report
