package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/diagnose/inspect"
	"github.com/benchloom/benchloom/internal/metrics"
	"github.com/benchloom/benchloom/internal/servetls"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/webguard"
	"github.com/benchloom/benchloom/starter"
	"github.com/benchloom/benchloom/workers"
)

type apiFlags struct {
	processFlags
	temporalFlags
	blobFlags
	listen, database, ui      string
	uiListen, uiSocket        string
	userToken, collectorToken string
	announceTemporal          string
	maxBuild                  string
	watchDisk, diskReserve    string
	allowRemote               bool
	closedRead, openRead      bool
	tlsCert, tlsKey           string
	openCollectors            bool
	trustedProxies            []string
	rates                     api.Rates
}

func newAPI() *cobra.Command {
	var f apiFlags
	cmd := &cobra.Command{
		Use:     "api",
		GroupID: groupRun,
		Short:   "Serve the HTTP API",
		Long: `Serves the HTTP API and brings the database's schema up to date. Any number of
APIs may run. It needs DATABASE_URL and TEMPORAL_ADDRESS (or Temporal's other
environment configuration). The OpenAPI document is at /openapi.json, metrics at
/metrics.`,
		Example: `  DATABASE_URL=postgres:///benchloom TEMPORAL_ADDRESS=127.0.0.1:7233 benchloom api --user-token-file admin.token`,
		Args:    exactArgs(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	f.add(flags)
	f.addHosts(flags)
	flags.StringVar(&f.listen, "listen", "127.0.0.1:7480", "address to serve on")
	flags.BoolVar(&f.allowRemote, "allow-remote", false, "allow an address that other machines can reach without --tls-cert; put TLS in front of it")
	flags.StringVar(&f.tlsCert, "tls-cert", "", "file with the certificate (PEM) to serve HTTPS with, followed by intermediate ones; read again when it changes")
	flags.StringVar(&f.tlsKey, "tls-key", "", "file with the certificate's key")
	flags.BoolVar(&f.closedRead, "closed-read", false, "require a token for reading, too (default: if other machines can reach the API, by its address or an --allowed-host)")
	flags.BoolVar(&f.openRead, "open-read", false, "allow reading without a token, also from other machines")
	flags.StringVar(&f.database, "database-url", os.Getenv("DATABASE_URL"), "Postgres (default $DATABASE_URL)")
	f.addTemporal(flags)
	flags.StringVar(&f.maxBuild, "max-build-size", "1GiB", "maximum size of the archive of a build")
	flags.StringVar(&f.watchDisk, "watch-disk", "", "directory, such as that of the database, on whose file system the disk reserve is watched: /readyz fails while it is short (default: none)")
	addReserve(flags, &f.diskReserve)
	f.addBlobs(flags)
	flags.StringVar(&f.ui, "temporal-ui", "", "address of Temporal's Web UI, for links")
	flags.StringVar(&f.uiListen, "temporal-ui-listen", "", "address to serve the embedded Temporal's Web UI on, with the hosts, tokens and certificate of the API (default: not served)")
	flags.StringVar(&f.uiSocket, "temporal-ui-socket", "", "socket of that Web UI ('temporal-dev --ui-socket')")
	flags.StringVar(&f.userToken, "user-token-file", "", "file with the token of the administrator admin")
	flags.StringVar(&f.collectorToken, "collector-token-file", "", "file with a token for collectors")
	flags.BoolVar(&f.openCollectors, "open-collectors", false, "let collectors register without an invitation, with the token of --collector-token-file and a configuration of their own")
	flags.StringSliceVar(&f.trustedProxies, "trusted-proxy", nil, "address or network of a proxy, such as 10.0.0.0/8, whose X-Forwarded-For names the client; may be repeated")
	rates := api.DefaultRates()
	flags.Float64Var(&f.rates.Token, "token-rate", rates.Token, "calls per second with one token; 0: no limit")
	flags.Float64Var(&f.rates.Address, "address-rate", rates.Address, "calls per second without a token from one address; 0: no limit")
	flags.Float64Var(&f.rates.Refused, "refused-rate", rates.Refused, "calls per second with unknown tokens from one address; 0: no limit")
	flags.StringVar(&f.announceTemporal, "announce-temporal", os.Getenv("TEMPORAL_ADDRESS"), "address at which collectors on other machines reach Temporal (default $TEMPORAL_ADDRESS)")
	return cmd
}

func (f *apiFlags) run(cmd *cobra.Command) (err error) {
	ctx := cmd.Context()
	log, err := f.logger(cmd)
	if err != nil {
		return err
	}
	if f.database == "" {
		return usage(errors.New("no database: set DATABASE_URL or --database-url"))
	}
	maxBuild, err := size("--max-build-size", f.maxBuild)
	if err != nil {
		return usage(err)
	}
	if err := f.rates.Validate(); err != nil {
		return usage(fmt.Errorf("--token-rate, --address-rate and --refused-rate: %w", err))
	}
	reserve, err := parseReserve(f.diskReserve)
	if err != nil {
		return usage(err)
	}
	if err := f.check(); err != nil {
		return usage(err)
	}
	var short func() error
	if f.watchDisk != "" {
		short = func() error { return reserve.Look(f.watchDisk) }
	}
	proxies, err := api.ParseProxies(f.trustedProxies)
	if err != nil {
		return usage(fmt.Errorf("--trusted-proxy: %w", err))
	}
	if f.openRead && f.closedRead {
		return usage(errors.New("--open-read and --closed-read exclude each other"))
	}
	encryption, err := f.encryption(log)
	if err != nil {
		return err
	}
	// Listen first, so that a port in use is reported before anything changes.
	listener, err := api.Listen(ctx, f.listen, f.allowRemote || encryption != nil)
	if err != nil {
		return err
	}
	defer listener.Close()
	ui, err := f.listenUI(ctx, encryption != nil)
	if err != nil {
		return err
	}
	hosts, remote := f.hosts(f.listen, listener.Addr())
	if guard, err := webguard.New(hosts...); err != nil {
		return usage(fmt.Errorf("--allowed-host: %w", err))
	} else if remote {
		log.InfoContext(ctx, "other machines can reach the API; it answers for its own addresses and these hosts, others are added with --allowed-host", "hosts", guard.Hosts())
	}
	if remote && encryption == nil {
		log.WarnContext(ctx, "other machines can reach the API over plain HTTP: tokens and results can be read on the way; use --tls-cert and --tls-key, or let only a proxy with TLS reach it")
	}
	openRead := f.opensReading(remote)
	if !openRead && !f.closedRead {
		log.InfoContext(ctx, "reading needs a token, because other machines can reach the API; --open-read changes that")
	}
	m, err := metrics.New("api", version)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	if err := store.Migrate(ctx, f.database); err != nil {
		return err
	}
	records, err := store.Open(ctx, f.database)
	if err != nil {
		return err
	}
	defer records.Close()
	ctx, guarded := guardSchema(ctx, records, log)
	defer func() { err = guarded(err) }()
	files, err := f.open(ctx)
	if err != nil {
		return err
	}
	var tokens []api.TokenFile
	if f.userToken != "" {
		tokens = append(tokens, api.TokenFile{Path: f.userToken, Owner: "admin", Role: api.RoleAdmin})
	}
	if f.collectorToken != "" {
		tokens = append(tokens, api.TokenFile{Path: f.collectorToken, Owner: "collectors", Role: api.RoleCollector})
	}
	if err := api.BootstrapTokens(ctx, records, tokens); err != nil {
		return err
	}
	temporal, err := f.dial(ctx, "api", m, log)
	if err != nil {
		return err
	}
	defer temporal.Close()
	start := starter.New(temporal, f.namespace)
	inspector := &inspect.Inspector{Record: records, Workflows: start, OfflineAfter: workers.OfflineAfter, Now: time.Now, Log: log}
	dispatcher := workers.NewDispatcher(records, start, log)
	dispatcher.RequestDelay = requestDelay
	defer dispatcher.Wait()
	handler, err := api.New(ctx, api.Config{
		Store: records, Starter: start, Dispatcher: dispatcher, Inspector: inspector, Blobs: files,
		Settings: api.Settings{
			Now: time.Now, Log: log, Random: rand.Reader, Version: version,
			TemporalUI: f.ui, TemporalAddress: f.announceTemporal, TemporalUISocket: f.uiSocket, TemporalTokens: f.temporalToken != "", InvitedOnly: !f.openCollectors, Namespace: f.namespace, OpenRead: openRead, OfflineAfter: workers.OfflineAfter,
			HeartbeatEvery: 3 * time.Second, TemporalReady: start.Healthy, DiskShort: short, Metrics: m.Handler, Scope: m.Scope, MaxBuild: maxBuild,
			Rates: f.rates, TrustedProxies: proxies, AllowedHosts: hosts, Computes: newGarbage().computes,
		},
	})
	if err != nil {
		return err
	}
	if ui != nil {
		defer ui.Close()
		go func() {
			if err := api.ServeTLS(ctx, ui, handler.TemporalUI(listener.Addr().String()), log, encryption); err != nil {
				log.ErrorContext(ctx, "serving Temporal's Web UI failed", "error", err)
			}
		}()
	}
	if files != nil {
		tidying, enough := context.WithCancel(ctx)
		var tidier sync.WaitGroup
		tidier.Go(func() { tidyBlobs(tidying, files, records, log) })
		defer func() { enough(); tidier.Wait() }()
	}
	if err := forgetStart(); err != nil {
		log.WarnContext(ctx, "giving back the memory of the start failed", "error", err)
	}
	log.InfoContext(ctx, "serving the API", "address", listener.Addr().String(), "tls", encryption != nil)
	return api.ServeTLS(ctx, listener, handler, log, encryption)
}

// requestDelay is the time in which a command that was just submitted reaches an idle
// collector and begins.
const requestDelay = 75 * time.Millisecond

// listenUI opens the address of the Web UI; nil if the UI is not served.
func (f *apiFlags) listenUI(ctx context.Context, encrypted bool) (net.Listener, error) {
	if (f.uiListen == "") != (f.uiSocket == "") {
		return nil, usage(errors.New("--temporal-ui-listen and --temporal-ui-socket belong together"))
	}
	if f.uiListen == "" {
		return nil, nil
	}
	return api.Listen(ctx, f.uiListen, f.allowRemote || encrypted)
}

// encryption returns the configuration for HTTPS; nil without a certificate.
func (f *apiFlags) encryption(log *slog.Logger) (*tls.Config, error) {
	switch {
	case f.tlsCert == "" && f.tlsKey == "":
		return nil, nil
	case f.tlsCert == "" || f.tlsKey == "":
		return nil, usage(errors.New("--tls-cert and --tls-key belong together: name both files"))
	}
	certificate, err := servetls.Load(f.tlsCert, f.tlsKey, log)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
	}
	return certificate.Config(), nil
}

// opensReading reports whether reading needs no token. Unless a flag decides, it needs one if
// other machines can reach the API, directly or by a name that a proxy passes on.
func (f *apiFlags) opensReading(remote bool) bool {
	if f.openRead || f.closedRead {
		return f.openRead
	}
	return !remote && !slices.ContainsFunc(f.allowedHosts, func(host string) bool { return !webguard.Loopback(strings.TrimSpace(host)) })
}
