package devstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Condition is the state of a supervised process.
type Condition string

// The conditions of a process.
const (
	Waiting    Condition = "waiting"    // for the groups before it
	Starting   Condition = "starting"   // started, not ready yet
	Ready      Condition = "ready"      // doing its work
	Restarting Condition = "restarting" // ended, waits for its next start
	Done       Condition = "done"       // a one-shot process that succeeded
	Stopping   Condition = "stopping"   // asked to stop
	Stopped    Condition = "stopped"    // as asked
	Failed     Condition = "failed"     // given up on
)

// Status describes a process at one moment.
type Status struct {
	Name      string
	Condition Condition
	Since     time.Time // of the condition
	PID       int       // 0 when it is not running
	Restarts  int       // since the supervisor started
	LastError error     // why it last ended by itself, or did not start
	LogFile   string
}

const (
	readyInterval = 50 * time.Millisecond // between two readiness checks
	readyCheck    = 5 * time.Second       // bound of one readiness check
	quitBound     = 2 * time.Second       // between the quit signal and SIGKILL
	drainBound    = 2 * time.Second       // for output that a grandchild still holds
)

// runner keeps one process running.
type runner struct {
	Process
	supervisor *Supervisor
	logLimit   int64
	out        *output

	stopped context.Context // ends when the process shall stop
	cancel  context.CancelFunc
	ready   chan struct{} // closed when the process was ready for the first time
	done    chan struct{} // closed when the process is stopped for good

	mu     sync.Mutex
	status Status
}

func newRunner(s *Supervisor, p Process, logLimit int64) *runner {
	stopped, cancel := context.WithCancel(context.Background())
	return &runner{
		Process:    p,
		supervisor: s,
		logLimit:   logLimit,
		stopped:    stopped,
		cancel:     cancel,
		ready:      make(chan struct{}),
		done:       make(chan struct{}),
		status:     Status{Name: p.Name, Condition: Waiting, LogFile: s.state.LogFile(p.Name)},
	}
}

func (r *runner) open() error {
	out, err := openOutput(r.supervisor.state.LogFile(r.Name), r.logLimit)
	if err != nil {
		return fmt.Errorf("opening the log of process %s: %w", r.Name, err)
	}
	r.out = out
	return nil
}

func (r *runner) snapshot() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

func (r *runner) set(change func(*Status)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.status.Condition
	change(&r.status)
	if r.status.Condition != before {
		r.status.Since = time.Now()
	}
}

// run starts the process again and again until it is stopped, done, or given up
// on, which is reported.
func (r *runner) run(failures chan<- error) {
	defer close(r.done)
	final := Stopped
	defer func() {
		r.set(func(s *Status) { s.Condition, s.PID = final, 0 })
	}()

	pauses, unready := 0, 0
	for {
		readyFor, err := r.once()
		switch {
		case r.stopped.Err() != nil:
			return
		case err == nil: // only a one-shot process ends well by itself
			final = Done
			return
		case readyFor > 0:
			unready = 0
		default:
			unready++
		}
		if readyFor >= r.supervisor.restart.Healthy {
			pauses = 0
		}
		pauses++
		failure := &ProcessError{Name: r.Name, Reason: err, Output: r.out.last(), LogFile: r.out.path}
		if isPermanent(err) || unready >= r.supervisor.restart.GiveUp {
			final = Failed
			r.set(func(s *Status) { s.LastError = failure })
			failures <- failure
			return
		}
		pause := r.supervisor.restart.Pause(pauses)
		r.supervisor.log.Warn("process ended, starting it again", "process", r.Name, "reason", err, "pause", pause)
		r.set(func(s *Status) {
			s.Condition, s.PID, s.LastError = Restarting, 0, failure
			s.Restarts++
		})
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-r.stopped.Done():
			timer.Stop()
			return
		}
	}
}

// child is one started process.
type child struct {
	pid    int
	signal func(os.Signal) error
	exited chan struct{} // closed when it has ended
	err    error         // how; nil for exit status 0
}

// once runs the process one time. It returns for how long it was ready and why
// it ended; nil means that a one-shot process succeeded.
func (r *runner) once() (readyFor time.Duration, err error) {
	r.set(func(s *Status) { s.Condition = Starting })
	r.out.forget()
	began := time.Now()
	if r.Prepare != nil {
		if err := r.Prepare(r.stopped); err != nil {
			return 0, fmt.Errorf("preparing: %w", err)
		}
	}
	c, err := r.spawn()
	if err != nil {
		return 0, err
	}
	if err := r.remember(c); err != nil {
		r.end(c)
		return 0, err
	}
	defer func() {
		if forgetErr := r.supervisor.records.remove(r.Name); err == nil {
			err = forgetErr
		}
	}()
	r.set(func(s *Status) { s.PID = c.pid })
	r.supervisor.log.Info("process started", "process", r.Name, "pid", c.pid)

	if r.OneShot {
		select {
		case <-c.exited:
			if c.err == nil {
				r.becameReady(began)
			}
			return 0, c.err
		case <-r.stopped.Done():
			r.end(c)
			return 0, nil
		}
	}
	if err := r.awaitReady(c); err != nil {
		r.end(c)
		return 0, err
	}
	r.becameReady(began)
	since := time.Now()
	select {
	case <-c.exited:
		if c.err == nil {
			c.err = errors.New("exit status 0, but it should keep running")
		}
		return max(time.Since(since), 1), c.err
	case <-r.stopped.Done():
		r.end(c)
		return 0, nil
	}
}

func (r *runner) becameReady(began time.Time) {
	r.set(func(s *Status) { s.Condition = Ready })
	r.supervisor.log.Info("process ready", "process", r.Name, "took", time.Since(began).Round(time.Millisecond))
	select {
	case <-r.ready:
	default:
		close(r.ready)
	}
}

func (r *runner) spawn() (*child, error) {
	cmd := exec.Command(r.Argv[0], r.Argv[1:]...)
	cmd.Env, cmd.Dir = r.Env, r.Dir
	cmd.Stdout, cmd.Stderr = r.out, r.out
	cmd.WaitDelay = drainBound
	attributes, err := processAttributes(r.account, r.deathSignal())
	if err != nil {
		return nil, err
	}
	cmd.SysProcAttr = attributes
	if err := r.supervisor.start(cmd, r.Scheduling); err != nil {
		return nil, fmt.Errorf("starting %s: %w", r.Argv[0], err)
	}
	c := &child{pid: cmd.Process.Pid, signal: cmd.Process.Signal, exited: make(chan struct{})}
	go func() {
		defer close(c.exited)
		waitUnreaped(c.pid)
		killGroup(c.pid) // grandchildren do not outlive it
		c.err = cmd.Wait()
		if errors.Is(c.err, exec.ErrWaitDelay) {
			c.err = nil // the process ended well, only its output was still held open
		}
	}()
	return c, nil
}

// remember records the child for the case that this process is killed.
func (r *runner) remember(c *child) error {
	started, err := startIdentity(c.pid)
	if err != nil {
		select {
		case <-c.exited: // ended already: nothing to remember
			return nil
		default:
			return err
		}
	}
	return r.supervisor.records.add(startedProcess{Name: r.Name, PID: c.pid, Started: started, Signal: int(r.deathSignal())})
}

// awaitReady returns nil when the process is ready, else why it is not.
func (r *runner) awaitReady(c *child) error {
	if r.Ready == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.stopped, r.ReadyBound)
	defer cancel()
	go func() {
		select {
		case <-c.exited:
			cancel()
		case <-ctx.Done():
		}
	}()
	tick := time.NewTicker(readyInterval)
	defer tick.Stop()
	for {
		err := func() error {
			ctx, cancel := context.WithTimeout(ctx, readyCheck)
			defer cancel()
			return r.Ready(ctx)
		}()
		if err == nil && ctx.Err() == nil { // it has not ended meanwhile
			return nil
		}
		if isPermanent(err) {
			return err
		}
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
		}
		select {
		case <-c.exited:
			if c.err == nil {
				return errors.New("exit status 0 before it was ready")
			}
			return c.err
		default:
			return fmt.Errorf("not ready after %v: %w", r.ReadyBound, err)
		}
	}
}

// end stops the child, which is asked first, then told, then killed.
func (r *runner) end(c *child) {
	r.set(func(s *Status) { s.Condition = Stopping })
	steps := []struct {
		signal syscall.Signal
		bound  time.Duration
		hurry  bool // the step is taken even in a hurry
	}{
		{r.StopSignal, r.StopBound, false},
		{r.QuitSignal, quitBound, true},
	}
	for _, step := range steps {
		if step.signal == 0 {
			continue
		}
		if c.signal(step.signal) != nil && !step.hurry {
			continue
		}
		timer := time.NewTimer(step.bound)
		hurry := r.supervisor.hurry
		if step.hurry {
			hurry = nil
		}
		select {
		case <-c.exited:
			timer.Stop()
			return
		case <-hurry:
			timer.Stop()
		case <-timer.C:
			r.supervisor.log.Warn("process does not stop, forcing it", "process", r.Name, "waited", step.bound)
		}
	}
	select {
	case <-c.exited: // its number may be another process's by now
	default:
		killGroup(c.pid)
		<-c.exited
	}
}
