// Package livestack runs the whole service, `benchloom up`, for programs that measure it from outside.
package livestack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/devstack"
	"github.com/benchloom/benchloom/internal/up"
	"github.com/benchloom/benchloom/starter"
)

// Generous bounds for starting and stopping a stack: nothing is measured meanwhile, and
// several that start at once on a busy machine take more than a minute.
const (
	StartBound = 5 * time.Minute
	StopBound  = 2 * time.Minute
)

// Programs are the paths of the binaries, and what they run with.
type Programs struct {
	Benchloom string
	Temporal  string // the embedded server
	// Environ holds further variables of their environment, such as PATH=/usr/bin. They
	// take precedence over those of this process.
	Environ []string
}

// Find makes the paths absolute. The error of a missing program says how to build it.
func (p *Programs) Find() (err error) {
	for _, path := range []*string{&p.Benchloom, &p.Temporal} {
		if _, err := os.Stat(*path); err != nil {
			return fmt.Errorf("%w; run 'make build' first", err)
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	return nil
}

// Stack is a running `benchloom up` with its own state directory.
type Stack struct {
	Dir     string // holds the state directory and the log of `up`
	Up      devstack.Up
	API     *apiclient.Client
	command *exec.Cmd
	exited  chan error
}

// Start starts the whole service with an empty record below a temporary directory, and waits until it is ready. It takes
// free ports, so that it can run beside another. The arguments are further ones of `up`.
func Start(ctx context.Context, programs Programs, args ...string) (*Stack, error) {
	if err := programs.Find(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "benchloom-selfbench-")
	if err != nil {
		return nil, fmt.Errorf("making a state directory: %w", err)
	}
	return Continue(ctx, programs, dir, args...)
}

// Continue starts the service with the record that an earlier stack left in the directory, if any. A stack that still runs
// there, because the program that started it was killed, is stopped first. One program at a time may use the directory.
func Continue(ctx context.Context, programs Programs, dir string, args ...string) (_ *Stack, err error) {
	if err := programs.Find(); err != nil {
		return nil, err
	}
	// Postgres does not run as root: its account must be able to pass through here.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	if err := endLeftover(ctx, filepath.Join(dir, stateDir)); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "up.log"))
	if err != nil {
		return nil, fmt.Errorf("opening the log of the stack: %w", err)
	}
	defer log.Close() // the process has its own
	s := &Stack{Dir: dir, exited: make(chan error, 1)}
	args = append([]string{"up", "--state-dir", s.State(), "--api-port", "0", "--metrics-port", "0", "--temporal-port", "0", "--temporal-ui-port", "0"}, args...)
	s.command = exec.Command(programs.Benchloom, args...) //nolint:noctx // it is stopped by a signal, not killed with the context
	s.command.Stdout, s.command.Stderr = log, log
	s.command.Env = slices.Concat(os.Environ(), []string{"TEMPORAL_ADDRESS=", "DATABASE_URL="}, programs.Environ, []string{"BENCHLOOM_TEMPORAL_DEV=" + programs.Temporal})
	if err := s.command.Start(); err != nil {
		return nil, fmt.Errorf("starting the stack: %w", err)
	}
	go func() { s.exited <- s.command.Wait() }()
	if err := s.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, s.Stop(false))
	}
	return s, nil
}

// stateDir is the state directory within a stack's directory.
const stateDir = "state"

// endLeftover interrupts the `benchloom up` that runs on a state directory, if any, and waits for its end.
func endLeftover(ctx context.Context, state string) error {
	ctx, cancel := context.WithTimeout(ctx, StopBound)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	interrupted := 0
	for {
		running, err := devstack.ReadUp(state)
		if errors.Is(err, devstack.ErrNotRunning) {
			return nil
		}
		if err != nil {
			return err
		}
		if running.PID != interrupted {
			leftover, err := os.FindProcess(running.PID)
			if err == nil {
				err = leftover.Signal(os.Interrupt)
			}
			if err != nil && !errors.Is(err, os.ErrProcessDone) {
				return fmt.Errorf("stopping the stack that an earlier run left behind, process %d: %w", running.PID, err)
			}
			interrupted = running.PID
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the stack that an earlier run left behind, process %d, does not stop: %w", running.PID, ctx.Err())
		}
	}
}

// State returns the state directory.
func (s *Stack) State() string { return filepath.Join(s.Dir, stateDir) }

func (s *Stack) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, StartBound)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var err error
		if s.Up, err = devstack.ReadUp(s.State()); err == nil {
			break
		}
		select {
		case <-tick.C:
		case err := <-s.exited:
			s.exited <- err
			return fmt.Errorf("the stack ended while it started: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("the stack is not ready: %w", errors.Join(ctx.Err(), err))
		}
	}
	token, err := devstack.ReadToken(s.State(), up.TokenUser)
	if err != nil {
		return err
	}
	s.API, err = apiclient.New(s.Up.Addresses[up.AddressAPI], token, &http.Client{Timeout: 30 * time.Second})
	return err
}

// Stop ends the stack. Its directory is removed if all went well.
func (s *Stack) Stop(remove bool) error {
	failure := s.End()
	if remove && failure == nil {
		return os.RemoveAll(s.Dir)
	}
	return errors.Join(failure, fmt.Errorf("the stack's state and logs are kept in %s", s.Dir))
}

// End ends the stack as Ctrl-C does.
func (s *Stack) End() error {
	var failure error
	if err := s.command.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		failure = fmt.Errorf("stopping the stack: %w", err)
	}
	select {
	case err := <-s.exited:
		if err != nil {
			failure = errors.Join(failure, fmt.Errorf("the stack ended with: %w", err))
		}
	case <-time.After(StopBound):
		failure = errors.Join(failure, errors.New("the stack did not stop in time and was killed"), s.command.Process.Kill())
		<-s.exited
	}
	return failure
}

// Temporal connects to the stack's Temporal as its own processes do. Nothing is logged: the
// SDK tells of polls that end with the stack.
func (s *Stack) Temporal(ctx context.Context) (client.Client, error) {
	token, err := devstack.ReadToken(s.State(), up.TokenTemporal)
	if err != nil {
		return nil, err
	}
	return starter.Dial(ctx, starter.Connection{
		Address: s.Up.Addresses[up.AddressTemporal], Namespace: "benchloom", Token: token, Log: slog.New(slog.DiscardHandler),
	})
}

// Processes returns the process IDs of the stack by name, including `up` itself. One
// collector is named "collector", whatever its process is called; of several, the others
// keep their names, which begin with "collector-".
func (s *Stack) Processes() (map[string]int, error) {
	text, err := os.ReadFile(filepath.Join(s.State(), "processes.json"))
	if err != nil {
		return nil, fmt.Errorf("reading the stack's processes: %w", err)
	}
	var running []struct {
		Name string `json:"name"`
		PID  int    `json:"pid"`
	}
	if err := json.Unmarshal(text, &running); err != nil {
		return nil, fmt.Errorf("reading the stack's processes: %w", err)
	}
	pids := map[string]int{"up": s.command.Process.Pid}
	var collectors []string
	for _, p := range running {
		if strings.HasPrefix(p.Name, "collector-") {
			collectors = append(collectors, p.Name)
		}
		pids[p.Name] = p.PID
	}
	if n := len(collectors); n > 0 {
		pids["collector"] = pids[collectors[n-1]]
		delete(pids, collectors[n-1])
	}
	return pids, nil
}
