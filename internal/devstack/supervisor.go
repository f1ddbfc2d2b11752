package devstack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Config holds a supervisor's settings.
type Config struct {
	State  *State
	Logger *slog.Logger
	// Restart is the policy for processes that end by themselves; the zero
	// value means DefaultRestartPolicy.
	Restart RestartPolicy
	// LogLimit is the size at which a log file is rotated, in bytes; 0 means 10 MiB.
	LogLimit int64
}

// Supervisor starts processes, group by group, keeps them running and stops
// them in reverse order.
type Supervisor struct {
	state   *State
	log     *slog.Logger
	restart RestartPolicy
	records *records

	groups [][]*runner // in the order of starting
	starts chan startRequest
	ready  chan struct{}

	hurry     chan struct{}
	hurryOnce sync.Once
}

// startRequest asks the forking thread to start a child.
type startRequest struct {
	cmd        *exec.Cmd
	scheduling Scheduling
	result     chan<- error
}

// NewSupervisor checks the processes and opens their log files when run.
func NewSupervisor(config Config, processes ...Process) (*Supervisor, error) {
	if config.State == nil || config.Logger == nil {
		return nil, errors.New("a supervisor needs a state directory and a logger")
	}
	if config.Restart == (RestartPolicy{}) {
		config.Restart = DefaultRestartPolicy()
	}
	if config.LogLimit == 0 {
		config.LogLimit = logLimit
	}
	if len(processes) == 0 {
		return nil, errors.New("a supervisor needs at least one process")
	}
	s := &Supervisor{
		state:   config.State,
		log:     config.Logger,
		restart: config.Restart,
		records: &records{path: config.State.Path(processesFile), changed: config.State.setProcess, all: map[string]startedProcess{}},
		starts:  make(chan startRequest),
		ready:   make(chan struct{}),
		hurry:   make(chan struct{}),
	}
	names := map[string]bool{}
	byGroup := map[int][]*runner{}
	for _, p := range processes {
		p, err := p.withDefaults()
		if err != nil {
			return nil, err
		}
		if names[p.Name] {
			return nil, fmt.Errorf("two processes have the name %s", p.Name)
		}
		names[p.Name] = true
		byGroup[p.Group] = append(byGroup[p.Group], newRunner(s, p, config.LogLimit))
	}
	for _, group := range slices.Sorted(maps.Keys(byGroup)) {
		s.groups = append(s.groups, byGroup[group])
	}
	return s, nil
}

// Ready is closed when every process has been ready once.
func (s *Supervisor) Ready() <-chan struct{} { return s.ready }

// Hurry makes a present or later stop as quick as possible without losing data: it does
// not wait for processes to stop by themselves. It is meant for a second Ctrl-C.
func (s *Supervisor) Hurry() { s.hurryOnce.Do(func() { close(s.hurry) }) }

// Status returns the status of each process, in starting order.
func (s *Supervisor) Status() []Status {
	var all []Status
	for _, group := range s.groups {
		for _, r := range group {
			all = append(all, r.snapshot())
		}
	}
	return all
}

// Run starts all processes and returns when all have stopped: nil after the context was
// cancelled, else the error that ended it, a *ProcessError if a process failed. It may be
// called once.
func (s *Supervisor) Run(ctx context.Context) error {
	if err := endLeftovers(ctx, s.records.path, s.log); err != nil {
		return err
	}
	for _, group := range s.groups {
		for _, r := range group {
			if err := r.open(); err != nil {
				return err
			}
			defer r.out.close()
		}
	}
	stopForking := s.forkFromOneThread()
	defer stopForking()

	failures := make(chan error, len(s.Status()))
	started := 0
	err := func() error {
		for _, group := range s.groups {
			for _, r := range group {
				go r.run(failures)
			}
			started++
			for _, r := range group {
				select {
				case <-r.ready:
				case err := <-failures:
					return err
				case <-ctx.Done():
					return nil
				}
			}
		}
		close(s.ready)
		select {
		case err := <-failures:
			return err
		case <-ctx.Done():
			return nil
		}
	}()

	began := time.Now()
	s.log.Info("stopping")
	for _, group := range slices.Backward(s.groups[:started]) {
		for _, r := range group {
			r.cancel()
		}
		for _, r := range group {
			<-r.done
		}
	}
	s.log.Info("stopped", "took", time.Since(began).Round(time.Millisecond))
	return err
}

// forkFromOneThread starts the thread from which all children are forked. The
// kernel's signal for a parent's death is sent when the *thread* that forked
// ends, so this one ends only after the children have.
func (s *Supervisor) forkFromOneThread() (stop func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for request := range s.starts {
			request.result <- startAs(request.scheduling, request.cmd)
		}
	}()
	return func() {
		close(s.starts)
		<-done
	}
}

func (s *Supervisor) start(cmd *exec.Cmd, scheduling Scheduling) error {
	result := make(chan error)
	s.starts <- startRequest{cmd: cmd, scheduling: scheduling, result: result}
	return <-result
}
