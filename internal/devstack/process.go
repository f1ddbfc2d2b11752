package devstack

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"syscall"
	"time"
)

// Process describes one process to supervise.
type Process struct {
	// Name is unique, and the name of the log file: lower-case letters, digits
	// and hyphens.
	Name string
	// Argv is the program and its arguments.
	Argv []string
	// Env is the whole environment; nil means this process's.
	Env []string
	// Dir is the working directory; empty means this process's.
	Dir string
	// Group orders starting and stopping: all processes of a group start together
	// when every process of the lower groups is ready, and stop before them.
	Group int
	// Scheduling applies to the process and all that it starts.
	Scheduling

	// Prepare, if set, runs before each start.
	Prepare func(ctx context.Context) error
	// Ready, if set, is asked about 20 times a second after each start until it
	// returns nil. Without it a process is ready once started, or, if OneShot,
	// when it has ended.
	Ready func(ctx context.Context) error
	// ReadyBound bounds that time; then the process is stopped and started again. 0
	// means one minute.
	ReadyBound time.Duration

	// OneShot is set for a process that ends with exit status 0 when its work is
	// done.
	OneShot bool

	// StopSignal asks the process to stop; 0 means SIGTERM.
	StopSignal syscall.Signal
	// StopBound bounds stopping; 0 means 10 s.
	StopBound time.Duration
	// QuitSignal, if set, is sent when StopBound has passed, and when the
	// supervisor itself dies; SIGKILL follows after two seconds. Without it
	// SIGKILL is sent immediately.
	QuitSignal syscall.Signal

	account account
}

// Scheduling tells the kernel how to run a process. The zero value means as this process.
type Scheduling struct {
	// CPUs lists the CPUs that the process may run on; empty means all that this
	// process may use. Linux only.
	CPUs []int
	// Batch is set for a process whose throughput counts for more than its latency: when it
	// can run again, it does not interrupt another (sched(7), SCHED_BATCH). Ignored where
	// there is no such policy, or it is refused.
	Batch bool
	// TimerSlack is the time by which a timer of the process may be late, so that it wakes
	// up less often (prctl(2), PR_SET_TIMERSLACK); 0 means that of this process. Ignored
	// where there is no such setting, or it is refused.
	TimerSlack time.Duration
}

var processName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

// withDefaults checks the description and fills in what is left out.
func (p Process) withDefaults() (Process, error) {
	if !processName.MatchString(p.Name) {
		return p, fmt.Errorf("process name %q is not allowed: use lower-case letters, digits and hyphens", p.Name)
	}
	if len(p.Argv) == 0 || p.Argv[0] == "" {
		return p, fmt.Errorf("process %s has no program to run", p.Name)
	}
	if p.OneShot && p.Ready != nil {
		return p, fmt.Errorf("process %s is ready when it has ended: it cannot have a readiness check as well", p.Name)
	}
	if p.ReadyBound == 0 {
		p.ReadyBound = time.Minute
	}
	if p.StopSignal == 0 {
		p.StopSignal = syscall.SIGTERM
	}
	if p.StopBound == 0 {
		p.StopBound = 10 * time.Second
	}
	return p, nil
}

// deathSignal returns the signal that ends the process when it is no longer
// supervised.
func (p Process) deathSignal() syscall.Signal {
	if p.QuitSignal != 0 {
		return p.QuitSignal
	}
	return syscall.SIGKILL
}

// permanentError marks an error that a restart cannot cure.
type permanentError struct{ err error }

func (e permanentError) Error() string { return e.err.Error() }
func (e permanentError) Unwrap() error { return e.err }

// Permanent marks an error of Prepare or Ready that a restart cannot cure. It ends the
// supervisor.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanentError{err}
}

func isPermanent(err error) bool {
	_, ok := errors.AsType[permanentError](err)
	return ok
}

// ProcessError reports the end of a process without which the stack cannot run.
type ProcessError struct {
	Name string
	// Reason is the exit status, the signal, or the error that prevented the start.
	Reason error
	// Output holds the last lines of output, at most 20.
	Output []string
	// LogFile is the file with the whole output.
	LogFile string
}

// Error has the process's name, its exit status and its last lines.
func (e *ProcessError) Error() string {
	text := fmt.Sprintf("process %s failed: %v", e.Name, e.Reason)
	if len(e.Output) == 0 {
		return text
	}
	text += "; its last output, all of it is in " + e.LogFile + ":"
	for _, line := range e.Output {
		text += "\n  " + line
	}
	return text
}

func (e *ProcessError) Unwrap() error { return e.Reason }

// RestartPolicy decides when a process that ends by itself is restarted.
type RestartPolicy struct {
	// First is the pause before the first restart; it doubles up to Longest.
	First, Longest time.Duration
	// Healthy is the time a process must have been ready for the pause to start
	// over.
	Healthy time.Duration
	// GiveUp is the number of times in a row a process may end, or fail to start,
	// without having been ready.
	GiveUp int
}

// DefaultRestartPolicy restarts after 200 ms, then up to 10 s, and gives up on a
// process that never got ready in six attempts.
func DefaultRestartPolicy() RestartPolicy {
	return RestartPolicy{First: 200 * time.Millisecond, Longest: 10 * time.Second, Healthy: 30 * time.Second, GiveUp: 6}
}

// Pause returns the wait before the restart after the given number of endings in a
// row (1 for the first).
func (r RestartPolicy) Pause(endings int) time.Duration {
	pause := r.First
	for range endings - 1 {
		if pause >= r.Longest/2 {
			return r.Longest
		}
		pause *= 2
	}
	return min(pause, r.Longest)
}
