// Package measure runs one command once, inside the limits of one machine slot, and reports what the run cost: wall time,
// CPU time, memory, faults, context switches and hardware counters. It also reads the facts of the machine that results
// depend on.
//
// It is the only package that starts measured processes. It must not know what is measured or why: nothing of suites, jobs,
// workflows, HTTP or the database, and it imports nothing else of this project.
//
// Linux is the full implementation. Other Unix systems run commands without counters, control groups and pinning and say so
// in [Sandbox.Unenforced]; on Windows every call returns [errors.ErrUnsupported].
package measure
