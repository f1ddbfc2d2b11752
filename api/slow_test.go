package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/uber-go/tally/v4"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// endless is a record whose exports end only when nobody takes them any more.
type endless struct {
	api.Store
	begun, ended chan struct{}
}

func (e endless) ExportCollections(ctx context.Context, project string, tags []string, yield func(bench.ExportedCollection) error) error {
	e.begun <- struct{}{}
	defer func() { e.ended <- struct{}{} }()
	return e.Store.ExportCollections(ctx, project, tags, func(r bench.ExportedCollection) error {
		for {
			if err := yield(r); err != nil {
				return err
			}
		}
	})
}

// exporting starts an API with endless exports of one project.
func exporting(t *testing.T, stall time.Duration) (*bundle, endless) {
	t.Helper()
	e := endless{begun: make(chan struct{}, 100), ended: make(chan struct{}, 100)}
	b, _ := measured(t, func(c *api.Config) {
		e.Store = c.Store
		c.Store, c.StallBound = e, stall
	})
	return b, e
}

// readNothing asks for an export and reads nothing of it.
func readNothing(t *testing.T, b *bundle, headers ...string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(b.server.URL, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "GET /api/v1/results/export?project=go&format=csv HTTP/1.1\r\nHost: localhost\r\n%s\r\n", strings.Join(append(headers, ""), "\r\n"))
	require.NoError(t, err)
	return conn
}

func TestAReaderThatTakesNothingIsDropped(t *testing.T) {
	t.Parallel()
	b, e := exporting(t, 200*time.Millisecond)
	conn := readNothing(t, b)
	<-e.begun
	<-e.ended // or the test does not end
	taken, err := io.Copy(io.Discard, conn)
	require.Positive(t, taken, "what was on its way")
	t.Log("the connection ended with", err)
}

func TestSlowReadersKeepNobodyElseWaiting(t *testing.T) {
	t.Parallel()
	b, e := exporting(t, time.Minute)
	var conns []net.Conn
	for range 12 {
		conns = append(conns, readNothing(t, b))
	}
	const ofOneAddress = 4
	for range ofOneAddress {
		<-e.begun
	}
	require.Equal(t, http.StatusOK, b.send(t, "", http.MethodGet, "/readyz", "").status)
	require.Equal(t, http.StatusOK, b.send(t, "", http.MethodGet, "/api/v1/projects", "").status)
	b.register(t, "beside")

	err := b.nobody.Export(t.Context(), io.Discard, "go", "csv")
	busy := problemOf(t, err)
	require.Equal(t, "urn:benchloom:busy", busy.Type)
	require.Equal(t, 2*time.Second, busy.RetryAfter)
	require.True(t, apiclient.IsTransient(err))

	readNothing(t, b, "Authorization: Bearer "+b.tokens[api.RoleReader])
	<-e.begun // who has a token has slots of their own
	for _, c := range conns {
		require.NoError(t, c.Close())
	}
}

func TestInventedMethodsMakeNoSeries(t *testing.T) {
	t.Parallel()
	scope := tally.NewTestScope("", nil)
	b := setup(t, func(c *api.Config) { c.Scope = scope })
	for n := range 50 {
		b.send(t, "", fmt.Sprintf("METHOD%d", n), fmt.Sprintf("/api/v1/projects/%d", n), "")
		b.send(t, "", fmt.Sprintf("METHOD%d", n), fmt.Sprintf("/nowhere/%d", n), "")
	}
	b.send(t, "", http.MethodDelete, "/nowhere", "")
	counts := make(map[string]int64)
	for _, c := range scope.Snapshot().Counters() {
		counts[c.Tags()["method"]+" "+c.Tags()["route"]+" "+c.Tags()["status"]] = c.Value()
	}
	require.Equal(t, map[string]int64{"other unmatched 4xx": 100, "DELETE unmatched 4xx": 1}, counts)
	require.Len(t, scope.Snapshot().Timers(), 2)
	require.NotContains(t, b.log.String(), "level=INFO", "what changes nothing is no news")
}

func TestBodiesAreBoundedByTheirRoute(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for path, kilobytes := range map[string]int{"/api/v1/jobs/abcdefghijklmnop/retry": 64, "/api/v1/requests/go:1/remeasure": 1024} {
		body := fmt.Sprintf(`{"reason":%q}`, strings.Repeat("x", kilobytes<<10))
		r := b.send(t, api.RoleWriter, http.MethodPost, path, body)
		require.Equal(t, http.StatusRequestEntityTooLarge, r.status, path)
		require.Contains(t, r.problem(t).Detail, fmt.Sprint(kilobytes<<10), path)
	}
}

func TestHugeHeadersAreRefused(t *testing.T) {
	t.Parallel()
	base, stop := serving(t, http.NotFoundHandler())
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(base, "http://"))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	// The server does not read all of it.
	_, _ = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Large: %s\r\n\r\n", strings.Repeat("x", 1<<20))
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil { // it may have been cut off by the reset that follows
		require.Contains(t, answer, "431")
	}
	require.NoError(t, stop())
}

func TestAComparisonIsBounded(t *testing.T) {
	t.Parallel()
	b, _ := measured(t, func(c *api.Config) { c.MaxCompared = 79 })
	_, err := b.nobody.Compare(t.Context(), apiclient.CompareQuery{Project: "go", A: "1.25.0", B: "1.26.0"})
	p := problemOf(t, err)
	require.Equal(t, http.StatusUnprocessableEntity, p.Status)
	require.Equal(t, "urn:benchloom:too-large-to-compare", p.Type)
	require.Contains(t, p.Detail, "1.25.0 and 1.26.0 have 80 values in 16 series, and one comparison takes at most 79 in")
}
