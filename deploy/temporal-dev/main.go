// Command temporal-dev runs a Temporal server and its Web UI in one process, on one
// SQLite file. "benchloom up" starts it unless a Temporal cluster is configured.
//
// It is a separate Go module to keep the server's dependencies out of the service. It
// knows nothing about Benchloom: its clients set the search attributes and the
// retention of the namespace through Temporal's API.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	uiversion "github.com/temporalio/ui-server/v2/server/version"
	"go.temporal.io/server/common/headers"
)

// stopBound bounds a clean stop. After it the process ends anyway, which is as safe as
// a crash because of SQLite's write-ahead log.
const stopBound = 8 * time.Second

// errVersionPrinted ends the program after --version, as flag.ErrHelp does after
// --help.
var errVersionPrinted = errors.New("version printed")

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// options holds the parsed command line.
type options struct {
	dbFile    string
	ip        net.IP
	port      int
	uiPort    int
	namespace string
	logLevel  slog.Level
}

// run runs the program and returns its exit status.
func run(args []string, stdout, stderr io.Writer) int {
	opts, err := parseOptions(args, stdout, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp), errors.Is(err, errVersionPrinted):
		return 0
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "temporal-dev: %v\n", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	if err := serve(ctx, opts, stdout, stderr); err != nil {
		_, _ = fmt.Fprintf(stderr, "temporal-dev: %v\n", err)
		return 1
	}
	return 0
}

func parseOptions(args []string, stdout, stderr io.Writer) (options, error) {
	flags := flag.NewFlagSet("temporal-dev", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var opts options
	flags.StringVar(&opts.dbFile, "db-file", "", "SQLite `file` that holds everything; created when absent (required)")
	ip := flags.String("ip", "127.0.0.1", "`address` to listen on")
	flags.IntVar(&opts.port, "port", 7233, "gRPC `port` of the frontend; 0 picks a free one")
	flags.IntVar(&opts.uiPort, "ui-port", 8233, "`port` of the Web UI; 0 means no Web UI")
	flags.StringVar(&opts.namespace, "namespace", "benchloom", "`name` of the namespace to create when absent")
	level := flags.String("log-level", "warn", "lowest `level` to log: debug, info, warn or error")
	version := flags.Bool("version", false, "print the versions of server and Web UI")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if *version {
		_, _ = fmt.Fprintf(stdout, "temporal-dev server %s ui %s\n", headers.ServerVersion, uiversion.UIVersion)
		return options{}, errVersionPrinted
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q: it takes flags only", flags.Arg(0))
	}
	if opts.dbFile == "" {
		return options{}, errors.New("--db-file is missing: name the SQLite file to use")
	}
	if opts.namespace == "" {
		return options{}, errors.New("--namespace is empty: name the namespace to use")
	}
	for name, port := range map[string]int{"port": opts.port, "ui-port": opts.uiPort} {
		if port < 0 || port > 65535 {
			return options{}, fmt.Errorf("--%s %d is not a port: use 0 to 65535", name, port)
		}
	}
	if *ip == "localhost" {
		*ip = loopback
	}
	if opts.ip = net.ParseIP(*ip); opts.ip == nil {
		return options{}, fmt.Errorf("--ip %q is not an IP address: use for example %s", *ip, loopback)
	}
	if err := opts.logLevel.UnmarshalText([]byte(*level)); err != nil {
		return options{}, fmt.Errorf("--log-level %q is not known: use debug, info, warn or error", *level)
	}
	return opts, nil
}

// serve runs the server until the context ends. It prints one line to stdout
// when the frontend answers health checks.
func serve(ctx context.Context, opts options, stdout, stderr io.Writer) error {
	ports, err := choosePorts(opts.ip, opts.port, opts.uiPort)
	if err != nil {
		return err
	}
	database, err := openDatabase(ctx, opts.dbFile, opts.namespace)
	if err != nil {
		return err
	}
	logger := newServerLogger(stderr, opts.logLevel)
	server, err := newTemporalServer(opts.ip, ports, database, logger)
	if err != nil {
		return fmt.Errorf("configuring the server: %w", err)
	}
	if err := server.Start(); err != nil {
		return fmt.Errorf("starting the server: %w", err)
	}
	frontend := net.JoinHostPort(reachable(opts.ip), strconv.Itoa(ports.frontend))
	stopUI := startUI(opts.ip, ports.ui, frontend, opts.namespace)
	err = waitServing(ctx, frontend, uiAddress(opts.ip, ports.ui))
	if err == nil {
		_, _ = fmt.Fprintln(stdout, readyLine(frontend, uiAddress(opts.ip, ports.ui)))
		<-ctx.Done()
	} else if ctx.Err() != nil {
		err = nil // asked to stop before it was ready: a clean stop all the same
	}
	// A stopping server logs lost connections to its own services.
	logger.quieten()
	stopUI()
	stopped := make(chan struct{})
	go func() {
		_ = server.Stop()
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-time.After(stopBound):
	}
	return err
}

func readyLine(frontend, ui string) string {
	if ui == "" {
		return "ready frontend=" + frontend
	}
	return "ready frontend=" + frontend + " ui=http://" + ui
}
