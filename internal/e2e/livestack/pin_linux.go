package livestack

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/benchloom/benchloom/internal/measure"
)

// OnCPUs calls f on a thread bound to the CPUs; programs that f starts inherit the
// binding.
func OnCPUs(cpus measure.CPUList, f func() error) error {
	ended := make(chan error)
	go func() {
		runtime.LockOSThread()
		var before, set unix.CPUSet
		if err := unix.SchedGetaffinity(0, &before); err != nil {
			ended <- fmt.Errorf("reading the CPUs of a thread: %w", err)
			return
		}
		for _, cpu := range cpus {
			set.Set(cpu)
		}
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			ended <- fmt.Errorf("pinning to CPUs %s: %w", cpus, err)
			return
		}
		err := f()
		// A thread that stays locked ends with its goroutine, except the first one, whose CPUs are those of the process.
		if unix.SchedSetaffinity(0, &before) == nil {
			runtime.UnlockOSThread()
		}
		ended <- err
	}()
	return <-ended
}
