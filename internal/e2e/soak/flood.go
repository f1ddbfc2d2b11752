package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/devstack"
	"github.com/benchloom/benchloom/internal/e2e/livestack"
	"github.com/benchloom/benchloom/internal/up"
)

// kind is a way of flooding. Each of its connections repeats flood after a pause.
type kind struct {
	name  string
	share int // of the connections, in per cent
	pause time.Duration
	flood func(ctx context.Context, f *flood, client *http.Client)
}

func kinds() []kind {
	return []kind{
		{"methods", 30, 20 * time.Millisecond, inventMethod},
		{"slow-readers", 20, time.Second, readSlowly},
		{"headers", 10, 100 * time.Millisecond, sendHeaders},
		{"json", 20, 200 * time.Millisecond, breakJSON},
		{"half-open", 20, 100 * time.Millisecond, openHalf},
	}
}

// flood loads one API.
type flood struct {
	address, token string // host:port, and that of the administrator
	// reader is a token of the slow readers: calls without one share the rate of their
	// address, which the invented methods use up.
	reader      string
	calls       []atomic.Int64
	exports     atomic.Int64 // that slow readers began to get
	connections sync.WaitGroup
}

func newFlood(ctx context.Context, stack *livestack.Stack) (*flood, error) {
	token, err := devstack.ReadToken(stack.State(), up.TokenUser)
	if err != nil {
		return nil, err
	}
	reader, err := stack.API.CreateToken(ctx, apiclient.NewToken{Owner: "slow", Role: api.RoleReader})
	if err != nil {
		return nil, err
	}
	return &flood{address: strings.TrimPrefix(stack.Up.Addresses[up.AddressAPI], "http://"), token: token, reader: reader.Secret, calls: make([]atomic.Int64, len(kinds()))}, nil
}

// start opens the connections, which go on until the context ends.
func (f *flood) start(ctx context.Context, connections int) {
	for i, k := range kinds() {
		for range max(1, connections*k.share/100) {
			f.connections.Go(func() {
				transport := &http.Transport{MaxConnsPerHost: 1}
				defer transport.CloseIdleConnections()
				client := &http.Client{Transport: transport, Timeout: time.Minute}
				for ctx.Err() == nil {
					k.flood(ctx, f, client)
					f.calls[i].Add(1)
					pause(ctx, k.pause)
				}
			})
		}
	}
}

func (f *flood) wait() { f.connections.Wait() }

// counts returns the number of calls by kind.
func (f *flood) counts() map[string]int64 {
	counts := make(map[string]int64)
	for i, k := range kinds() {
		counts[k.name] = f.calls[i].Load()
	}
	return counts
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// send makes a call. Whatever happens to it is what it was made for.
func (f *flood) send(request *http.Request, err error, client *http.Client) {
	if err != nil {
		return
	}
	response, err := client.Do(request)
	if err != nil {
		return
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
}

// inventMethod calls with a method and a path that nobody has used before.
func inventMethod(ctx context.Context, f *flood, client *http.Client) {
	request, err := http.NewRequestWithContext(ctx, fmt.Sprintf("M%X", rand.Uint64()), fmt.Sprintf("http://%s/api/v1/projects/%x", f.address, rand.Uint64()), nil)
	f.send(request, err, client)
}

// breakJSON sends what looks like a request and is none.
func breakJSON(ctx context.Context, f *flood, client *http.Client) {
	bodies := []string{
		`{"project":`, `{"command":{"argv":["` + strings.Repeat("x", 60_000), strings.Repeat("[", 10_000), `{"jobs":[{"argv":["true"]},{"argv"`,
		`{"project":"\ud800"}`, "\x00\xff", `{"a":1,"a":2}`, strings.Repeat(`{"jobs":`, 5_000),
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+f.address+"/api/v1/requests", strings.NewReader(bodies[rand.IntN(len(bodies))]))
	if err == nil {
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+f.token)
	}
	f.send(request, err, client)
}

// open opens a connection that the end of the context closes.
func (f *flood) open(ctx context.Context) (net.Conn, func()) {
	conn, err := (&net.Dialer{Timeout: time.Minute}).DialContext(ctx, "tcp", f.address)
	if err != nil {
		return nil, nil
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	return conn, func() {
		stop()
		_ = conn.Close()
	}
}

// exported begins the answer with an export.
const exported = "HTTP/1.1 200 OK\r\n"

// readSlowly asks for an export and reads a byte a second, for a minute.
func readSlowly(ctx context.Context, f *flood, _ *http.Client) {
	conn, end := f.open(ctx)
	if conn == nil {
		return
	}
	defer end()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4 << 10) // as little as possible
	}
	if _, err := fmt.Fprintf(conn, "GET /api/v1/results/export?project=adhoc&format=csv HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", f.reader); err != nil {
		return
	}
	begin := make([]byte, len(exported))
	if _, err := io.ReadFull(conn, begin); err != nil || string(begin) != exported {
		return // exports have few slots
	}
	f.exports.Add(1)
	var one [1]byte
	for range 60 {
		if _, err := conn.Read(one[:]); err != nil || ctx.Err() != nil {
			return
		}
		pause(ctx, time.Second)
	}
}

// sendHeaders sends a header of 1 MB.
func sendHeaders(ctx context.Context, f *flood, _ *http.Client) {
	conn, end := f.open(ctx)
	if conn == nil {
		return
	}
	defer end()
	header := io.MultiReader(
		strings.NewReader("GET /api/v1/projects HTTP/1.1\r\nHost: localhost\r\nX-Large: "),
		strings.NewReader(largeHeader), strings.NewReader("\r\n\r\n"),
	)
	_, _ = io.Copy(conn, header)
	_, _ = io.Copy(io.Discard, conn)
}

var largeHeader = strings.Repeat("x", 1<<20)

// openHalf begins a call and leaves it, in the header or in the body, until the API closes
// the connection.
func openHalf(ctx context.Context, f *flood, _ *http.Client) {
	conn, end := f.open(ctx)
	if conn == nil {
		return
	}
	defer end()
	beginnings := []string{
		"", "GET /api/v1/pro", "GET / HTTP/1.1\r\nHost: localhost\r\nX-Half:",
		"POST /api/v1/requests HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
		"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n",
	}
	if _, err := io.WriteString(conn, beginnings[rand.IntN(len(beginnings))]); err != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	_, _ = io.Copy(io.Discard, conn)
}
