// Package profiler records what a machine and a job's control group do while the job runs, every 100 ms, and how long the job's
// phases take. An [Agent] accompanies one attempt at a run: it samples, gathers batches, and hands them to a [Sender].
//
// It can never hurt a run: no call of a job waits for a sample or for the network, memory is bounded, and failures are logged and
// left out. A batch that cannot be delivered is dropped and counted.
//
// The package must not know who stores batches or how they travel, nor what a job measures. The machine is read by internal/machine.
// The requirements P1 to P26, and the tests that show them, are in docs/profiling.md.
package profiler
