// Package machine reads what a machine does besides a job: foreign CPU time on
// the job's CPUs, steal, pressure, frequency, throttling, swapping. Two readings
// give a [Delta], and [Judge] says whether it disturbed a measurement.
//
// The package stands alone: it must not know what is measured or why, and it
// changes nothing of the machine. What a machine does not report is absent with
// the reason, and never an error: no reading ends a measurement.
package machine
