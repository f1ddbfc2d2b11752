//go:build linux

package threehosts_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Times after which certificates expire.
const (
	later   = time.Hour
	earlier = -time.Minute
)

// authority issues certificates.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of the test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(later),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{key, cert}
}

func (a *authority) save(t *testing.T, path string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}), 0o644))
}

// issue makes a certificate for both ends of connections of a host, writes it into a
// directory, which it makes if necessary, and returns that. The certificate expires after a
// time; a negative one: it has expired.
func (a *authority) issue(t *testing.T, dir, address string, after time.Duration) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: address}, IPAddresses: []net.IP{net.ParseIP(address)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(after),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	for path, block := range map[string]pem.Block{certFile(dir): {Type: "CERTIFICATE", Bytes: der}, keyFile(dir): {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&block), 0o600))
	}
	return dir
}

func certFile(dir string) string { return filepath.Join(dir, "host.pem") }
func keyFile(dir string) string  { return filepath.Join(dir, "host.key") }

// newToken writes a token into a file.
func newToken(t *testing.T, path string) string {
	t.Helper()
	var random [20]byte
	_, _ = rand.Read(random[:])
	token := fmt.Sprintf("blm_%x", random)
	require.NoError(t, os.WriteFile(path, []byte(token+"\n"), 0o600))
	return token
}
