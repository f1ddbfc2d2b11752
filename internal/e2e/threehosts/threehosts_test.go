//go:build linux

package threehosts_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/store/storetest"
)

// Addresses of the hosts.
const (
	hub   = "10.77.0.1"
	first = "10.77.0.2"
	other = "10.77.0.3"
)

// Accounts of the processes: collectors do not run as root.
const (
	root   = 0
	nobody = 65534
)

const api = "https://" + hub + ":7480"

// program finds a program built by 'make build', where accounts without rights can run it.
func program(t *testing.T, n *network, variable, name string) string {
	t.Helper()
	from := os.Getenv(variable)
	if from == "" {
		from = filepath.Join("..", "..", "..", "bin", name)
	}
	text, err := os.ReadFile(from)
	require.NoError(t, err, "%s is missing: run 'make build'", name)
	to := filepath.Join(n.dir, name)
	require.NoError(t, os.WriteFile(to, text, 0o755))
	return to
}

func TestLongThreeHostsWithTLSEverywhere(t *testing.T) {
	n := newNetwork(t)
	main, one, two := n.add(t, "hub", hub, root), n.add(t, "one", first, nobody), n.add(t, "two", other, nobody)
	benchloom, temporal := program(t, n, "BENCHLOOM_BIN", "benchloom"), program(t, n, "BENCHLOOM_TEMPORAL_DEV", "temporal-dev")
	ca := filepath.Join(n.dir, "ca.pem")
	in := func(h *host, name string) string { return filepath.Join(h.dir, name) }
	admin := newToken(t, in(main, "admin.token"))
	newToken(t, in(main, "temporal.token"))

	// The first host: Temporal, API, orchestrator.
	main.environ = append(main.environ, "DATABASE_URL="+storetest.EmptyURL(t))
	main.start(t, root, temporal, "--db-file", in(main, "temporal.db"), "--ip", hub, "--tls-cert", in(main, "host.pem"), "--tls-key", in(main, "host.key"), "--tls-client-ca", ca,
		"--token-file", in(main, "temporal.token"), "--api", api, "--api-ca", ca, "--ui-socket", in(main, "ui.sock"))
	main.start(t, root, benchloom, "api", "--listen", hub+":7480", "--tls-cert", in(main, "host.pem"), "--tls-key", in(main, "host.key"), "--user-token-file", in(main, "admin.token"),
		"--temporal-token-file", in(main, "temporal.token"), "--temporal-ui-listen", hub+":8233", "--temporal-ui-socket", in(main, "ui.sock"))
	main.start(t, root, benchloom, "orchestrator", "--temporal-token-file", in(main, "temporal.token"), "--cache-dir", in(main, "cache"))
	call := func(h *host, token string, args ...string) (string, error) {
		file := filepath.Join(n.dir, "token-of-a-person")
		require.NoError(t, os.WriteFile(file, []byte(token), 0o644))
		end := slices.Index(args, "--")
		if end < 0 {
			end = len(args)
		}
		return h.run(t, root, benchloom, slices.Insert(slices.Clone(args), end, "--api", api, "--tls-ca", ca, "--token-file", file)...)
	}
	must := func(token string, args ...string) string {
		t.Helper()
		out, err := call(main, token, args...)
		require.NoError(t, err, "%s: %s", args, out)
		return out
	}
	require.Eventually(t, func() bool {
		_, err := call(main, admin, "collector", "list")
		return err == nil
	}, patience, time.Second, "the API does not answer")

	// People with roles.
	secret := regexp.MustCompile(`blm_[a-z0-9]+`)
	reader := secret.FindString(must(admin, "token", "create", "rita", "--role", "reader"))
	writer := secret.FindString(must(admin, "token", "create", "wanda", "--role", "writer"))
	require.NotEmpty(t, reader)
	require.NotEmpty(t, writer)

	// Two enrolled collectors.
	for name, h := range map[string]*host{"bench-1": one, "bench-2": two} {
		invited := must(admin, "collector", "invite", name, "--size-class", "1", "--pool", "pool-of-"+name)
		enrolment := regexp.MustCompile(`ble_[a-z0-9]+`).FindString(invited)
		out, err := h.run(t, nobody, benchloom, "collector", "enroll", api, enrolment, "--tls-ca", ca, "--temporal", hub+":7233", "--state-dir", in(h, "state"))
		require.NoError(t, err, out)
		h.start(t, nobody, benchloom, "collector", "run", "--state-dir", in(h, "state"), "--co-located")
	}
	require.Eventually(t, func() bool {
		out, err := call(main, reader, "collector", "list")
		return err == nil && strings.Count(out, "bench-") >= 2 && !strings.Contains(out, "offline")
	}, patience, time.Second, "the collectors do not register")

	// Work goes where it is meant to go, and comes back.
	for _, name := range []string{"bench-1", "bench-2"} {
		out := must(writer, "submit", "--adhoc", "--machine", name, "--wait", "--", "/bin/echo", "hello")
		require.Contains(t, out, "success")
	}
	out, err := call(main, reader, "submit", "--adhoc", "--", "/bin/true")
	require.Error(t, err)
	require.Contains(t, out, "role")
}
