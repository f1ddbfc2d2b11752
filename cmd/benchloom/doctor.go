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

	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/failpoint"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/tune"
)

type doctorFlags struct {
	cpus, root    string
	tune, restore bool
	output        string
}

func newDoctor() *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:     "doctor",
		GroupID: groupLocal,
		Short:   "Show what disturbs measurements on this machine, and tune it",
		Long: `Shows the settings of this machine that disturb measurements, each as good, could
be better, or not available here, with reason and remedy. Nothing is changed.

--tune changes what it may for the CPUs that benchmarks run on: governor
'performance', turbo off, SMT siblings offline, swapping, kernel work and watchdogs
off or elsewhere, interrupts on other CPUs. It needs root. The original values are
stored in /` + tune.Dir + ` before the first change, and are restored in
reverse order by --restore, at a restart of the machine, and at the next start of
'benchloom doctor --tune' or a collector if --tune was killed midway.`,
		Example: `  benchloom doctor --cpus 2-3
  sudo benchloom doctor --tune --cpus 2-3
  sudo benchloom doctor --restore`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.cpus, "cpus", "", "CPUs that benchmarks run on, such as 2-3 (default: all)")
	flags.BoolVar(&f.tune, "tune", false, "change the settings that disturb measurements")
	flags.BoolVar(&f.restore, "restore", false, "restore the settings that --tune changed")
	flags.StringVar(&f.root, "root", "/", "directory with the machine's /proc and /sys, such as a host's in a container")
	outputFlag(cmd, &f.output, formatTable, formatJSON)
	return cmd
}

func (f *doctorFlags) run(cmd *cobra.Command) error {
	if f.tune && f.restore {
		return usage(errors.New("--tune and --restore exclude each other"))
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
	return show(cmd, f.output, d, cli.WriteDiagnosis)
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
