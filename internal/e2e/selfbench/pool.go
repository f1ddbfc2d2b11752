package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/e2e/livestack"
	"github.com/benchloom/benchloom/internal/up"
)

// collectorPool is a pool of equal collectors that only this program restarts.
type collectorPool struct {
	stack   *livestack.Stack
	program string
	dir     string

	mu        sync.Mutex
	processes [poolCollectors]*exec.Cmd // nil: not running
	exited    [poolCollectors]chan error
}

func collectorName(i int) string { return fmt.Sprintf("%s-%d", poolName, i+1) }

// accounts makes sure that the machine has an account for each isolated collector, and for
// that of the stack, which made its own only.
func (p *collectorPool) accounts(ctx context.Context) error {
	if os.Geteuid() != 0 || os.Getenv("BENCHLOOM_ISOLATION") == "off" {
		return nil
	}
	out, err := exec.CommandContext(ctx, p.program, "collector", "setup", "--accounts", strconv.Itoa(1+poolCollectors)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("making accounts for the pool's collectors: %w: %s", err, out)
	}
	return nil
}

// start starts the collectors that do not run and waits until all take jobs.
func (p *collectorPool) start(ctx context.Context) error {
	for i := range poolCollectors {
		if err := p.startOne(i); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, livestack.StartBound)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		all, err := p.stack.API.Collectors(ctx)
		if err == nil && p.idle(all) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the pool's collectors are not ready: %w", errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}

func (p *collectorPool) idle(all []apiclient.Collector) bool {
	for i := range poolCollectors {
		if !slices.ContainsFunc(all, func(c apiclient.Collector) bool {
			return c.Name == collectorName(i) && c.State == bench.CollectorWaiting
		}) {
			return false
		}
	}
	return true
}

func (p *collectorPool) startOne(i int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.processes[i] != nil {
		return nil
	}
	name := collectorName(i)
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return fmt.Errorf("starting collector %s: %w", name, err)
	}
	log, err := os.OpenFile(filepath.Join(p.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("opening the log of collector %s: %w", name, err)
	}
	defer log.Close()                               // the process has its own
	command := exec.Command(p.program, "collector", //nolint:noctx // it is stopped by a signal, not killed with the context
		"--name", name, "--pool", poolName, "--size-class", "1", "--co-located", "--state-dir", filepath.Join(p.dir, name),
		"--api", p.stack.Up.Addresses[up.AddressAPI], "--token-file", filepath.Join(p.stack.State(), "tokens", up.TokenCollector))
	command.Stdout, command.Stderr = log, log
	command.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+p.stack.Up.Addresses[up.AddressTemporal], "TEMPORAL_NAMESPACE=benchloom")
	if err := command.Start(); err != nil {
		return fmt.Errorf("starting collector %s: %w", name, err)
	}
	exited := make(chan error, 1)
	go func() { exited <- command.Wait() }()
	p.processes[i], p.exited[i] = command, exited
	return nil
}

// kill ends a collector in the middle of its job, like a power cut.
func (p *collectorPool) kill(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.processes[i] == nil {
		return
	}
	_ = p.processes[i].Process.Kill() // it may have ended already
	<-p.exited[i]
	p.processes[i] = nil
}

// stop stops all collectors as an operator would.
func (p *collectorPool) stop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var failures []error
	for i, command := range p.processes {
		if command == nil {
			continue
		}
		if err := command.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
			failures = append(failures, fmt.Errorf("stopping collector %s: %w", collectorName(i), err))
		}
		select {
		case <-p.exited[i]:
		case <-time.After(livestack.StopBound):
			failures = append(failures, fmt.Errorf("collector %s did not stop in time and was killed", collectorName(i)), command.Process.Kill())
			<-p.exited[i]
		}
		p.processes[i] = nil
	}
	return errors.Join(failures...)
}
