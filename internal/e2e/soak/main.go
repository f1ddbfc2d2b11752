// Soak floods the API of a running stack with what hostile or broken clients send, at 200
// connections, while a collector runs jobs beside: invented methods, readers that hardly
// read, headers of 1 MB, broken JSON, and connections that are opened and left. It fails if
// the API needs more memory than its limit, if more than one of a hundred probes and pages is
// answered with an error, if a heartbeat of the collector is lost, or if a job does not succeed. Latencies
// and memory are printed in Go's benchmark format.
//
// It starts a stack of its own, talks to loopback only, and is bounded in connections and
// time. See docs/benchmarks.md for method and figures.
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
	"strings"
	"syscall"
	"time"

	"github.com/benchloom/benchloom/internal/e2e/livestack"
	"github.com/benchloom/benchloom/internal/up"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

type options struct {
	duration    time.Duration
	connections int
	memory      int // megabytes
	silence     time.Duration
	filling     int
	programs    livestack.Programs
}

// Bounds of the flood, so that a mistyped option harms nobody.
const (
	mostConnections = 1000
	longest         = 24 * time.Hour
)

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&o.duration, "duration", 15*time.Minute, "time for which the API is flooded; longer until a job has ended")
	flags.IntVar(&o.connections, "connections", 200, "connections of the flood")
	flags.IntVar(&o.memory, "memory", 150, "limit of the API's resident memory, in MB (1,000,000 bytes)")
	// Heartbeats come every 3 s: two intervals are 6 s.
	flags.DurationVar(&o.silence, "silence", 5500*time.Millisecond, "age of a collector's last heartbeat from which one was lost")
	flags.IntVar(&o.filling, "filling", 4000, "measurements before the flood, for exports to be large")
	flags.StringVar(&o.programs.Benchloom, "program", environment("BENCHLOOM_BIN", filepath.Join("bin", "benchloom")), "path of the benchloom binary")
	flags.StringVar(&o.programs.Temporal, "temporal-program", environment("BENCHLOOM_TEMPORAL_DEV", filepath.Join("bin", "temporal-dev")), "path of the embedded Temporal")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.duration < 10*time.Second || o.duration > longest:
		return o, fmt.Errorf("-duration must be 10s to %s", longest)
	case o.connections < len(kinds()) || o.connections > mostConnections:
		return o, fmt.Errorf("-connections must be %d to %d", len(kinds()), mostConnections)
	case o.memory < 1 || o.filling < 1 || o.silence <= 3*time.Second:
		return o, errors.New("-memory and -filling must be positive, and -silence more than 3s")
	}
	return o, nil
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
	progress := func(format string, args ...any) {
		fmt.Fprintf(stderr, "%s soak: %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
	}
	progress("starting a stack")
	// The machine does other work, so no iteration is repeated for being disturbed.
	stack, err := livestack.Start(ctx, o.programs, "--co-located")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stack.Stop(err == nil)) }()
	address := stack.Up.Addresses[up.AddressAPI]
	if !strings.HasPrefix(address, "http://127.0.0.1:") {
		return fmt.Errorf("the API is at %s; only a stack on loopback is flooded", address)
	}
	progress("measuring %d times, for exports to be large", o.filling)
	if err := fill(ctx, stack.API, o.filling); err != nil {
		return err
	}
	w, err := newWatch(stack)
	if err != nil {
		return err
	}
	progress("flooding %s with %d connections for %s", address, o.connections, o.duration)
	f, err := newFlood(ctx, stack)
	if err != nil {
		return err
	}
	bounded, stop := context.WithTimeout(ctx, o.duration+jobPatience)
	defer stop()
	f.start(bounded, o.connections)
	defer time.AfterFunc(o.duration, func() { w.enough(bounded, stop) }).Stop()
	found, watchErr := w.until(bounded)
	f.wait()
	if err := errors.Join(ctx.Err(), watchErr); err != nil {
		return err
	}
	if err := found.print(stdout, f.counts()); err != nil {
		return err
	}
	if f.exports.Load() == 0 {
		return errors.New("no slow reader got an export: nothing was read slowly")
	}
	return found.judge(int64(o.memory)*1_000_000, o.silence)
}
