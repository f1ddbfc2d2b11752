// Command temporal-dev runs a Temporal server and its Web UI in one process, on one
// SQLite file. "benchloom up" starts it unless a Temporal cluster is configured.
//
// It is a separate Go module to keep the server's dependencies out of the service. Of
// Benchloom it knows the rights of tokens, and that the API tells their owners; clients set
// the search attributes and the retention of the namespace through Temporal's API.
//
// With --token-file it refuses every call without a token of Benchloom.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	uiversion "github.com/temporalio/ui-server/v2/server/version"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/server/common/headers"
)

// stopBound bounds a clean stop. After it the process ends anyway, which is as safe as
// a crash, thanks to SQLite's write-ahead log.
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
	uiSocket  string
	namespace string
	logLevel  slog.Level

	tlsCert, tlsKey, tlsClientCA string
	tokenFile, api, apiCA        string
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
	// A second signal ends the process immediately.
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
	flags.StringVar(&opts.uiSocket, "ui-socket", "", "Unix `socket` of the Web UI, for a server that looks at its visitors; empty means no Web UI")
	flags.StringVar(&opts.namespace, "namespace", "benchloom", "`name` of the namespace to create when absent")
	level := flags.String("log-level", "warn", "lowest `level` to log: debug, info, warn or error")
	flags.StringVar(&opts.tlsCert, "tls-cert", "", "`file` with the frontend's certificate (PEM), followed by intermediate ones; read again when it changes")
	flags.StringVar(&opts.tlsKey, "tls-key", "", "`file` with the certificate's key")
	flags.StringVar(&opts.tlsClientCA, "tls-client-ca", "", "`file` with the authorities of clients' certificates: every client needs one (mutual TLS)")
	flags.StringVar(&opts.tokenFile, "token-file", "", "`file` with the token of Benchloom's API and orchestrators: every call needs a token")
	flags.StringVar(&opts.api, "api", "", "`address` of the Benchloom API, which knows all other tokens")
	flags.StringVar(&opts.apiCA, "api-ca", "", "`file` with the authorities of the API's certificate (default: the system's)")
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
	if opts.port < 0 || opts.port > 65535 {
		return options{}, fmt.Errorf("--port %d is not a port: use 0 to 65535", opts.port)
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
	return opts, opts.checkAccess()
}

// checkAccess refuses combinations that protect less than they seem to.
func (o options) checkAccess() error {
	switch {
	case (o.tlsCert == "") != (o.tlsKey == ""):
		return errors.New("--tls-cert and --tls-key belong together: name both files")
	case o.tlsClientCA != "" && o.tlsCert == "":
		return errors.New("--tls-client-ca needs --tls-cert and --tls-key")
	case o.api != "" && o.tokenFile == "":
		return errors.New("--api needs --token-file: without it no call needs a token")
	case o.apiCA != "" && o.api == "":
		return errors.New("--api-ca needs --api")
	}
	if o.api != "" {
		address, err := url.Parse(o.api)
		if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
			return fmt.Errorf("--api %q is no address: use for example https://bench.example.com:7480", o.api)
		}
		if address.Scheme == "http" && !onLoopback(address.Hostname()) {
			return fmt.Errorf("--api %s: tokens would travel in clear to another machine: use https", o.api)
		}
	}
	if !o.ip.IsLoopback() && (o.tlsCert == "" || o.tokenFile == "" && o.tlsClientCA == "") {
		return fmt.Errorf("--ip %s: other machines could take tasks and change workflows: name --tls-cert and --tls-key, and --token-file or --tls-client-ca", o.ip)
	}
	return nil
}

func onLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// access returns the protection of the server; nil if none.
func (o options) access() (*access, error) {
	if o.tokenFile == "" && o.tlsCert == "" {
		return nil, nil
	}
	a := new(access)
	var err error
	if a.transport, err = newTransport(o.tlsCert, o.tlsKey, o.tlsClientCA, time.Now()); err != nil {
		return nil, err
	}
	if o.tokenFile == "" {
		return a, nil
	}
	known, secret, err := newCallers(o.tokenFile, o.api, o.apiCA)
	if err != nil {
		return nil, err
	}
	a.guard, a.tasks = newGuard(known), newTaskTokens(secret)
	return a, nil
}

// serve runs the server until the context ends. It prints one line to stdout
// when the frontend answers health checks.
func serve(ctx context.Context, opts options, stdout, stderr io.Writer) error {
	access, err := opts.access()
	if err != nil {
		return err
	}
	ports, err := choosePorts(ctx, opts.ip, opts.port)
	if err != nil {
		return err
	}
	database, err := openDatabase(ctx, opts.dbFile, opts.namespace)
	if err != nil {
		return err
	}
	logger := newServerLogger(stderr, opts.logLevel)
	// The server's own workers would hash this program's file, of 150 MB, at every start.
	worker.SetBinaryChecksum("server " + headers.ServerVersion)
	server, err := newTemporalServer(opts.ip, ports, database, access, logger)
	if err != nil {
		return fmt.Errorf("configuring the server: %w", err)
	}
	frontend := net.JoinHostPort(reachable(opts.ip), strconv.Itoa(ports.frontend))
	ended := make(chan error, 1)
	if opts.uiSocket != "" {
		ui, err := opts.webUI(ctx, frontend, access)
		if err != nil {
			return err
		}
		defer ui.stop()
		go func() { ended <- ui.serve() }()
	}
	if err := server.Start(); err != nil {
		return fmt.Errorf("starting the server: %w", err)
	}
	var own *transport
	if access != nil {
		own = access.transport
	}
	err = waitServing(ctx, frontend, own)
	if err == nil {
		_, _ = fmt.Fprintln(stdout, readyLine(frontend, opts.uiSocket))
		select {
		case <-ctx.Done():
		case err = <-ended:
		}
	} else if ctx.Err() != nil {
		err = nil // asked to stop before it was ready: a clean stop all the same
	}
	// A stopping server logs lost connections to its own services.
	logger.quieten()
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

// webUI returns the Web UI of a frontend.
func (o options) webUI(ctx context.Context, frontend string, a *access) (*webUI, error) {
	var g *guard
	t := new(transport)
	if a != nil {
		g, t = a.guard, a.transport
	}
	config, err := uiConfig(frontend, o.namespace, t)
	if err != nil {
		return nil, err
	}
	return newWebUI(ctx, o.uiSocket, config, g)
}

func readyLine(frontend, uiSocket string) string {
	if uiSocket == "" {
		return "ready frontend=" + frontend
	}
	return "ready frontend=" + frontend + " ui=unix:" + uiSocket
}
