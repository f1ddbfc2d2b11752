// Package machine reads what a machine and the control group of a job do. Around a measurement, it reads what the machine does besides the
// job: foreign CPU time on the job's CPUs, steal, pressure, frequency, throttling, swapping. Two such readings give a [Delta], and [Judge]
// says whether it disturbed the measurement. For profiles of a run it also reads memory, networks, disks, temperature and the [Group].
//
// The package stands alone: it must not know what is measured or why, and it
// changes nothing on the machine. A value that a machine does not report is absent
// with the reason, never an error that ends a measurement.
package machine
