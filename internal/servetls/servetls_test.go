package servetls_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/servetls"
	"github.com/benchloom/benchloom/internal/servetls/servetlstest"
)

// name returns the name in the certificate that is served now.
func name(t *testing.T, config *tls.Config) string {
	t.Helper()
	served, err := config.GetCertificate(&tls.ClientHelloInfo{})
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(served.Certificate[0])
	require.NoError(t, err)
	return leaf.DNSNames[0]
}

// replace puts one file in the place of another, at a later time than any before.
func replace(t *testing.T, from, to string, later time.Duration) {
	t.Helper()
	text, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, text, 0o600))
	at := time.Now().Add(later)
	require.NoError(t, os.Chtimes(to, at, at))
}

func TestARenewedCertificateIsServed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old, renewed := servetlstest.New(t, dir, "old.example.com"), servetlstest.New(t, dir, "new.example.com")
	var log bytes.Buffer
	c, err := servetls.Load(old.Cert, old.Key, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	config := c.Config()
	require.Equal(t, uint16(tls.VersionTLS12), config.MinVersion)
	require.Equal(t, "old.example.com", name(t, config))

	replace(t, renewed.Cert, old.Cert, time.Minute)
	require.Equal(t, "old.example.com", name(t, config), "the key is still that of the former one")
	require.Equal(t, "old.example.com", name(t, config))
	require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("the former one is served")), "told once")
	replace(t, renewed.Key, old.Key, time.Minute)
	require.Equal(t, "new.example.com", name(t, config))

	require.NoError(t, os.Remove(old.Cert))
	require.Equal(t, "new.example.com", name(t, config))
}

// Clients refuse a certificate that has expired, and are let in by the renewed one, while the
// server goes on.
func TestClientsRefuseACertificateUntilItIsRenewed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	expired, renewed := servetlstest.Expired(t, dir, "expired.example.com"), servetlstest.New(t, dir, "renewed.example.com")
	var log bytes.Buffer
	c, err := servetls.Load(expired.Cert, expired.Key, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	config := c.Config()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	require.NoError(t, err)
	server := &http.Server{Handler: http.NotFoundHandler(), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	defer func() {
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-ended, http.ErrServerClosed)
	}()
	trusted := x509.NewCertPool()
	for _, files := range []servetlstest.Files{expired, renewed} {
		text, err := os.ReadFile(files.Cert)
		require.NoError(t, err)
		require.True(t, trusted.AppendCertsFromPEM(text))
	}
	get := func(known *x509.CertPool) error {
		client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: known}, DisableKeepAlives: true}}
		response, err := client.Get("https://" + listener.Addr().String())
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
	for range 2 {
		require.ErrorContains(t, get(trusted), "certificate has expired")
	}
	require.Equal(t, "expired.example.com", name(t, config))
	require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("clients refuse it until it is renewed")), "told once: %s", &log)

	replace(t, renewed.Cert, expired.Cert, time.Minute)
	replace(t, renewed.Key, expired.Key, time.Minute)
	require.NoError(t, get(trusted))
	require.ErrorContains(t, get(x509.NewCertPool()), "signed by unknown authority")
}

func TestUnusableFilesAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := servetlstest.New(t, dir, "a.example.com"), servetlstest.New(t, dir, "b.example.com")
	for _, files := range [][2]string{{a.Cert, b.Key}, {a.Cert, filepath.Join(dir, "none")}, {a.Key, a.Cert}} {
		_, err := servetls.Load(files[0], files[1], slog.New(slog.DiscardHandler))
		require.ErrorContains(t, err, "name files in the format PEM")
	}
}
