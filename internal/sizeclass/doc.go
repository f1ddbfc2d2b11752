// Package sizeclass learns, from how the runs of a job ended, the smallest size
// class that is good enough for it.
//
// An [Analyzer] holds a checked [Policy]. It selects a class and a timeout for a
// run ([Analyzer.Select]), says where a run that was too small for its class goes
// next ([Analyzer.Escalate]), and learns from how each attempt ended
// ([Analyzer.Learn]). What it knows about a job is its [Statistics], which come in
// and go out as values: the caller stores them.
//
// A class is better than another when time × class^exponent is less. From that
// follow the acceptable time and the timeout of each class, see [Factor],
// [AcceptableTime] and [Timeout]. A class that nobody has tried, or that has not
// been tried for long, is probed when it could be better than the best one known:
// by one run at a time, in the foreground, at most until the timeout. A larger
// class needs no more time than a smaller one, and no less time × class; so
// samples of one class bound those of the others, and most probes are not needed.
//
// The package has no clock, no random source and no effects, and must not know
// queues, workflows or how statistics are stored.
package sizeclass
