package measure

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// betweenJobs is the time after [Sandbox.Clean] in which a job is handed in and the next one begins. Then the slot rests:
// its CPUs are no longer lent, as an idle collector may have to tell what others do there, and in the space ahead nothing is
// arranged yet.
const betweenJobs = time.Second

// rest makes a slot rest after a while without a job.
type rest struct {
	mu sync.Mutex
	// due is set from the end of [Sandbox.Clean] until the next call that changes the sandbox while it holds [Sandbox.running].
	// While due is set, only the timer changes the sandbox.
	due   bool
	timer *time.Timer
}

// stayAwake keeps the slot from resting before the next [Sandbox.mayRest]. If the slot is just coming to rest, it waits.
func (s *Sandbox) stayAwake() {
	s.rest.mu.Lock()
	defer s.rest.mu.Unlock()
	s.rest.due = false
}

// mayRest lets the slot rest after a while.
func (s *Sandbox) mayRest() {
	s.rest.mu.Lock()
	defer s.rest.mu.Unlock()
	s.rest.due = true
	if s.rest.timer != nil {
		s.rest.timer.Reset(betweenJobs)
		return
	}
	s.rest.timer = time.AfterFunc(betweenJobs, func() {
		s.rest.mu.Lock()
		defer s.rest.mu.Unlock()
		if s.rest.due {
			s.rest.due = false
			s.launcher.renewAhead()
			_ = s.reclaim() // else the next command tries again, and does not run before
		}
	})
}

// lending lets this process run on the CPUs of an empty slot.
type lending struct {
	// own are the CPUs of this process, slot those of the slot; nil if nothing can be lent.
	own, slot unix.CPUSetDynamic
	lent      bool
}

// newLending returns the lending of a slot's CPUs, which this process must keep off.
func newLending(config SandboxConfig) (l lending, err error) {
	if !config.Lend || len(config.CPUs) == 0 {
		return l, nil
	}
	own, err := allowedCPUs()
	if err != nil {
		return l, err
	}
	slot := unix.NewCPUSet(maxCPU + 1)
	for _, cpu := range config.CPUs {
		if own.IsSet(cpu) {
			return l, fmt.Errorf("CPU %d cannot be lent: this process does not keep off it", cpu)
		}
		slot.Set(cpu)
	}
	l.own, l.slot = own, slot
	return l, nil
}

// lend moves the threads of this process, and what they start, to the slot's CPUs. The slot must be empty. The threads leave
// their own CPUs: others use these, and wait for this process.
func (s *Sandbox) lend() error {
	l := &s.lending
	if l.own == nil || l.lent {
		return nil
	}
	l.lent = true
	if bind(os.Getpid(), l.slot, s.launcher.tid) == nil {
		return nil
	}
	// A control group, which the launching thread has left, keeps this process off them.
	err := s.reclaim()
	l.own = nil
	return err
}

// reclaim keeps this process, and the init processes that it has started, off the slot's CPUs again.
func (s *Sandbox) reclaim() error {
	l := &s.lending
	if !l.lent {
		return nil
	}
	err := bind(os.Getpid(), l.own, s.launcher.tid)
	for _, space := range []*space{s.launcher.space, s.launcher.ahead} {
		if err == nil && space != nil && !space.gone {
			err = bind(space.pid, l.own, 0)
		}
	}
	if err != nil {
		return fmt.Errorf("taking back the CPUs of slot %s: %w", s.config.Name, err)
	}
	l.lent = false
	return nil
}
