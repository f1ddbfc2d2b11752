// Package stats describes the measurements of two artifacts that were measured apart: [Compare] says by how much each series
// differs, and [SignOf] whether that is a sign of a difference.
//
// Values that were measured apart give no verdict: sessions of the same thing differ by more than the spread within each.
// What may differ is measured again in turns, which package verdict judges.
//
// The package is pure: the same input gives the same result, to the byte. It must not know where values come from,
// which suites, metrics or machines there are, or what a commit is; names and units are opaque to it.
//
// # The first rule
//
// Up to version 0.1 verdicts came from the values themselves. [Compare] still computes them, as significant, confirmed and so
// on, and docs/statistics.md compares their errors with those of today's rule; nothing else relies on them.
//
// A report should show real changes and hardly anything else, with 5 to 10 values per side on noisy machines, in comparisons
// of ten to some hundred series. Neither usual method achieves that. A rank test at 0.05 for each series calls at least one
// of ten equal series different in 30 % of all comparisons, one of fifty in 80 to 90 %. With a correction for the number of
// tests nothing can be found at all: five values per side reach p = 2/252 = 0.008 at best, but ten series need 0.005. So a
// difference must pass several hurdles, each against another kind of error:
//
//  1. The two-sided Mann-Whitney U test, exact for up to 50 values (25 with ties), gives p < alpha. It assumes no
//     particular distribution of the noise, and a few wild values do not mislead it.
//
//  2. The relative change of the aggregated values reaches the threshold: that of the series' history
//     ([HistoryThreshold]), else the series' own, else 0.2 %. Less is not worth a person's time.
//
//  3. The change of the aggregated values and that of the medians have the same direction and both reach the noise
//     margin
//
//     s x t(alpha / 2m, d) x sqrt(1/nA + 1/nB + v)
//
//     where s is the standard deviation within the sides, pooled, with values clamped to within 4 robust standard
//     deviations of the median; t is Student's quantile with d = nA + nB - 2 degrees of freedom; m is the number of
//     tests in the comparison, so that the whole family keeps alpha (Bonferroni); v = 0.75 allows each side an offset
//     of 0.6 s of its own, since two sessions of the same thing (another moment, another memory layout) differ by more
//     than the spread within each. The margin therefore never shrinks to nothing, however many values there are.
//
// Hurdle 3 rests on a model of the noise, so its error rates are simulated, for several kinds of noise, by a test of
// the package: testdata/error-rates.txt. In short, for ten series and for fifty: at most one false alarm in twenty
// comparisons for normal, log-normal, exponential, outlier-ridden and autocorrelated (0.3) noise, and for sessions that
// are off by half the spread; +20 % at 2 % noise is always found; with outliers in 5 % of the values, in four of five
// cases at n=5 and always at n=10. Limits of the rule: +5 % at 2 % noise is mostly missed, and sessions that are off by
// as much as the spread cause false alarms in a fifth to half of the comparisons. Less noise helps against the former,
// more values do not; a history, a higher threshold, or measuring A and B in turns helps against the latter.
//
// Two cases are decided differently. Exact metrics, such as sizes, have no noise: any change is significant, with one value
// per side. If the sides are too small to reach p < alpha at all but the series has a history, a change that reaches the
// history's threshold is significant, as in rust-lang/rustc-perf. Everything else that cannot be tested is undecided, never
// "no difference".
//
// A significant difference is confirmed if it survives Holm's correction of the rank tests in the comparison, or is exact:
// then alpha holds for the whole family whatever the shape of the noise (as long as values are independent). [MinSamples]
// returns the number of values that this takes.
package stats
