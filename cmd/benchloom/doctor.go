package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/probe"
	"github.com/benchloom/benchloom/internal/tune"
)

type doctorFlags struct {
	cpus, root       string
	tune, restore    bool
	quick, noMeasure bool
	output           string
}

// Measuring times of the noise.
const (
	probeTime = 2 * time.Minute
	quickTime = 20 * time.Second
)

func newDoctor() *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:     "doctor",
		GroupID: groupLocal,
		Short:   "Show what disturbs measurements on this machine, and tune it",
		Long: `Shows the settings of this machine that disturb measurements, each as good, could
be better, or not available here, with reason and remedy. Then measures for two
minutes how noisy the machine is: a small program is compared with itself on the
CPUs that benchmarks run on, in turns, as suspicions are decided. It shows the
spread, the smallest change that would have been seen, and what disturbed the
program. Nothing is changed. Let no benchmark run meanwhile.

--tune changes what it may for the CPUs that benchmarks run on: governor
'performance', turbo off, SMT siblings offline, swapping, kernel work and watchdogs
off or elsewhere, interrupts on other CPUs. It needs root. The original values are
stored in /` + tune.Dir + ` before the first change, and are restored in
reverse order by --restore, at a restart of the machine, and at the next start of
'benchloom doctor --tune' or a collector if --tune was killed midway.`,
		Example: `  benchloom doctor
  benchloom doctor --cpus 2-3 --quick
  sudo benchloom doctor --tune --cpus 2-3
  sudo benchloom doctor --restore`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.cpus, "cpus", "", "CPUs that benchmarks run on, such as 2-3 (default: all)")
	flags.BoolVar(&f.tune, "tune", false, "change the settings that disturb measurements")
	flags.BoolVar(&f.restore, "restore", false, "restore the settings that --tune changed")
	flags.BoolVar(&f.quick, "quick", false, "measure the noise for about 20 seconds only")
	flags.BoolVar(&f.noMeasure, "no-measure", false, "show the settings only")
	flags.StringVar(&f.root, "root", "/", "directory with the machine's /proc and /sys, such as a host's in a container")
	outputFlag(cmd, &f.output, formatTable, formatJSON)
	cmd.AddCommand(newDoctorWork())
	return cmd
}

func (f *doctorFlags) run(cmd *cobra.Command) error {
	switch {
	case f.tune && f.restore:
		return usage(errors.New("--tune and --restore exclude each other"))
	case f.quick && f.noMeasure:
		return usage(errors.New("--quick and --no-measure exclude each other"))
	case (f.tune || f.restore) && (f.quick || f.noMeasure):
		return usage(errors.New("--tune and --restore measure nothing: leave --quick and --no-measure out"))
	}
	cpus, err := measure.ParseCPUList(f.cpus)
	if err != nil {
		return usage(fmt.Errorf("--cpus: %w", err))
	}
	root, err := filepath.Abs(f.root)
	if err != nil {
		return usage(fmt.Errorf("--root: %w", err))
	}
	tuner := newTuner(tune.Machine{Root: root, CPUs: cpus})
	switch {
	case f.tune:
		return f.change(cmd, tuner.Tune)
	case f.restore:
		return f.change(cmd, tuner.Restore)
	}
	return f.diagnose(cmd, tuner)
}

func newTuner(m tune.Machine) tune.Tuner {
	return tune.Tuner{Machine: m, Now: time.Now, Reach: failpoint.FromEnvironment(os.Getenv).Reach}
}

func (f *doctorFlags) diagnose(cmd *cobra.Command, tuner tune.Tuner) error {
	var d cli.Diagnosis
	var err error
	if d.Report, err = tuner.Inspect(); err != nil {
		return misnamed(err)
	}
	if d.Tuned, err = tuner.Tuned(); err != nil {
		return err
	}
	if err := measure.ProbeCounters()[measure.CounterInstructions]; err != nil {
		d.LackCounters(err.Error())
	}
	if limits, err := checkLimits(d.MeasuringCPUs); err == nil {
		d.Findings, d.Limits = append(d.Findings, tune.OfLimits(limits)), limits
	}
	sandbox, remove, err := openProbe(d.MeasuringCPUs)
	if err == nil {
		defer remove()
	} else {
		d.NotMeasured = err.Error()
	}
	if sandbox != nil {
		programs, err := probe.Programs(cmd.Context(), sandbox, bench.Programs(), probe.Working)
		if err != nil {
			return errors.New("cancelled: the programs of profilers were not tried")
		}
		for _, p := range programs {
			d.Findings = append(d.Findings, ofProgram(p))
		}
	}
	if f.output == formatTable {
		if err := cli.WriteDiagnosis(cmd.OutOrStdout(), d, view(cmd)); err != nil {
			return err
		}
	}
	if !f.noMeasure && sandbox != nil {
		if d.Noise, err = f.measure(cmd, sandbox, d.MeasuringCPUs); err != nil && cmd.Context().Err() != nil {
			return errors.New("cancelled: the noise of this machine was not measured")
		} else if err != nil {
			d.NotMeasured = err.Error()
		}
	}
	switch {
	case f.output == formatJSON:
		return cli.WriteJSON(cmd.OutOrStdout(), d)
	case f.noMeasure:
		return nil
	}
	return cli.WriteNoise(cmd.OutOrStdout(), d, view(cmd))
}

// ofProgram grades the program of a profiler.
func ofProgram(p probe.Tried) tune.Finding {
	name := "profiler " + p.Name
	if p.Works() {
		return tune.Finding{Name: name, Grade: tune.Good, Value: "works"}
	}
	return tune.Finding{Name: name, Grade: tune.Unavailable, Reason: p.Reason, Remedy: p.Remedy}
}

// openProbe returns a sandbox in a directory of its own. This program may lie where no account of benchmarks can execute it.
func openProbe(cpus measure.CPUList) (_ *measure.Sandbox, remove func(), err error) {
	dir, err := os.MkdirTemp("", "benchloom-doctor-")
	if err != nil {
		return nil, nil, fmt.Errorf("creating a directory to measure in: %w", err)
	}
	sandbox, err := measure.NewSandbox(measure.SandboxConfig{Name: "doctor", WorkDir: dir, CPUs: cpus, MemoryBytes: 1 << 30, PIDs: 1000, Isolation: measure.Isolation{Off: true}})
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, nil, err
	}
	return sandbox, func() {
		_ = sandbox.Close() // a program that cannot be killed was reported when it was run
		_ = os.RemoveAll(dir)
	}, nil
}

// measure compares this program's workload with itself.
func (f *doctorFlags) measure(cmd *cobra.Command, sandbox *measure.Sandbox, cpus measure.CPUList) (*probe.Noise, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	command := measure.Command{
		Argv: []string{self, "doctor", workCommand}, Env: measure.BaseEnv(sandbox.TempDir(), sandbox.WorkDir()),
		Counters: []measure.Counter{measure.CounterInstructions}, Timeout: time.Minute,
	}
	o := probe.Options{
		Duration: probeTime, Now: time.Now,
		Run:  func(ctx context.Context) (measure.Sample, error) { return sandbox.Run(ctx, command) },
		Read: machine.NewReader(machine.Config{Root: "/", CPUs: cpus, Now: time.Now}).Read,
	}
	if f.quick {
		o.Duration = quickTime
	}
	progress := newBenchProgress(cmd.ErrOrStderr())
	defer progress.end()
	o.Progress = func(p probe.Progress) {
		text := fmt.Sprintf("measuring noise: comparison %d", p.Comparison)
		if progress.screen != nil {
			bar := cli.Bar(int(p.Elapsed), int(max(o.Duration, p.Elapsed)), 20)
			text = fmt.Sprintf("%s %s, %d of %d pairs", bar, text, p.Pairs, p.Of)
		}
		progress.line(text)
	}
	noise, err := probe.Measure(cmd.Context(), o)
	return &noise, err
}

// workCommand is the subcommand that is measured.
const workCommand = "work"

func newDoctorWork() *cobra.Command {
	return &cobra.Command{
		Use:    workCommand,
		Short:  "Do a fixed amount of work, which doctor measures",
		Hidden: true,
		Args:   exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), probe.Work())
			return err
		},
	}
}

// change changes or restores settings, and shows the outcome even if that failed.
func (f *doctorFlags) change(cmd *cobra.Command, act func(context.Context) (tune.Outcome, error)) error {
	out, err := act(cmd.Context())
	if n := len(out.NotRestored); err == nil && n > 0 {
		err = fmt.Errorf("%s could not be restored; the originals are kept: run 'benchloom doctor --restore' again, or restart the machine", cli.Plural(n, "setting"))
	}
	return errors.Join(show(cmd, f.output, out, cli.WriteTuning), misnamed(err))
}

// misnamed makes a CPU that is not online an error of the command line.
func misnamed(err error) error {
	if _, ok := errors.AsType[*tune.NoCPUError](err); ok {
		return usage(fmt.Errorf("--cpus: %w", err))
	}
	return err
}

// restoreInterrupted restores the settings that a killed 'doctor --tune' left half
// changed. Measuring does not depend on it, so failures are only logged.
func restoreInterrupted(ctx context.Context, tuner tune.Tuner, log *slog.Logger) {
	out, err := tuner.Recover(ctx)
	if len(out.Restored) > 0 {
		log.WarnContext(ctx, "restored the machine's settings after an interrupted tuning", "settings", len(out.Restored))
	}
	if n := len(out.NotRestored); n > 0 && err == nil {
		err = fmt.Errorf("%s refused", cli.Plural(n, "setting"))
	}
	if err != nil {
		log.WarnContext(ctx, "an interrupted tuning left settings changed; run 'benchloom doctor --restore' as root", "error", err)
	}
}
