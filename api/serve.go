package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/net/netutil"
)

const (
	headerBound = 10 * time.Second
	idleBound   = 2 * time.Minute
	maxHeader   = 64 << 10
	// maxConnections bounds the open connections; more wait until one closes. Beyond
	// keptConnections, those that wait for a further request are closed, the oldest first:
	// nobody shuts others out by keeping connections open.
	maxConnections  = 1000
	keptConnections = maxConnections / 2
	// stopBound bounds pending answers once the API stops; those that wait for output end
	// immediately.
	stopBound = 10 * time.Second
)

// Listen opens the API's address, such as 127.0.0.1:7480; port 0 takes a free one. It
// refuses an address that other machines can reach unless allowRemote is set, because
// tokens travel unencrypted there without a proxy for TLS.
func Listen(ctx context.Context, addr string, allowRemote bool) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("the API's address %q is invalid: write host:port, such as 127.0.0.1:7480", addr)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n > 65535 {
		return nil, fmt.Errorf("the API's address %q has no valid port: use a number from 0 to 65535", addr)
	}
	if !allowRemote {
		if err := onlyLoopback(ctx, addr, host); err != nil {
			return nil, err
		}
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("port %s of %s is taken by another process, so the API cannot listen there: stop that process (another 'benchloom up'?), or choose another port", port, host)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the API's address %s: %w", addr, err)
	}
	return listener, nil
}

func onlyLoopback(ctx context.Context, addr, host string) error {
	refused := fmt.Errorf("the API's address %q can be reached from other machines, where its tokens would travel in clear: listen on 127.0.0.1, name a certificate (--tls-cert, --tls-key), or allow remote access (--allow-remote) and put TLS in front of it", addr)
	if host == "" {
		return refused
	}
	addresses, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return fmt.Errorf("looking up the API's address %q: %w", addr, err)
	}
	for _, a := range addresses {
		if !a.IP.IsLoopback() {
			return refused
		}
	}
	return nil
}

type stoppingKey struct{}

// stopping is closed when the server stops, which ends answers that only wait.
func stopping(ctx context.Context) <-chan struct{} {
	done, _ := ctx.Value(stoppingKey{}).(<-chan struct{})
	return done
}

// Serve answers requests until the context ends, then finishes pending ones. It closes
// the listener.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, log *slog.Logger) error {
	return ServeTLS(ctx, listener, handler, log, nil)
}

// ServeTLS is [Serve] for connections that are encrypted as configured; nil: they are not.
func ServeTLS(ctx context.Context, listener net.Listener, handler http.Handler, log *slog.Logger, config *tls.Config) error {
	return serve(ctx, netutil.LimitListener(listener, maxConnections), handler, log, config, keptConnections)
}

// serve is [ServeTLS] with a bound, kept, on the connections that are open without a call.
func serve(ctx context.Context, listener net.Listener, handler http.Handler, log *slog.Logger, config *tls.Config, kept int) error {
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	// Requests outlive the context to finish their writes.
	base := context.WithValue(context.WithoutCancel(ctx), stoppingKey{}, ctx.Done())
	server := &http.Server{
		Handler:           handler,
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: headerBound,
		IdleTimeout:       idleBound,
		ConnState:         (&connections{kept: kept, idle: make(map[net.Conn]time.Time)}).change,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serving the API on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopBound)
	defer cancel()
	err := server.Shutdown(stop)
	if err != nil {
		// The rest is cut off.
		err = errors.Join(fmt.Errorf("stopping the API: %w", err), server.Close())
	}
	<-served
	if api, ok := handler.(*Handler); ok {
		api.Wait()
	}
	return err
}
