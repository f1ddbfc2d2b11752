//go:build linux

package threehosts_test

import (
	"bytes"
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
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience bounds every wait: the machine may be busy.
const patience = 3 * time.Minute

// network is a set of hosts that reach only each other.
type network struct {
	dir string // certificates, and a directory per host
	ca  *authority
}

// host is a network namespace with one address.
type host struct {
	*network
	name, namespace, address string
	dir                      string
	environ                  []string
}

// newNetwork makes the namespaces, which are removed with the test.
func newNetwork(t *testing.T) *network {
	t.Helper()
	dir, err := os.MkdirTemp("", "threehosts")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755)) // collectors have an account of their own
	n := &network{dir: dir, ca: newAuthority(t)}
	n.ca.save(t, filepath.Join(dir, "ca.pem"))
	addNamespace(t, n.namespace("net"))
	ip(t, "-n", n.namespace("net"), "link", "add", "bridge", "type", "bridge")
	ip(t, "-n", n.namespace("net"), "link", "set", "bridge", "up")
	return n
}

func (n *network) namespace(name string) string {
	return "bl-" + strconv.Itoa(os.Getpid()) + "-" + name
}

func addNamespace(t *testing.T, name string) {
	t.Helper()
	ip(t, "netns", "add", name)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ip", args...).CombinedOutput()
	require.NoError(t, err, "ip %s: %s", strings.Join(args, " "), out)
}

// add adds a host with its certificate; account owns its files.
func (n *network) add(t *testing.T, name, address string, account int) *host {
	t.Helper()
	h := &host{network: n, name: name, namespace: n.namespace(name), address: address, dir: filepath.Join(n.dir, name)}
	addNamespace(t, h.namespace)
	ip(t, "-n", n.namespace("net"), "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", h.namespace)
	ip(t, "-n", n.namespace("net"), "link", "set", name, "master", "bridge", "up")
	ip(t, "-n", h.namespace, "link", "set", "lo", "up")
	ip(t, "-n", h.namespace, "addr", "add", address+"/24", "dev", "eth0")
	ip(t, "-n", h.namespace, "link", "set", "eth0", "up")
	require.NoError(t, os.Mkdir(h.dir, 0o700))
	n.ca.issue(t, address).save(t, h.dir)
	for _, path := range []string{h.dir, filepath.Join(h.dir, "host.pem"), filepath.Join(h.dir, "host.key")} {
		require.NoError(t, os.Chown(path, account, account))
	}
	h.environ = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + h.dir, "TMPDIR=/tmp",
		"TEMPORAL_ADDRESS=" + hub + ":7233", "TEMPORAL_TLS_SERVER_CA_CERT_PATH=" + filepath.Join(n.dir, "ca.pem"),
		"TEMPORAL_TLS_CLIENT_CERT_PATH=" + filepath.Join(h.dir, "host.pem"), "TEMPORAL_TLS_CLIENT_KEY_PATH=" + filepath.Join(h.dir, "host.key"),
	}
	return h
}

// command returns a command that runs on the host, as an account.
func (h *host) command(account int, program string, args ...string) *exec.Cmd {
	id := strconv.Itoa(account)
	c := exec.Command("nsenter", append([]string{"--net=/run/netns/" + h.namespace, "--setgid", id, "--setuid", id, program}, args...)...)
	c.Env, c.Dir = h.environ, h.dir
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return c
}

// start runs a process until the test ends.
func (h *host) start(t *testing.T, account int, program string, args ...string) {
	t.Helper()
	c := h.command(account, program, args...)
	var out lockedBuffer
	c.Stdout, c.Stderr = &out, &out
	require.NoError(t, c.Start())
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			t.Errorf("%s on %s does not stop", args, h.name)
		}
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // and what it has left
		if t.Failed() {
			t.Logf("%s: %s %s:\n%s", h.name, filepath.Base(program), strings.Join(args[:min(2, len(args))], " "), out.last(5000))
		}
	})
}

// run runs a command to its end.
func (h *host) run(t *testing.T, account int, program string, args ...string) (string, error) {
	t.Helper()
	out, err := h.command(account, program, args...).CombinedOutput()
	return string(out), err
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) last(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.b.String()
	return text[max(0, len(text)-n):]
}

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
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of the test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
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

// issued is a certificate with its key.
type issued struct{ certPEM, keyPEM []byte }

// issue makes a certificate of a host, for both ends of connections.
func (a *authority) issue(t *testing.T, address string) issued {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: address}, IPAddresses: []net.IP{net.ParseIP(address)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	return issued{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	}
}

func (i issued) save(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "host.pem"), i.certPEM, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "host.key"), i.keyPEM, 0o600))
}

// newToken writes a token into a file.
func newToken(t *testing.T, path string) string {
	t.Helper()
	var random [20]byte
	_, _ = rand.Read(random[:])
	token := fmt.Sprintf("blm_%x", random)
	require.NoError(t, os.WriteFile(path, []byte(token+"\n"), 0o600))
	return token
}
