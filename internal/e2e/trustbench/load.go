package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"time"

	"github.com/benchloom/benchloom/internal/e2e/livestack"
	"github.com/benchloom/benchloom/internal/measure"
)

// burnCommand makes this program burn CPU time until its standard input ends, at the latest with the program that started it.
const burnCommand = "burn"

func burn(until io.Reader) error {
	ended := make(chan error)
	go func() {
		_, err := io.Copy(io.Discard, until)
		ended <- err
	}()
	x := uint64(88172645463325252)
	for {
		select {
		case err := <-ended:
			return err
		default:
		}
		for range 100_000 { // Marsaglia's xorshift64
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
		if x == 0 { // never, but the compiler does not know that
			return errors.New("the load ended with 0")
		}
	}
}

// burner is a process that keeps one CPU busy.
type burner struct {
	command *exec.Cmd
	input   io.Closer
}

// startBurner starts a process that burns CPU time on the given CPUs.
func startBurner(cpus measure.CPUList) (*burner, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	command := exec.Command(self, burnCommand) //nolint:noctx // it ends with its input
	input, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the load: %w", err)
	}
	if err := livestack.OnCPUs(cpus, command.Start); err != nil {
		return nil, fmt.Errorf("starting the load: %w", err)
	}
	return &burner{command, input}, nil
}

func (b *burner) stop() error {
	if err := errors.Join(b.input.Close(), b.command.Wait()); err != nil {
		return fmt.Errorf("stopping the load: %w", err)
	}
	return nil
}

// interval is a time in which the load ran.
type interval struct{ from, to time.Time }

// load competes with the job for its CPUs.
type load struct {
	stopped context.CancelFunc
	ended   chan error
	ran     []interval
}

// steady is a phase that outlasts every trial.
const steady = 24 * time.Hour

// Bounds of the phases of a load that starts and stops. A session takes some seconds: a phase may cover it, end in it or be
// part of it.
const (
	shortestPhase = 500 * time.Millisecond
	longestPhase  = 8 * time.Second
)

// phases returns how long a load runs and pauses by turns.
func phases(pattern uint64) func() time.Duration {
	random := rand.New(rand.NewPCG(pattern, 0))
	return func() time.Duration {
		return shortestPhase + time.Duration(random.Int64N(int64(longestPhase-shortestPhase)))
	}
}

// startLoad begins to run and to pause by turns.
func startLoad(ctx context.Context, cpus measure.CPUList, phase func() time.Duration) *load {
	ctx, stopped := context.WithCancel(ctx)
	l := &load{stopped: stopped, ended: make(chan error, 1)}
	go func() { l.ended <- l.run(ctx, cpus, phase) }()
	return l
}

func (l *load) run(ctx context.Context, cpus measure.CPUList, phase func() time.Duration) error {
	for ctx.Err() == nil {
		from := time.Now()
		b, err := startBurner(cpus)
		if err != nil {
			return err
		}
		wait(ctx, phase())
		err = b.stop()
		l.ran = append(l.ran, interval{from, time.Now()})
		if err != nil {
			return err
		}
		wait(ctx, phase())
	}
	return nil
}

// stop ends the load and returns when it ran.
func (l *load) stop() ([]interval, error) {
	l.stopped()
	err := <-l.ended
	return l.ran, err
}

// wait returns after a time, or earlier when the context ends.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
