// Command benchloom is the one binary of Benchloom: its subcommands are the
// processes of the service (up, api, orchestrator, collector) and the clients of
// its API.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/sandboxinit"
	"github.com/benchloom/benchloom/workers"
)

// version is set in releases: -ldflags "-X main.version=…".
var version = "dev"

// Exit codes, for scripts.
const (
	exitFailed     = 1 // the command failed
	exitUsage      = 2 // the command line is wrong
	exitRegression = 3 // compare --fail-on found a regression
	exitOutcome    = 4 // an awaited request did not succeed
	exitUnreached  = 5 // the API, Temporal or the database cannot be reached
	exitRefused    = 6 // the API refuses this collector
	// exitOutdated: this collector must run another version (EX_TEMPFAIL of
	// sysexits.h: try again later).
	exitOutdated = 75
)

// exitError carries an exit code other than exitFailed.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func main() {
	measure.InitMain()
	measure.UseInit(sandboxinit.Program)
	workers.Identify(version)
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run runs a command line and returns the exit code.
func run(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	var coded *exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &coded):
		fmt.Fprintln(errOut, "benchloom:", cli.Escape(err.Error()))
		return coded.code
	}
	fmt.Fprintln(errOut, "benchloom:", cli.Escape(err.Error()))
	return exitFailed
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "benchloom",
		Short: "Continuous benchmarking on your own machines",
		Long: `Benchloom benchmarks the releases, merged commits and proposed changes of a project
on dedicated machines, and compares each with its parent commit or with the release
before.

Start everything on this machine with 'benchloom up'; then submit with
'benchloom submit', watch with 'benchloom status --watch', compare with
'benchloom compare'. Measure without any service with 'benchloom bench'.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 regression found
(compare --fail-on), 4 an awaited request did not succeed, 5 the service cannot
be reached, 6 the API refuses this collector, 75 this collector must run another
version.`,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          exactArgs(0),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage(fmt.Errorf("%w; see '%s --help'", err, cmd.CommandPath()))
	})
	root.AddGroup(
		&cobra.Group{ID: groupUse, Title: "Using the service:"},
		&cobra.Group{ID: groupLocal, Title: "Without the service:"},
		&cobra.Group{ID: groupRun, Title: "Running the service:"},
	)
	root.AddCommand(newUp(), newAPI(), newOrchestrator(), newCollectorGroup())
	root.AddCommand(newClientCommands()...)
	return root
}

const (
	groupUse   = "use"
	groupLocal = "local"
	groupRun   = "run"
)

// usage marks an error of the command line.
func usage(err error) error { return &exitError{exitUsage, err} }
