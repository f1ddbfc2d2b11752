package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"sync"
	"time"

	"go.temporal.io/server/common/rpc/encryption"
)

// ownName is the name in the certificate with which the services of one process know each
// other. It resolves nowhere.
const ownName = "temporal-dev.internal"

// transport encrypts connections: those among the server's own services with a certificate
// that only this process has, those to its frontend with the operator's, if there is one.
// It implements [encryption.TLSConfigProvider].
type transport struct {
	own       tls.Certificate
	ownPool   *x509.CertPool
	served    *served        // nil: the frontend speaks plain text
	clientCAs *x509.CertPool // nil: clients need no certificate
}

// newTransport makes the process's own certificate and loads the operator's files, which
// may be empty.
func newTransport(certFile, keyFile, clientCAFile string, now time.Time) (*transport, error) {
	own, leaf, err := newOwnCertificate(now)
	if err != nil {
		return nil, fmt.Errorf("making the certificate of the server's own services: %w", err)
	}
	t := &transport{own: own, ownPool: x509.NewCertPool()}
	t.ownPool.AddCert(leaf)
	if certFile == "" {
		return t, nil
	}
	if t.served, err = loadServed(certFile, keyFile); err != nil {
		return nil, err
	}
	if clientCAFile == "" {
		return t, nil
	}
	if t.clientCAs, err = loadPool(clientCAFile); err != nil {
		return nil, fmt.Errorf("--tls-client-ca: %w", err)
	}
	// The Web UI and the readiness check of this process are clients as well.
	t.clientCAs.AddCert(leaf)
	return t, nil
}

func newOwnCertificate(now time.Time) (tls.Certificate, *x509.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: ownName}, DNSNames: []string{ownName},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(20, 0, 0), // the life of a process
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IsCA:        true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, leaf, err
}

func loadPool(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate in the format PEM", file)
	}
	return pool, nil
}

// GetInternodeServerConfig lets only this process in.
func (t *transport) GetInternodeServerConfig() (*tls.Config, error) {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{t.own},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: t.ownPool,
	}, nil
}

// GetInternodeClientConfig is for the other end of such connections.
func (t *transport) GetInternodeClientConfig() (*tls.Config, error) { return t.asOwn(), nil }

// asOwn returns the configuration of a client in this process.
func (t *transport) asOwn() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, ServerName: ownName, RootCAs: t.ownPool, Certificates: []tls.Certificate{t.own}}
}

// GetFrontendServerConfig returns nil if the frontend speaks plain text.
func (t *transport) GetFrontendServerConfig() (*tls.Config, error) {
	if t.served == nil {
		return nil, nil
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if hello.ServerName == ownName {
				return &t.own, nil
			}
			return t.served.current(), nil
		},
	}
	if t.clientCAs != nil {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, t.clientCAs
	}
	return config, nil
}

// GetFrontendClientConfig is for clients of the frontend within this process; nil means plain text.
func (t *transport) GetFrontendClientConfig() (*tls.Config, error) {
	if t.served == nil {
		return nil, nil
	}
	return t.asOwn(), nil
}

// GetRemoteClusterClientConfig returns nil: there is no other cluster.
func (t *transport) GetRemoteClusterClientConfig(string) (*tls.Config, error) { return nil, nil }

// GetExpiringCerts returns nothing: the operator's certificate is read again when it is
// renewed, and the process's own outlives it.
func (t *transport) GetExpiringCerts(time.Duration) (expiring, expired encryption.CertExpirationMap, err error) {
	return nil, nil, nil
}

// ownPEM returns the own certificate and its key in the format PEM, for the Web UI.
func (t *transport) ownPEM() (certificate, key []byte, err error) {
	private, ok := t.own.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, nil, errors.New("the own key is of another kind")
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: t.own.Certificate[0]}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// served is the operator's certificate, read again when its file changes.
type served struct {
	certFile, keyFile string

	mu       sync.Mutex
	pair     *tls.Certificate
	modified time.Time
}

func loadServed(certFile, keyFile string) (*served, error) {
	s := &served{certFile: certFile, keyFile: keyFile}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert and --tls-key: %w; name files in the format PEM, the certificate and its own key", err)
	}
	s.pair, s.modified = &pair, s.newest()
	return s, nil
}

// newest returns the later time of change of the two files; zero if one is gone.
func (s *served) newest() time.Time {
	var newest time.Time
	for _, file := range []string{s.certFile, s.keyFile} {
		info, err := os.Stat(file)
		if err != nil {
			return time.Time{}
		}
		if info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	return newest
}

// current returns the certificate. If only one of the two files was replaced, or one is
// gone, it is the former one.
func (s *served) current() *tls.Certificate {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := s.newest()
	if newest.IsZero() || newest.Equal(s.modified) {
		return s.pair
	}
	if pair, err := tls.LoadX509KeyPair(s.certFile, s.keyFile); err == nil {
		s.pair, s.modified = &pair, newest
	}
	return s.pair
}
