package workers

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/benchloom/benchloom/activities/collection"
	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/profiler"
)

// Profiling equips the agents beside the runs of this machine. Collectors on it that see the same /tmp share one lock: one agent
// records the machine.
func (m *Machine) Profiling() *collection.Profiling {
	host, _ := os.Hostname() // series of a machine without a name have none
	groups := m.sandbox.Groups()
	group := machine.Group{Unified: groups["unified"], CPUAcct: groups["cpuacct"], Memory: groups["memory"], BlockIO: groups["blkio"]}
	return &collection.Profiling{
		Host: host,
		Lock: func() profiler.HostLock { return newHostLock(hostLockPath) },
		Job: profiler.Reused(func() []profiler.Collector {
			return profiler.JobCollectors(machine.NewGroupReader(group))
		}, time.Now),
		Machine: profiler.Reused(func() []profiler.Collector {
			reader := machine.NewReader(machine.Config{Root: "/", CPUs: m.cpus, Now: time.Now, Elsewhere: true, KeepOpen: true})
			return profiler.MachineCollectors(reader, machine.NewThermometer("/"))
		}, time.Now),
		Devices: func() []profiler.Collector {
			return []profiler.Collector{profiler.NewGPUs(profiler.NvidiaSMI, time.Now)}
		},
	}
}

// hostLockPath is a file that collectors of all accounts can open, wherever their state is.
const hostLockPath = "/tmp/benchloom-profiling.lock"

// hostLock is a lock between processes of different accounts.
type hostLock struct {
	*flock.Flock
	made bool
}

func newHostLock(path string) *hostLock {
	// Without O_CREATE, which the kernel refuses for files of others in /tmp (fs.protected_regular). Whatever the file is, opening it
	// does not wait.
	return &hostLock{Flock: flock.New(path, flock.SetFlag(os.O_RDONLY|syscall.O_NONBLOCK))}
}

// TryLock takes the lock unless another process, or another lock of this one, has it.
func (l *hostLock) TryLock() (bool, error) {
	if !l.made {
		file, err := os.OpenFile(l.Path(), os.O_RDONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err == nil {
			err = file.Close()
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return false, err
		}
		l.made = true
	}
	return l.Flock.TryLock()
}
