package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diskspace"
	"github.com/benchloom/benchloom/internal/metrics"
	"github.com/benchloom/benchloom/internal/webguard"
)

// processFlags are the flags of every long-running process.
type processFlags struct {
	logFormat, logLevel string
	metrics             string
	allowedHosts        []string
	ready               atomic.Bool
	// short and stuck, if set, return why the process has stopped its work: while the disk is short, or until it is started
	// anew.
	short, stuck func() error
}

func (f *processFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.logFormat, "log-format", "text", "log format: text or json")
	flags.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
}

func (f *processFlags) addMetrics(flags *pflag.FlagSet) {
	flags.StringVar(&f.metrics, "metrics", "", "address for Prometheus metrics (/metrics) and /readyz, such as 127.0.0.1:7481 (default: off)")
	f.addHosts(flags)
}

// addHosts adds the flag with the names by which clients may call the process.
func (f *processFlags) addHosts(flags *pflag.FlagSet) {
	var given []string
	if list := os.Getenv("BENCHLOOM_ALLOWED_HOSTS"); list != "" {
		given = strings.Split(list, ",")
	}
	flags.StringSliceVar(&f.allowedHosts, "allowed-host", given, "host name or IP address by which clients may call this server, besides the addresses that it listens on, such as bench.example.com; may be repeated (default: $BENCHLOOM_ALLOWED_HOSTS, separated by commas)")
}

// hosts returns the names by which clients may call a server that listens on addr, given as
// listen; a server that other machines can reach has the name of its machine, too.
func (f *processFlags) hosts(listen string, addr net.Addr) (names []string, remote bool) {
	for _, host := range f.allowedHosts {
		names = append(names, strings.TrimSpace(host))
	}
	if host, _, err := net.SplitHostPort(listen); err == nil && host != "" && !net.ParseIP(host).IsUnspecified() {
		names = append(names, host)
	}
	if at, ok := addr.(*net.TCPAddr); ok && at.IP.IsLoopback() {
		return names, false
	}
	if host, err := os.Hostname(); err == nil {
		if _, err := webguard.New(host); err == nil {
			names = append(names, host)
		}
	}
	return names, true
}

// logger returns a logger that writes to standard error.
func (f *processFlags) logger(cmd *cobra.Command) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return nil, usage(fmt.Errorf("--log-level %q: use debug, info, warn or error", f.logLevel))
	}
	options := &slog.HandlerOptions{Level: level}
	switch f.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), options)), nil
	}
	return nil, usage(fmt.Errorf("--log-format %q: use text or json", f.logFormat))
}

// isReady makes /readyz succeed.
func (f *processFlags) isReady() { f.ready.Store(true) }

// serveMetrics serves a process's metrics, and whether it is ready, until the
// context ends.
func (f *processFlags) serveMetrics(ctx context.Context, m *metrics.Metrics, log *slog.Logger) error {
	if f.metrics == "" {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.metrics)
	if err != nil {
		return fmt.Errorf("serving metrics: %w; choose another address with --metrics", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Handler)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !f.ready.Load() {
			http.Error(w, "not ready yet", http.StatusServiceUnavailable)
			return
		}
		if f.stuck != nil {
			if err := f.stuck(); err != nil {
				http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
				return
			}
		}
		if f.short == nil {
			return
		}
		if err := f.short(); err != nil {
			w.Header().Set(diskspace.ShortHeader, "short")
			http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
		}
	})
	names, remote := f.hosts(f.metrics, listener.Addr())
	if remote {
		log.WarnContext(ctx, "other machines can reach the metrics, without TLS or a token", "address", listener.Addr().String())
	}
	guard, err := webguard.New(names...)
	if err != nil {
		return usage(fmt.Errorf("--allowed-host: %w", errors.Join(err, listener.Close())))
	}
	server := &http.Server{Handler: guard.Handler(mux), ReadHeaderTimeout: 5 * time.Second}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	go func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			log.Error("serving metrics failed", "error", err)
		}
	}()
	return nil
}

// secret reads a token: from a file when one is named, else from the
// environment.
func secret(file, variable string) (string, error) {
	if file == "" {
		return os.Getenv(variable), nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading the token: %w; name a file that holds one with --token-file, or set %s", err, variable)
	}
	return strings.TrimSpace(string(text)), nil
}

// hostTarget returns this machine's target tuple; empty if it is not known.
func hostTarget() string {
	target, err := bench.HostTarget(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return ""
	}
	return string(target)
}

// env returns an environment variable, or otherwise if it is empty.
func env(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}
