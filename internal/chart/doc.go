// Package chart draws line charts of histories as SVG.
//
// A line keeps the first, the lowest, the highest and the last value of each column (M4: Jugel et al., "M4: A
// Visualization-Oriented Time Series Data Aggregation", VLDB 2014), so that any number of points gives the same picture as
// all of them, at a bounded size. Colours are those of classes in a style sheet; there is no style and no script inside.
//
// The package must not know what the values mean, where they come from, or which page shows them.
package chart
