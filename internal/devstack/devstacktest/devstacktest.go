// Package devstacktest gives tests the embedded Temporal.
//
// It needs the program that 'make bin/temporal-dev' builds; a test without it
// fails. The package must not know what a test does with its server, nor which
// search attributes there are.
package devstacktest

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/benchloom/benchloom/internal/devstack"
)

// readyWithin bounds the start of the server, on a busy machine.
const readyWithin = 5 * time.Minute

// Program is the embedded Temporal: BENCHLOOM_TEMPORAL_DEV, else the one in bin.
func Program(t *testing.T) string {
	t.Helper()
	program := os.Getenv("BENCHLOOM_TEMPORAL_DEV")
	if program == "" {
		dir, err := os.Getwd()
		require.NoError(t, err)
		for {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				break
			}
			require.NotEqual(t, dir, filepath.Dir(dir), "no go.mod above the test")
			dir = filepath.Dir(dir)
		}
		program = filepath.Join(dir, "bin", "temporal-dev")
	}
	require.FileExists(t, program, "run make bin/temporal-dev")
	return program
}

// Temporal starts a server for as long as the test runs, and connects to a
// namespace of it.
func Temporal(t *testing.T, namespace devstack.Namespace) client.Client {
	t.Helper()
	state, err := devstack.OpenState(filepath.Join(t.TempDir(), "state"))
	require.NoError(t, err)
	server, err := devstack.NewTemporal(state, devstack.TemporalConfig{Program: Program(t), Namespace: namespace})
	require.NoError(t, err)
	discard := slog.New(slog.DiscardHandler)
	supervisor, err := devstack.NewSupervisor(devstack.Config{State: state, Logger: discard}, server.Process())
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	var failure error // of the supervisor; to be read once it has ended
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		failure = supervisor.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
		require.NoError(t, failure)
		require.NoError(t, state.Close())
	})
	select {
	case <-supervisor.Ready():
	case <-ended:
		require.NoError(t, failure, "starting Temporal")
	case <-time.After(readyWithin):
		require.Fail(t, "Temporal is not ready")
	}
	c, err := client.DialContext(t.Context(), client.Options{HostPort: server.Address(), Namespace: namespace.Name, Logger: sdklog.NewStructuredLogger(discard)})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}
