package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// authority issues certificates, which it writes into a directory.
type authority struct {
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of the test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	a := &authority{dir: t.TempDir(), key: key, cert: cert}
	require.NoError(t, os.WriteFile(a.file(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return a
}

// file holds the authority's own certificate.
func (a *authority) file() string { return filepath.Join(a.dir, "ca.pem") }

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// issue writes a certificate for a name and returns its files; change may be nil.
func (a *authority) issue(t *testing.T, name string, change func(*x509.Certificate)) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	certFile, keyFile = filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+".key")
	require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), 0o600))
	return certFile, keyFile
}

// presenting returns the configuration of a client that sends a certificate, whichever the
// server asks for, and trusts the authority.
func (a *authority) presenting(t *testing.T, certFile, keyFile string) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	require.NoError(t, err)
	return a.presentingPair(pair)
}

// presentingPair is [authority.presenting] for a certificate without files.
func (a *authority) presentingPair(pair tls.Certificate) *tls.Config {
	return &tls.Config{
		ServerName: "temporal.example.com", RootCAs: a.pool(),
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil },
	}
}

// greet connects a client with a server and returns the name in the server's certificate,
// or why one of the two refuses the other. With TLS 1.3, a client learns that only when it
// reads.
func greet(t *testing.T, server, client *tls.Config) (name string, err error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		accepted, err := listener.Accept()
		if err != nil {
			return
		}
		defer func() { _ = accepted.Close() }()
		conn := tls.Server(accepted, server)
		if conn.Handshake() == nil {
			_, _ = io.WriteString(conn, "!")
		}
		_, _ = io.Copy(io.Discard, accepted) // a reset connection would lose the refusal
	}()
	conn, err := tls.Dial("tcp", listener.Addr().String(), client)
	if err == nil {
		name = conn.ConnectionState().PeerCertificates[0].DNSNames[0]
		_, err = conn.Read(make([]byte, 1))
		_ = conn.Close()
	}
	require.NoError(t, listener.Close())
	<-served
	return name, err
}

func TestClientsNeedACertificateOfTheAuthority(t *testing.T) {
	t.Parallel()
	own, foreign := newAuthority(t), newAuthority(t)
	cert, key := own.issue(t, "temporal.example.com", nil)
	transport, err := newTransport(cert, key, own.file(), time.Now())
	require.NoError(t, err)
	server, err := transport.GetFrontendServerConfig()
	require.NoError(t, err)
	with := func(a *authority, name string, change func(*x509.Certificate)) *tls.Config {
		cert, key := a.issue(t, name, change)
		return own.presenting(t, cert, key)
	}
	good := with(own, "bench-1", nil)
	outdated := good.Clone()
	outdated.MinVersion, outdated.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	stranger := good.Clone()
	stranger.RootCAs = foreign.pool()
	elsewhere := good.Clone()
	elsewhere.ServerName = "other.example.com"
	for name, c := range map[string]struct {
		client  *tls.Config
		refusal string // empty: it gets in
	}{
		"its own":                       {client: good},
		"none":                          {&tls.Config{ServerName: "temporal.example.com", RootCAs: own.pool()}, "certificate required"},
		"of another authority":          {with(foreign, "bench-1", nil), "unknown certificate authority"},
		"expired":                       {with(own, "bench-2", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), "expired certificate"},
		"not valid yet":                 {with(own, "bench-3", func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }), "expired certificate"},
		"for servers only":              {with(own, "bench-4", func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[:1] }), "bad certificate"},
		"an old version of TLS":         {outdated, "protocol version"},
		"another authority is trusted":  {stranger, "signed by unknown authority"},
		"another server is looked for":  {elsewhere, "not other.example.com"},
		"as the services of a process":  {client: transport.asOwn()},
		"as those of another process":   {newOwn(t).asOwn(), "signed by unknown authority"},
		"their certificate, from there": {own.presentingPair(newOwn(t).own), "unknown certificate authority"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := greet(t, server, c.client)
			if c.refusal == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.refusal)
		})
	}
}

// newOwn is the transport of another process.
func newOwn(t *testing.T) *transport {
	t.Helper()
	other, err := newTransport("", "", "", time.Now())
	require.NoError(t, err)
	return other
}

func TestInnerServicesKnowOnlyEachOther(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	cert, key := a.issue(t, "temporal.example.com", nil)
	transport, err := newTransport(cert, key, a.file(), time.Now())
	require.NoError(t, err)
	server, err := transport.GetInternodeServerConfig()
	require.NoError(t, err)
	client, err := transport.GetInternodeClientConfig()
	require.NoError(t, err)
	name, err := greet(t, server, client)
	require.NoError(t, err)
	require.Equal(t, ownName, name)

	// The operator's certificates open only the frontend.
	operators := a.presenting(t, cert, key)
	operators.RootCAs, operators.ServerName = transport.ownPool, ownName
	_, err = greet(t, server, operators)
	require.ErrorContains(t, err, "unknown certificate authority")
	without := client.Clone()
	without.Certificates = nil
	_, err = greet(t, server, without)
	require.ErrorContains(t, err, "certificate required")
}

func TestARenewedCertificateIsServedWithoutARestart(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	cert, key := a.issue(t, "temporal.example.com", nil)
	transport, err := newTransport(cert, key, "", time.Now())
	require.NoError(t, err)
	server, err := transport.GetFrontendServerConfig()
	require.NoError(t, err)
	require.Equal(t, tls.NoClientCert, server.ClientAuth, "without --tls-client-ca tokens alone say who calls")
	client := &tls.Config{RootCAs: a.pool(), InsecureSkipVerify: true} // names differ
	served := func() string {
		name, err := greet(t, server, client)
		require.NoError(t, err)
		return name
	}
	require.Equal(t, "temporal.example.com", served())

	renewedCert, renewedKey := a.issue(t, "renewed.example.com", nil)
	replace := func(from, to string, later time.Duration) {
		require.NoError(t, os.Rename(from, to))
		at := time.Now().Add(later)
		require.NoError(t, os.Chtimes(to, at, at))
	}
	replace(renewedCert, cert, time.Minute)
	require.Equal(t, "temporal.example.com", served(), "the key is still that of the former one")
	replace(renewedKey, key, 2*time.Minute)
	require.Equal(t, "renewed.example.com", served())
	require.NoError(t, os.Remove(cert))
	require.Equal(t, "renewed.example.com", served(), "the former one, until there is another")
}

func TestFilesThatHoldNoCertificateAreNamed(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	cert, key := a.issue(t, "one.example.com", nil)
	_, otherKey := a.issue(t, "other.example.com", nil)
	for name, c := range map[string]struct{ cert, key, clientCA, reason string }{
		"another key":           {cert, otherKey, "", "--tls-cert and --tls-key: "},
		"no file":               {filepath.Join(a.dir, "none"), key, "", "--tls-cert and --tls-key: "},
		"a key as the bundle":   {cert, key, key, "--tls-client-ca: " + key + " holds no certificate in the format PEM"},
		"no file of a bundle":   {cert, key, filepath.Join(a.dir, "none"), "--tls-client-ca: "},
		"a certificate for key": {cert, cert, "", "name files in the format PEM"},
	} {
		_, err := newTransport(c.cert, c.key, c.clientCA, time.Now())
		require.ErrorContains(t, err, c.reason, name)
	}
}
