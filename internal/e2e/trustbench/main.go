// Trustbench tries whether Benchloom's verdicts are right on a real machine: requests of code that did not change, half of
// them under a load that starts and stops at random, and requests of a library with a planted slowdown, with and without a
// load. It counts what is told, and which sessions are marked disturbed.
//
// It takes hours, in pieces: each start tries what is still missing, and keeps every result in a state directory. When
// nothing is missing, it fails if a limit is broken. It uses the service from outside only: the built binaries, the HTTP API,
// the record and /proc. See docs/statistics.md for method and figures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/benchloom/benchloom/internal/e2e/livestack"
)

func main() {
	os.Exit(command())
}

func command() int {
	if len(os.Args) == 2 && os.Args[1] == burnCommand {
		if err := burn(os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, "trustbench:", err)
			return 1
		}
		return 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, "trustbench:", err)
		return 1
	}
	return 0
}

type options struct {
	plan     plan
	dir      string
	piece    time.Duration
	report   bool
	programs livestack.Programs
}

func parse(args []string, stderr io.Writer) (options, error) {
	o := options{plan: plan{Seed: 2026}}
	flags := flag.NewFlagSet("trustbench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.dir, "state", ".benchloom-trust", "directory of the results and of the service's state")
	flags.DurationVar(&o.piece, "piece", 30*time.Minute, "time after which this start ends; the next one continues")
	flags.BoolVar(&o.report, "report", false, "print what was found so far as a Markdown table, and try nothing")
	flags.IntVar(&o.plan.Requests, "requests", 40, "requests of unchanged code, half of them under load")
	flags.IntVar(&o.plan.Slowdowns, "slowdowns", 10, "requests with each planted slowdown, without and with load")
	flags.StringVar(&o.programs.Benchloom, "program", environment("BENCHLOOM_BIN", filepath.Join("bin", "benchloom")), "path of the benchloom binary")
	flags.StringVar(&o.programs.Temporal, "temporal-program", environment("BENCHLOOM_TEMPORAL_DEV", filepath.Join("bin", "temporal-dev")), "path of the embedded Temporal")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.dir == "":
		return o, errors.New("-state must name a directory")
	case o.piece < 3*time.Minute:
		return o, errors.New("-piece must be at least 3m: a trial takes about a minute, starting the service half of one")
	case o.plan.Requests < 2 || o.plan.Slowdowns < 1:
		return o, errors.New("-requests must be at least 2, -slowdowns at least 1")
	}
	var err error
	o.dir, err = filepath.Abs(o.dir)
	return o, err
}

func environment(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	path := filepath.Join(o.dir, "trials.jsonl")
	if o.report {
		outcomes, _, err := readState(path, o.plan)
		if err != nil {
			return err
		}
		return writeReport(stdout, o.plan, outcomes)
	}
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return err
	}
	lock := flock.New(filepath.Join(o.dir, "lock"))
	switch locked, err := lock.TryLock(); {
	case err != nil:
		return fmt.Errorf("locking %s: %w", o.dir, err)
	case !locked:
		return fmt.Errorf("another run uses %s: wait for it, or name another directory with -state", o.dir)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	s, err := openState(path, o.plan)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.file.Close()) }()
	progress := func(format string, args ...any) {
		fmt.Fprintf(stderr, "%s trustbench: %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
	}
	if err := piece(ctx, o, s, progress); err != nil {
		return err
	}
	if err := writeReport(stdout, o.plan, s.outcomes); err != nil {
		return err
	}
	if missing := len(o.plan.missing(s.outcomes)); missing > 0 {
		progress("%d of %d trials are still missing: start it again", missing, len(o.plan.trials()))
	}
	return judge(o.plan, s.outcomes)
}
