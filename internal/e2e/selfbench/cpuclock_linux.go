package main

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// cpuClock returns the CPU time of a process, its ended threads included, in nanoseconds; see clock_getcpuclockid(3).
func cpuClock(pid int) (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED of the kernel
	var passed unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &passed); err != nil {
		return 0, fmt.Errorf("reading the CPU clock of process %d: %w", pid, err)
	}
	return time.Duration(passed.Nano()), nil
}
