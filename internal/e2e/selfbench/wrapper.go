package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/perf/benchfmt"

	"github.com/benchloom/benchloom/internal/e2e/livestack"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/up"
)

// Programs that are run wrapped and bare.
const (
	shortProgram = "true" // does nothing
	loopProgram  = "loop" // burns about a second of CPU time
)

func wrapperName(program string) string    { return "Wrapper/command=" + program }
func wrapperCPUName(program string) string { return "WrapperCPU/command=" + program }

// wrapperPlan sets the numbers of rounds and pairs.
type wrapperPlan struct {
	loops      int // rounds of the CPU loop
	pairs      int // of the CPU loop, wrapped and bare
	shortPairs int // of true
}

// cost is the cost of one run of a command.
type cost struct {
	wall time.Duration // around everything, by this process's clock
	cpu  time.Duration // user and system, of the command
}

// measureWrapper runs commands alternately in a sandbox as a collector does, with every
// limit switched on, and bare through os/exec.
func measureWrapper(ctx context.Context, plan wrapperPlan, report *report) (err error) {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	dir, err := os.MkdirTemp("", "benchloom-selfbench-")
	if err != nil {
		return fmt.Errorf("making a work directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w, err := openWrapper(dir, self)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.sandbox.Close()) }()
	for _, p := range []struct {
		name  string
		argv  []string
		pairs int
	}{
		{shortProgram, []string{"true"}, plan.shortPairs},
		{loopProgram, []string{self, loopCommand, strconv.Itoa(plan.loops)}, plan.pairs},
	} {
		wrapped, bare, err := w.pairs(ctx, p.argv, p.pairs)
		if err != nil {
			return err
		}
		wall := func(c cost) time.Duration { return c.wall }
		if err := report.add(added(wrapperName(p.name), wrapped, bare, wall)); err != nil {
			return err
		}
		cpu := func(c cost) time.Duration { return c.cpu }
		if err := report.add(added(wrapperCPUName(p.name), wrapped, bare, cpu)); err != nil {
			return err
		}
	}
	return nil
}

// added returns the median of the differences within pairs, as time and in per cent of
// the bare median.
func added(name string, wrapped, bare []cost, of func(cost) time.Duration) figure {
	var differences, all, plain []time.Duration
	for i := range bare {
		all, plain = append(all, of(wrapped[i])), append(plain, of(bare[i]))
		differences = append(differences, of(wrapped[i])-of(bare[i]))
	}
	more, base := median(differences), median(plain)
	percent := 0.0
	if base > 0 {
		percent = rounded(100*float64(more)/float64(base), 3)
	}
	return figure{name, len(bare), []benchfmt.Value{
		{Value: seconds(median(all)), Unit: "wrapped-sec"}, {Value: seconds(base), Unit: "bare-sec"},
		{Value: seconds(more), Unit: unitAdded}, {Value: percent, Unit: unitPercent},
	}}
}

type wrapper struct {
	sandbox  *measure.Sandbox
	cpus     measure.CPUList
	env      []string
	counters []measure.Counter
}

// openWrapper makes a sandbox on the cores of a collector of this machine.
func openWrapper(dir, self string) (*wrapper, error) {
	cores, err := up.AvailableCores()
	if err != nil {
		return nil, err
	}
	layout, err := up.Plan(cores, "", false)
	if err != nil {
		return nil, err
	}
	cpus := layout.Slots[0].CPUs
	sandbox, err := measure.NewSandbox(measure.SandboxConfig{
		Name: "selfbench-" + strconv.Itoa(os.Getpid()), WorkDir: filepath.Join(dir, "work"), CPUs: cpus,
		MemoryBytes: 1 << 30, DiskBytes: 1 << 30, PIDs: 1000, Isolation: measure.Isolation{ReadOnly: []string{self}},
	})
	if err != nil {
		return nil, err
	}
	return &wrapper{sandbox, cpus, measure.BaseEnv(sandbox.TempDir(), dir), measure.ProbeCounters().Available()}, nil
}

// pairs runs a command wrapped and bare, changing the order with each pair.
func (w *wrapper) pairs(ctx context.Context, argv []string, n int) (wrapped, bare []cost, err error) {
	wrapped, bare = make([]cost, n), make([]cost, n)
	for i := range n {
		turns := []func() error{
			func() (err error) { wrapped[i], err = w.wrapped(ctx, argv); return err },
			func() (err error) { bare[i], err = w.bare(ctx, argv); return err },
		}
		if i%2 == 1 {
			turns[0], turns[1] = turns[1], turns[0]
		}
		for _, turn := range turns {
			if err := turn(); err != nil {
				return nil, nil, err
			}
		}
	}
	return wrapped, bare, nil
}

func (w *wrapper) wrapped(ctx context.Context, argv []string) (cost, error) {
	begun := time.Now()
	sample, err := w.sandbox.Run(ctx, measure.Command{Argv: argv, Env: w.env, Output: io.Discard, Timeout: time.Minute, Counters: w.counters})
	wall := time.Since(begun)
	if err != nil {
		return cost{}, fmt.Errorf("running %s in a sandbox: %w", argv[0], err)
	}
	if !sample.Succeeded() {
		return cost{}, fmt.Errorf("running %s in a sandbox: it ended as %s, exit code %d", argv[0], sample.Status, sample.ExitCode)
	}
	return cost{wall, sample.UserCPU + sample.SystemCPU}, nil
}

// bare runs a command on the sandbox's CPUs, so that other load on these affects both
// alike.
func (w *wrapper) bare(ctx context.Context, argv []string) (c cost, err error) {
	err = livestack.OnCPUs(w.cpus, func() error {
		begun := time.Now()
		command := exec.CommandContext(ctx, argv[0], argv[1:]...)
		command.Env, command.Dir = w.env, w.sandbox.WorkDir()
		err := command.Run()
		c.wall = time.Since(begun)
		if err != nil {
			return err
		}
		c.cpu = command.ProcessState.UserTime() + command.ProcessState.SystemTime()
		return nil
	})
	if err != nil {
		return c, fmt.Errorf("running %s: %w", argv[0], err)
	}
	return c, nil
}
