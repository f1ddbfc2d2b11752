package measure

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Avoid keeps the calling process off CPUs: its threads, and the threads and programs that these start. Commands of a [Sandbox]
// with CPUs run on these nevertheless. It reports whether it did so: a process that has no other CPU stays. Call it before making
// a sandbox, whose threads are to keep their own CPUs.
func Avoid(cpus CPUList) (bool, error) {
	allowed, err := allowedCPUs()
	if err != nil {
		return false, err
	}
	for _, cpu := range cpus {
		allowed.Clear(cpu)
	}
	if len(cpus) == 0 || allowed.Count() == 0 {
		return false, nil
	}
	if err := bind(os.Getpid(), allowed, 0); err != nil {
		return false, fmt.Errorf("keeping off CPUs %s: %w", cpus, err)
	}
	return true, nil
}

// allowedCPUs returns the CPUs that the calling thread may use.
func allowedCPUs() (unix.CPUSetDynamic, error) {
	allowed := unix.NewCPUSet(maxCPU + 1)
	if err := unix.SchedGetaffinityDynamic(0, allowed); err != nil {
		return nil, fmt.Errorf("reading the CPUs of this process: %w", err)
	}
	return allowed, nil
}

// bind binds all threads of a process, present and future, to CPUs, except for the thread except. A process that has ended counts
// as bound.
func bind(pid int, cpus unix.CPUSetDynamic, except int) error {
	// A thread inherits the CPUs of the one that starts it, so the next look finds threads that begin meanwhile.
	for moved := map[int]bool{except: true}; ; {
		threads, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task"))
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("listing the threads of process %d: %w", pid, err)
		}
		before := len(moved)
		for _, t := range threads {
			tid, err := strconv.Atoi(t.Name())
			if err != nil || moved[tid] {
				continue
			}
			if err := unix.SchedSetaffinityDynamic(tid, cpus); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("binding thread %d: %w", tid, err)
			}
			moved[tid] = true
		}
		if len(moved) == before {
			return nil
		}
	}
}
