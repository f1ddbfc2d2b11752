package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/devstack"
	"github.com/benchloom/benchloom/internal/metrics"
	"github.com/benchloom/benchloom/internal/servetls/servetlstest"
)

// servesInfo stands for an API that says only that it is one.
func servesInfo(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set(apiclient.HeaderAPI, "1")
	_, _ = io.WriteString(w, `{"version":"v1"}`)
}

// serveEncrypted serves with the certificate until the test ends.
func serveEncrypted(t *testing.T, files servetlstest.Files) (address string) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	config, err := (&apiFlags{tlsCert: files.Cert, tlsKey: files.Key}).encryption(log)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	listener, err := api.Listen(ctx, "127.0.0.1:0", false)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- api.ServeTLS(ctx, listener, http.HandlerFunc(servesInfo), log, config) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	return listener.Addr().String()
}

func TestClientsCallOnlyWhomTheyKnow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own, other := servetlstest.New(t, dir, "own.example.com"), servetlstest.New(t, dir, "other.example.com")
	address := serveEncrypted(t, own)
	ask := func(f transportFlags) error {
		client, err := f.client("https://"+address, "")
		require.NoError(t, err)
		_, err = client.Info(t.Context())
		return err
	}
	require.NoError(t, ask(transportFlags{ca: own.Cert}))
	for name, f := range map[string]transportFlags{"the system's authorities": {}, "another authority": {ca: other.Cert}, "insecure is about plain HTTP only": {insecure: true}} {
		require.ErrorContains(t, ask(f), "certificate", name)
	}
	expired := servetlstest.Expired(t, dir, "expired.example.com")
	client, err := (&transportFlags{ca: expired.Cert}).client("https://"+serveEncrypted(t, expired), "")
	require.NoError(t, err)
	_, err = client.Info(t.Context())
	require.ErrorContains(t, err, "certificate has expired")
	// Plain HTTP and old versions get no answer.
	client, err = (&transportFlags{}).client("http://"+address, "")
	require.NoError(t, err)
	_, err = client.Info(t.Context())
	require.Error(t, err)
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}}
	_, err = dialer.DialContext(t.Context(), "tcp", address)
	require.ErrorContains(t, err, "protocol version")
}

func TestPlainHTTPToAnotherMachineIsRefused(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"http://192.0.2.1:7480", "HTTP://bench.example.com", "http://localhost.evil.example", "http://[2001:db8::1]:7480"} {
		_, err := (&transportFlags{}).client(address, "")
		require.ErrorContains(t, err, "plain HTTP would show tokens", address)
		require.ErrorContains(t, err, "--insecure")
		var coded *exitError
		require.True(t, errors.As(err, &coded) && coded.code == exitUsage)
		_, err = (&transportFlags{insecure: true}).client(address, "")
		require.NoError(t, err)
	}
	for _, address := range []string{"http://127.0.0.1:7480", "http://localhost:7480", "http://[::1]:7480", "https://bench.example.com"} {
		_, err := (&transportFlags{}).client(address, "")
		require.NoError(t, err, address)
	}
}

func TestReadingIsClosedToOtherMachinesByDefault(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags  *apiFlags
		remote bool
		open   bool
	}{
		"loopback":                     {flags: &apiFlags{}, open: true},
		"loopback, closed":             {flags: &apiFlags{closedRead: true}},
		"other machines":               {flags: &apiFlags{}, remote: true},
		"other machines, opened":       {flags: &apiFlags{openRead: true}, remote: true, open: true},
		"behind a proxy":               {flags: &apiFlags{processFlags: processFlags{allowedHosts: []string{"bench.example.com"}}}},
		"behind a proxy, opened":       {flags: &apiFlags{openRead: true, processFlags: processFlags{allowedHosts: []string{"bench.example.com"}}}, open: true},
		"another name of this machine": {flags: &apiFlags{processFlags: processFlags{allowedHosts: []string{"127.0.0.2"}}}, open: true},
	} {
		require.Equal(t, c.open, c.flags.opensReading(c.remote), name)
	}
}

func TestServersAnswerForWhereTheyListen(t *testing.T) {
	t.Parallel()
	f := processFlags{allowedHosts: []string{" bench.example.com"}}
	names, remote := f.hosts("127.0.0.1:7480", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.Equal(t, []string{"bench.example.com", "127.0.0.1"}, names)
	require.False(t, remote)
	names, remote = f.hosts("0.0.0.0:7480", &net.TCPAddr{IP: net.IPv4zero})
	require.NotContains(t, names, "0.0.0.0")
	require.True(t, remote)
}

// A page cannot read the metrics of a process by a name that resolves to it.
func TestMetricsAreGuarded(t *testing.T) {
	t.Parallel()
	m, err := metrics.New("test", "v1")
	require.NoError(t, err)
	port, err := devstack.FreePort("127.0.0.1")
	require.NoError(t, err)
	f := processFlags{metrics: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), allowedHosts: []string{"bench.example.com"}}
	f.isReady()
	ctx, stop := context.WithCancel(t.Context())
	require.NoError(t, f.serveMetrics(ctx, m, slog.New(slog.DiscardHandler)))
	transport := &http.Transport{DisableKeepAlives: true}
	ask := func(path, host string, headers ...string) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+f.metrics+path, nil)
		require.NoError(t, err)
		request.Host = host
		for i := 0; i+1 < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
		response, err := transport.RoundTrip(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	for _, path := range []string{"/metrics", "/readyz"} {
		require.Equal(t, http.StatusOK, ask(path, f.metrics))
		require.Equal(t, http.StatusOK, ask(path, "bench.example.com"))
		require.Equal(t, http.StatusMisdirectedRequest, ask(path, "evil.example"))
		require.Equal(t, http.StatusForbidden, ask(path, f.metrics, "Origin", "http://evil.example"))
	}
	stop()
	require.NoError(t, m.Close())
}
