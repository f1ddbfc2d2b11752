// Package sizeclass learns the smallest adequate size class of a job from the
// outcomes of its runs.
//
// An [Analyzer] holds a checked [Policy]. It selects a class and a timeout for
// a run ([Analyzer.Select]), escalates a run whose class was too small
// ([Analyzer.Escalate]), and learns from the outcome of each attempt
// ([Analyzer.Learn]). Its knowledge about a job is passed and returned as
// [Statistics], which the caller stores.
//
// A class is better than another if time × class^exponent is less. The
// acceptable time and the timeout of each class follow from that; see [Factor],
// [AcceptableTime] and [Timeout]. A class that has never been tried, or not
// recently, is probed if it could be better than the best known one: by one run
// at a time, in the foreground, at most until the timeout. A larger class needs
// no more time than a smaller one, and no less time × class; so samples of one
// class limit those of the others, and most probes are unnecessary.
//
// The package has no clock, no random source and no effects, and must not know
// queues, workflows or how statistics are stored.
package sizeclass
