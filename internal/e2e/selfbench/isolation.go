package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/perf/benchfmt"

	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/up"
)

// isolationPlan sets what the part isolation measures.
type isolationPlan struct {
	pairs int
	loops int // rounds of the CPU loop
	forks int // programs that the fork-heavy command starts one after the other
}

// forksProgram starts very many short programs, which is what namespaces could make slower.
const forksProgram = "forks"

func isolationName(program string) string    { return "Isolation/command=" + program }
func isolationCPUName(program string) string { return "IsolationCPU/command=" + program }

// Units of the part isolation.
const (
	unitBeyond = "beyond-%"   // the end of the 95 % interval of the median difference that is farther from 0
	unitSpread = "spread-off" // how far the ratio of the median absolute deviations is from 1
)

// measureIsolation runs commands in turns in two sandboxes that differ in isolation only: namespaces, an account of its own
// if this is root, limits of files and processes. It compares the wall times that a collector would record.
func measureIsolation(ctx context.Context, plan isolationPlan, report *report) (err error) {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	dir, err := os.MkdirTemp("", "benchloom-selfbench-")
	if err != nil {
		return fmt.Errorf("making a work directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	arms, err := openArms(dir, self)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, arms[false].Close(), arms[true].Close()) }()
	random := rand.New(rand.NewPCG(1, 2))
	for _, p := range []struct {
		name string
		argv []string
	}{
		{loopProgram, []string{self, loopCommand, strconv.Itoa(plan.loops)}},
		{forksProgram, []string{"/bin/sh", "-c", fmt.Sprintf("i=0; while [ $i -lt %d ]; do /bin/true; i=$((i+1)); done", plan.forks)}},
	} {
		open, isolated := make([]cost, plan.pairs), make([]cost, plan.pairs)
		for i := range plan.pairs {
			turns := []bool{false, true}
			if random.IntN(2) == 1 {
				slices.Reverse(turns)
			}
			for _, isolate := range turns {
				c, err := recorded(ctx, arms[isolate], p.argv)
				if err != nil {
					return err
				}
				if isolate {
					isolated[i] = c
				} else {
					open[i] = c
				}
			}
		}
		wall := func(c cost) time.Duration { return c.wall }
		if err := report.add(isolationFigure(isolationName(p.name), open, isolated, wall)); err != nil {
			return err
		}
		cpu := func(c cost) time.Duration { return c.cpu }
		if err := report.add(isolationFigure(isolationCPUName(p.name), open, isolated, cpu)); err != nil {
			return err
		}
	}
	return nil
}

// openArms makes a sandbox without isolation and one with it, on the same cores and with directories of equal length.
func openArms(dir, self string) (map[bool]*measure.Sandbox, error) {
	cores, err := up.AvailableCores()
	if err != nil {
		return nil, err
	}
	layout, err := up.Plan(cores, "", false)
	if err != nil {
		return nil, err
	}
	arms := map[bool]*measure.Sandbox{}
	for _, isolate := range []bool{false, true} {
		config := measure.SandboxConfig{
			Name: fmt.Sprintf("selfbench-%d-%t", os.Getpid(), isolate), WorkDir: filepath.Join(dir, "open"), CPUs: layout.Slots[0].CPUs,
			MemoryBytes: 1 << 30, DiskBytes: 1 << 30, PIDs: 1000, Isolation: measure.Isolation{Off: true},
		}
		if isolate {
			config.WorkDir = filepath.Join(dir, "kept")
			config.Inodes, config.OpenFiles = 100_000, 1024
			config.Isolation = measure.Isolation{Hidden: []string{dir}, ReadOnly: []string{self}}
			if os.Geteuid() == 0 {
				const nobody = 65534
				config.User = &measure.User{UID: nobody, GID: nobody}
			}
		}
		arms[isolate], err = measure.NewSandbox(config)
		if err != nil {
			if open := arms[false]; open != nil {
				err = errors.Join(err, open.Close())
			}
			return nil, err
		}
		for _, lacking := range arms[isolate].Unenforced() {
			if slices.Contains([]measure.Limit{measure.LimitProcesses, measure.LimitFiles, measure.LimitNetwork}, lacking.Name) {
				return nil, errors.Join(fmt.Errorf("the isolation cannot be measured on this machine: %s: %s", lacking.Name, lacking.Reason), arms[false].Close(), arms[true].Close())
			}
		}
	}
	return arms, nil
}

// recorded runs a command once and returns what a collector would record.
func recorded(ctx context.Context, sandbox *measure.Sandbox, argv []string) (cost, error) {
	// The same in both arms, apart from TMPDIR, whose length is the same.
	env := measure.BaseEnv(sandbox.TempDir(), "/")
	sample, err := sandbox.Run(ctx, measure.Command{Argv: argv, Env: env, Output: io.Discard, Timeout: time.Minute})
	if err != nil {
		return cost{}, fmt.Errorf("running %s in a sandbox: %w", argv[0], err)
	}
	if !sample.Succeeded() {
		return cost{}, fmt.Errorf("running %s in a sandbox: it ended as %s, exit code %d", argv[0], sample.Status, sample.ExitCode)
	}
	return cost{sample.Wall, sample.UserCPU + sample.SystemCPU}, nil
}

// isolationFigure compares two series: the median of the differences within pairs with its 95 % interval, in per cent of the
// median without isolation, and the ratio of the median absolute deviations.
func isolationFigure(name string, open, isolated []cost, of func(cost) time.Duration) figure {
	var differences, without, with []float64
	for i := range open {
		a, b := of(open[i]).Seconds(), of(isolated[i]).Seconds()
		without, with, differences = append(without, a), append(with, b), append(differences, b-a)
	}
	base := median(without)
	percent := func(seconds float64) float64 {
		if base == 0 {
			return 0
		}
		return rounded(100*seconds/base, 3)
	}
	low, high := medianInterval(differences)
	ratio := 1.0
	if spread := deviation(without); spread > 0 {
		ratio = deviation(with) / spread
	}
	return figure{name, len(open), []benchfmt.Value{
		{Value: rounded(base, 6), Unit: "open-sec"}, {Value: rounded(median(with), 6), Unit: "isolated-sec"},
		{Value: percent(median(differences)), Unit: unitPercent}, {Value: percent(low), Unit: "low-%"}, {Value: percent(high), Unit: "high-%"},
		{Value: max(math.Abs(percent(low)), math.Abs(percent(high))), Unit: unitBeyond},
		{Value: rounded(ratio, 3), Unit: "spread-ratio"}, {Value: rounded(math.Abs(ratio-1), 3), Unit: unitSpread},
	}}
}

// medianInterval returns the distribution-free 95 % interval of a median: the order statistics whose ranks are 1.96 standard
// deviations of a binomial distribution with p = 1/2 away from the middle (Conover, Practical Nonparametric Statistics, 3.2). It
// depends on no random numbers, unlike a bootstrap, with which it agrees at hundreds of values.
func medianInterval(values []float64) (low, high float64) {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0, 0
	}
	rank := int(math.Floor(float64(n)/2 - 1.96*math.Sqrt(float64(n))/2)) // counted from 1
	rank = max(rank, 1)
	return sorted[rank-1], sorted[n-rank]
}

// deviation returns the median absolute deviation from the median.
func deviation(values []float64) float64 {
	middle := median(values)
	var all []float64
	for _, v := range values {
		all = append(all, math.Abs(v-middle))
	}
	return median(all)
}
