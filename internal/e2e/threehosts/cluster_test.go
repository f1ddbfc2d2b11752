//go:build linux

package threehosts_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/devstack"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

// TestLongATemporalClusterOfOnesOwn: all processes use a Temporal that they have not started,
// which knows nothing of Benchloom's tokens and asks for certificates, and nobody without one
// gets there; see docs/operations.md, "Your own Temporal cluster".
func TestLongATemporalClusterOfOnesOwn(t *testing.T) {
	n := newNetwork(t)
	h := n.add(t, "hub", hub, root)
	benchloom := program(t, n, "BENCHLOOM_BIN", "benchloom")
	h.start(t, root, program(t, n, "BENCHLOOM_TEMPORAL_DEV", "temporal-dev"), "--db-file", h.path("temporal.db"), "--ip", hub,
		"--tls-cert", certFile(h.dir), "--tls-key", keyFile(h.dir), "--tls-client-ca", n.file()).await(t, "ready frontend=")
	good := probe{Call: "look", CA: n.file(), Certificate: h.dir}
	require.Contains(t, h.try(t, good), "OK ", "without an authorizer, whoever has a certificate may do everything")
	without := good
	without.Certificate = ""
	h.awaitOutcome(t, without, "certificate required")

	database := "DATABASE_URL=" + storetest.EmptyURL(t)
	h.environ = append(h.environ, database)
	h.start(t, root, benchloom, "up", "--state-dir", h.path("state"), "--isolation=off", "--co-located")
	require.Eventually(t, func() bool {
		_, err := devstack.ReadUp(h.path("state"))
		return err == nil
	}, patience, 50*time.Millisecond, "it does not get ready")
	token := h.path("state/tokens/admin")
	out, err := h.run(t, root, benchloom, "submit", "--adhoc", "--wait", "--token-file", token, "--", "/bin/echo", "hello")
	require.NoError(t, err, out)
	require.Contains(t, out, "success")

	// Workers need a certificate as well, and their log says so.
	h.environ = append(h.with(n.file(), ""), database)
	h.start(t, root, benchloom, "orchestrator", "--cache-dir", h.path("cache")).await(t, "certificate required")
}
