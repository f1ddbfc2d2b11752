package measure

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Avoid keeps all threads of the calling process off CPUs, and with them what it starts: programs, and threads to come. Commands of
// a [Sandbox] that has CPUs run on these nevertheless. It reports whether it did: a process that has no other CPU stays.
// It must be called before a sandbox is made, whose threads are to keep their own CPUs.
func Avoid(cpus CPUList) (bool, error) {
	allowed := unix.NewCPUSet(maxCPU + 1)
	if err := unix.SchedGetaffinityDynamic(0, allowed); err != nil {
		return false, fmt.Errorf("reading the CPUs of this process: %w", err)
	}
	for _, cpu := range cpus {
		allowed.Clear(cpu)
	}
	if len(cpus) == 0 || allowed.Count() == 0 {
		return false, nil
	}
	// A thread inherits the CPUs of the one that starts it. So those that begin meanwhile are found by the next look.
	for moved := map[int]bool{}; ; {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return false, fmt.Errorf("listing the threads of this process: %w", err)
		}
		before := len(moved)
		for _, t := range threads {
			tid, err := strconv.Atoi(t.Name())
			if err != nil || moved[tid] {
				continue
			}
			if err := unix.SchedSetaffinityDynamic(tid, allowed); err != nil && !errors.Is(err, unix.ESRCH) {
				return false, fmt.Errorf("keeping thread %d off CPUs %s: %w", tid, cpus, err)
			}
			moved[tid] = true
		}
		if len(moved) == before {
			return true, nil
		}
	}
}
