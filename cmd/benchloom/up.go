package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/internal/accounts"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/devstack"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/up"
	"github.com/benchloom/benchloom/internal/webguard"
	"github.com/benchloom/benchloom/starter"
)

func newUp() *cobra.Command {
	var f processFlags
	var o up.Options
	var target, memory string
	var bounds boundFlags
	cmd := &cobra.Command{
		Use:     "up",
		GroupID: groupRun,
		Short:   "Start everything on this machine",
		Long: `Starts a private Postgres, the embedded Temporal server with its Web UI, the
API, an orchestrator and collectors, all on loopback, with all state below one
directory. Ctrl-C stops everything; the next 'benchloom up' continues from there.

The services keep one core; the other cores form one collector, with its share of
the machine's memory. If TEMPORAL_ADDRESS or DATABASE_URL is set, the server that it
names is used instead of a private one.`,
		Example: `  benchloom up
  benchloom up --collectors 2x1,1x4
  benchloom up --state-dir /var/lib/benchloom`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := f.logger(cmd)
			if err != nil {
				return err
			}
			if o.Target, err = bench.ParseTarget(target); err != nil {
				return usage(fmt.Errorf("--target: %w", err))
			}
			if o.Program, err = os.Executable(); err != nil {
				return fmt.Errorf("finding the benchloom binary: %w", err)
			}
			if o.StateDir, err = filepath.Abs(o.StateDir); err != nil {
				return fmt.Errorf("finding the state directory: %w", err)
			}
			if o.Cores, err = up.AvailableCores(); err != nil {
				return err
			}
			if o.MemoryBytes, err = memorySize("--memory", memory); err != nil {
				return usage(err)
			}
			if facts, err := measure.ReadFacts("/"); err == nil && memory == "" {
				o.MemoryBytes = facts.MemoryBytes / 10 * 9 // a tenth stays with the system
			}
			o.TemporalProgram = up.TemporalProgram(os.Getenv, o.Program)
			o.TemporalAddress, o.DatabaseURL = os.Getenv("TEMPORAL_ADDRESS"), os.Getenv("DATABASE_URL")
			if _, err := webguard.New(f.allowedHosts...); err != nil {
				return usage(fmt.Errorf("--allowed-host: %w", err))
			}
			if o.OpenRead && o.ClosedRead {
				return usage(errors.New("--open-read and --closed-read exclude each other"))
			}
			if err := checkIsolation(o.Isolation); err != nil {
				return usage(err)
			}
			if _, err := parseReserve(o.DiskReserve); err != nil {
				return usage(err)
			}
			if o.Bounds, err = bounds.own(); err != nil {
				return usage(err)
			}
			o.AllowedHosts, o.Accounts = f.allowedHosts, accounts.System()
			o.Environ, o.Log, o.Now = os.Environ(), log, time.Now
			err = up.Run(cmd.Context(), o, func(a up.Addresses) { announce(cmd.ErrOrStderr(), o, a) }, secondInterrupt(cmd))
			var running *devstack.AlreadyRunningError
			if errors.As(err, &running) {
				return fmt.Errorf("%w; 'benchloom status' uses the running one", err)
			}
			return err
		},
	}
	flags := cmd.Flags()
	f.add(flags)
	f.addHosts(flags)
	addIsolation(flags, &o.Isolation)
	bounds.addOwn(flags)
	addReserve(flags, &o.DiskReserve)
	flags.StringVar(&o.StateDir, "state-dir", env("BENCHLOOM_STATE_DIR", devstack.DefaultStateDir), "directory for all state")
	flags.StringVar(&o.Collectors, "collectors", "", "collectors by size class, such as 2x1,1x4 (default: one with all cores but the services')")
	flags.BoolVar(&o.ShareCores, "share-cores", false, "allow collectors on shared cores; their results are marked co-located")
	flags.BoolVar(&o.CoLocated, "co-located", false, "other work runs on this machine: mark all results co-located, and repeat no disturbed iteration")
	flags.StringVar(&memory, "memory", "", "memory for benchmarks, such as 8g, divided among collectors by size class (default: nine tenths of the machine's)")
	flags.StringVar(&target, "target", hostTarget(), "target tuple of this machine")
	flags.StringVar(&o.Namespace, "namespace", env("TEMPORAL_NAMESPACE", starter.DefaultNamespace), "Temporal namespace")
	flags.BoolVar(&o.ClosedRead, "closed-read", false, "require a token for reading, too (default: if there is an --allowed-host)")
	flags.BoolVar(&o.OpenRead, "open-read", false, "allow reading without a token, whatever --allowed-host says")
	flags.IntVar(&o.APIPort, "api-port", 7480, "port of the API; 0 for a free one")
	flags.IntVar(&o.MetricsPort, "metrics-port", 7481, "first port for the metrics of orchestrator and collectors; 0 for free ones")
	flags.IntVar(&o.TemporalPort, "temporal-port", 7233, "port of the embedded Temporal; 0 for a free one")
	flags.IntVar(&o.TemporalUIPort, "temporal-ui-port", 8233, "port of Temporal's Web UI; 0 for a free one")
	return cmd
}

// secondInterrupt returns a channel that the second Ctrl-C closes. The first one
// stops everything in order, the second immediately.
func secondInterrupt(cmd *cobra.Command) <-chan struct{} {
	hurry := make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		fmt.Fprintln(cmd.ErrOrStderr(), "stopping; press Ctrl-C again to stop at once")
		<-signals
		close(hurry)
	}()
	return hurry
}

func announce(w io.Writer, o up.Options, a up.Addresses) {
	fmt.Fprintf(w, "\nBenchloom is ready.\n  API          %s\n", a.API)
	if a.TemporalUI != "" {
		fmt.Fprintf(w, "  Temporal UI  %s/namespaces/%s/workflows\n", a.TemporalUI, o.Namespace)
	}
	fmt.Fprintf(w, "  state        %s\n  stop         Ctrl-C\n\n", o.StateDir)
}
