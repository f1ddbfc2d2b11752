// Package paired tests and estimates a shift from the differences of pairs: the exact signed-rank test, the Hodges-Lehmann
// estimate and the interval from Walsh averages.
//
// Differences are expected on logarithms. Magnitudes that differ by less than 1e-12 are tied, so that the conversion of a
// unit, which rounds, decides nothing.
//
// The package is pure. It knows neither sessions nor thresholds nor verdicts: see internal/verdict.
package paired
