package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/devstack"
	"github.com/benchloom/benchloom/internal/up"
)

// Generous bounds for starting and stopping a stack: nothing is measured meanwhile.
const (
	startBound = time.Minute
	stopBound  = time.Minute
)

// stack is a running `benchloom up` with its own state directory.
type stack struct {
	dir     string // holds the state directory and the log of `up`
	command *exec.Cmd
	exited  chan error
	up      devstack.Up
	api     *apiclient.Client
}

// startStack starts the whole service with an empty record and waits until it is
// ready. It takes free ports, so that it can run beside another.
func startStack(ctx context.Context, program, temporal string, args ...string) (_ *stack, err error) {
	for _, path := range []*string{&program, &temporal} {
		if _, err := os.Stat(*path); err != nil {
			return nil, fmt.Errorf("%w; run 'make build' first", err)
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp("", "benchloom-selfbench-")
	if err != nil {
		return nil, fmt.Errorf("making a state directory: %w", err)
	}
	// Postgres does not run as root: its account must be able to pass through here.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "up.log"))
	if err != nil {
		return nil, fmt.Errorf("opening the log of the stack: %w", err)
	}
	defer log.Close() // the process has its own
	s := &stack{dir: dir, exited: make(chan error, 1)}
	args = append([]string{"up", "--state-dir", s.state(), "--api-port", "0", "--metrics-port", "0", "--temporal-port", "0", "--temporal-ui-port", "0"}, args...)
	s.command = exec.Command(program, args...) //nolint:noctx // it is stopped by a signal, not killed with the context
	s.command.Stdout, s.command.Stderr = log, log
	s.command.Env = append(os.Environ(), "BENCHLOOM_TEMPORAL_DEV="+temporal, "TEMPORAL_ADDRESS=", "DATABASE_URL=")
	if err := s.command.Start(); err != nil {
		return nil, fmt.Errorf("starting the stack: %w", err)
	}
	go func() { s.exited <- s.command.Wait() }()
	if err := s.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, s.stop(false))
	}
	return s, nil
}

func (s *stack) state() string { return filepath.Join(s.dir, "state") }

func (s *stack) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var err error
		if s.up, err = devstack.ReadUp(s.state()); err == nil {
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
	token, err := devstack.ReadToken(s.state(), up.TokenUser)
	if err != nil {
		return err
	}
	s.api, err = apiclient.New(s.up.Addresses[up.AddressAPI], token, &http.Client{Timeout: 30 * time.Second})
	return err
}

// stop stops the stack as Ctrl-C does. The state is removed if all went well.
func (s *stack) stop(remove bool) error {
	var failure error
	if err := s.command.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		failure = fmt.Errorf("stopping the stack: %w", err)
	}
	select {
	case err := <-s.exited:
		if err != nil {
			failure = errors.Join(failure, fmt.Errorf("the stack ended with: %w", err))
		}
	case <-time.After(stopBound):
		failure = errors.Join(failure, errors.New("the stack did not stop in time and was killed"), s.command.Process.Kill())
		<-s.exited
	}
	if remove && failure == nil {
		return os.RemoveAll(s.dir)
	}
	return errors.Join(failure, fmt.Errorf("the stack's state and logs are kept in %s", s.dir))
}

// processes returns the process IDs of the stack by name, including `up` itself. The
// only collector is named "collector", whatever its process is called.
func (s *stack) processes() (map[string]int, error) {
	text, err := os.ReadFile(filepath.Join(s.state(), "processes.json"))
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
	for _, p := range running {
		name := p.Name
		if strings.HasPrefix(name, "collector-") {
			name = "collector"
		}
		pids[name] = p.PID
	}
	return pids, nil
}
