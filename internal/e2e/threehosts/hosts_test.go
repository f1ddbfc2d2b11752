//go:build linux

package threehosts_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	n.ca.save(t, n.file())
	addNamespace(t, n.namespace("net"))
	ip(t, "-n", n.namespace("net"), "link", "add", "bridge", "type", "bridge")
	ip(t, "-n", n.namespace("net"), "link", "set", "bridge", "up")
	return n
}

// file holds the certificate of the authority.
func (n *network) file() string { return filepath.Join(n.dir, "ca.pem") }

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
	n.ca.issue(t, h.dir, address, later)
	for _, path := range []string{h.dir, certFile(h.dir), keyFile(h.dir)} {
		require.NoError(t, os.Chown(path, account, account))
	}
	h.environ = h.with(n.file(), h.dir)
	return h
}

// with is the environment of a process that trusts the authority of a file, and calls
// Temporal with the certificate of a directory; empty: none.
func (h *host) with(ca, certificate string) []string {
	environ := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + h.dir, "TMPDIR=/tmp",
		"TEMPORAL_ADDRESS=" + hub + ":7233", "TEMPORAL_TLS_SERVER_CA_CERT_PATH=" + ca,
	}
	if certificate != "" {
		environ = append(environ, "TEMPORAL_TLS_CLIENT_CERT_PATH="+certFile(certificate), "TEMPORAL_TLS_CLIENT_KEY_PATH="+keyFile(certificate))
	}
	return environ
}

// command returns a command that runs on the host, as an account.
func (h *host) command(account int, program string, args ...string) *exec.Cmd {
	id := strconv.Itoa(account)
	c := exec.Command("nsenter", append([]string{"--net=/run/netns/" + h.namespace, "--setgid", id, "--setuid", id, program}, args...)...)
	c.Env, c.Dir = h.environ, h.dir
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return c
}

// process runs on a host until it ends, or the test.
type process struct {
	out   lockedBuffer
	code  int           // its exit status
	ended chan struct{} // closed when it has
}

// start starts a process.
func (h *host) start(t *testing.T, account int, program string, args ...string) *process {
	t.Helper()
	p := &process{ended: make(chan struct{})}
	c := h.command(account, program, args...)
	c.Stdout, c.Stderr = &p.out, &p.out
	require.NoError(t, c.Start())
	go func() {
		_ = c.Wait()
		p.code = c.ProcessState.ExitCode()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.ended:
		case <-time.After(30 * time.Second):
			t.Errorf("%s on %s does not stop", args, h.name)
		}
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // and what it has left
		if t.Failed() {
			t.Logf("%s: %s %s:\n%s", h.name, filepath.Base(program), strings.Join(args[:min(2, len(args))], " "), p.out.last(5000))
		}
	})
	return p
}

// await waits for one of the texts in the output.
func (p *process) await(t *testing.T, texts ...string) {
	t.Helper()
	require.Eventually(t, func() bool {
		out := p.out.last(1 << 20)
		return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(out, text) })
	}, patience, 50*time.Millisecond, "it does not say %q", texts)
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
