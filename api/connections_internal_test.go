package api

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/netutil"
)

// Connections that wait for a further request make room for new ones, the oldest first.
func TestKeptConnectionsShutNobodyOut(t *testing.T) {
	t.Parallel()
	const most, kept = 8, 4
	ctx, stop := context.WithCancel(t.Context())
	listener, err := Listen(ctx, "127.0.0.1:0", false)
	require.NoError(t, err)
	ended := make(chan error, 1)
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") })
	go func() {
		ended <- serve(ctx, netutil.LimitListener(listener, most), handler, slog.New(slog.DiscardHandler), nil, kept)
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	keep := func() net.Conn {
		conn, err := net.Dial("tcp", listener.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
		_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		require.NoError(t, err)
		answer := make([]byte, 12)
		_, err = io.ReadFull(conn, answer)
		require.NoError(t, err, "a new connection is served")
		require.Equal(t, "HTTP/1.1 200", string(answer))
		return conn
	}
	first := keep()
	for range 3 * most {
		keep()
	}
	_, err = io.Copy(io.Discard, first) // until its end
	require.NoError(t, err, "the oldest one was closed")
}
