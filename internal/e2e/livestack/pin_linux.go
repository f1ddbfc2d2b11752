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
		// Not unlocked: the thread ends with this goroutine.
		runtime.LockOSThread()
		var set unix.CPUSet
		for _, cpu := range cpus {
			set.Set(cpu)
		}
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			ended <- fmt.Errorf("pinning to CPUs %s: %w", cpus, err)
			return
		}
		ended <- f()
	}()
	return <-ended
}
