package e2e_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

// gateway is a real reverse proxy between a collector and the API. While it is broken,
// its own answers come instead of the API's, one after the other.
type gateway struct {
	server *httptest.Server
	broken atomic.Pointer[[]http.HandlerFunc]
	count  atomic.Int64
}

func newGateway(t *testing.T, api string) *gateway {
	t.Helper()
	target, err := url.Parse(api)
	require.NoError(t, err)
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	g := &gateway{}
	g.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answers := g.broken.Load(); answers != nil {
			(*answers)[int(g.count.Add(1))%len(*answers)](w, r)
			return
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(g.server.Close)
	return g
}

func (g *gateway) breaks(answers ...http.HandlerFunc) (mend func()) {
	g.broken.Store(&answers)
	return func() { g.broken.Store(nil) }
}

// says answers with a page, as proxies do.
func says(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<html>"+http.StatusText(status)+"</html>")
	}
}

// hangsUp closes the connection without an answer.
func hangsUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// wire is a TCP proxy before Postgres. While it is cut, nobody reaches that.
type wire struct {
	network, address string

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

// newWire returns a wire and the URL of the database behind it.
func newWire(t *testing.T, database string) (*wire, string) {
	t.Helper()
	config, err := pgx.ParseConfig(database)
	require.NoError(t, err)
	w := &wire{conns: make(map[net.Conn]bool)}
	w.network, w.address = "tcp", net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	if filepath.IsAbs(config.Host) {
		w.network, w.address = "unix", filepath.Join(config.Host, ".s.PGSQL."+strconv.Itoa(int(config.Port)))
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { w.carry(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		w.set(true)
		serving.Wait()
	})
	through := url.URL{Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Host: listener.Addr().String(), Path: "/" + config.Database, RawQuery: "sslmode=disable"}
	return w, through.String()
}

// carry copies both ways until one side ends or the wire is cut.
func (w *wire) carry(from net.Conn) {
	defer func() { _ = from.Close() }()
	to, err := (&net.Dialer{}).DialContext(context.Background(), w.network, w.address)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	if !w.hold(from, true) {
		return
	}
	defer w.hold(from, false)
	var back sync.WaitGroup
	back.Go(func() { _, _ = io.Copy(from, to); _ = from.Close() })
	_, _ = io.Copy(to, from)
	_ = to.Close()
	back.Wait()
}

// hold keeps a connection to be cut, or forgets it; false: the wire is cut.
func (w *wire) hold(conn net.Conn, open bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !open {
		delete(w.conns, conn)
		return true
	}
	if !w.cut {
		w.conns[conn] = true
	}
	return !w.cut
}

func (w *wire) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	if cut {
		for conn := range w.conns {
			_ = conn.Close()
		}
	}
}

// shortOutage returns the length of these tests' outages, unless [freezeEnv] says more.
func shortOutage(t *testing.T) time.Duration {
	t.Helper()
	if os.Getenv(freezeEnv) == "" {
		return 15 * time.Second
	}
	return outage(t)
}

// survivor is a project whose jobs run on one collector of its own, behind a gateway.
type survivor struct {
	*stack
	length  time.Duration
	blocks  int
	within  bool // the run is at its end before the outage is
	pauses  bool // measuring waits for the outage's end
	shell   shellSuite
	guest   *guest
	gateway *gateway
}

func newSurvivor(t *testing.T, s *stack, length time.Duration) *survivor {
	t.Helper()
	v := &survivor{stack: s, length: length, gateway: newGateway(t, s.api.BaseURL()), guest: s.enrol(t, "guest")}
	v.blocks = int((v.length+15*time.Second)/time.Second)/smallIterations + 1
	v.shell = v.napping(t)
	return v
}

// napping returns a suite whose benchmarks take a second per iteration.
func (v *survivor) napping(t *testing.T) shellSuite {
	t.Helper()
	shell := newShellSuite(t, v.blocks)
	shell.write(t, "count.sh", sleepScript)
	shell.artifact(t, "1.0.0", 1)
	return shell
}

// requireSurvives measures a suite that takes longer than the outage, takes something away
// meanwhile, and requires that this costs nothing but time: one run, which ends well, each
// block measured once and none set aside. Measuring goes on all the time; where it pauses, an
// unfinished block may be measured again.
func (v *survivor) requireSurvives(t *testing.T, away func() (back func())) {
	t.Helper()
	v.guest.start(t, v.bin, "collector", "run", "--api", v.gateway.server.URL, "--co-located")
	v.awaitState(t, "guest", bench.CollectorWaiting)
	names := make([]string, v.blocks)
	for i := range names {
		names[i] = fmt.Sprintf("count-%d", i+1)
	}
	v.applyProject(t, "shell", v.shell.dir, bench.ProjectConfig{
		FailoverAfter: "never", BenchmarkSets: []bench.BenchmarkSet{{Name: "all", Pool: "guests", Benchmarks: names}},
	})
	id := v.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Release, Tag: "1.0.0"}).ID
	require.Eventually(t, func() bool { return v.shell.executed(t) > smallIterations }, patience, 10*time.Millisecond, "nothing is measured")

	back := away()
	before := v.shell.executed(t)
	all, goal := v.blocks*smallIterations, before+smallIterations+1
	switch {
	case v.within:
		goal = all
	case v.pauses:
		goal = before
	}
	<-time.After(v.length) // it is the outage, not a wait for something
	require.Eventually(t, func() bool { return v.shell.executed(t) >= goal }, patience, 10*time.Millisecond, "measuring has stopped")
	during := v.shell.executed(t)
	back()
	if !v.within {
		require.Less(t, during, all, "the run has ended before the outage")
	}

	d := v.await(t, id, v.length+patience)
	requireSuccess(t, d.Outcome, d)
	runs := v.runsOf(t, id)
	require.Len(t, runs, 1, "no run has ended before its time")
	require.Equal(t, bench.RunSuccess, runs[0].Outcome, runs[0].Message)
	v.requireCollections(t, "shell", smallIterations)
	again := 0
	for benchmark, n := range v.shell.executions(t) {
		again += n - smallIterations
		require.GreaterOrEqual(t, n, smallIterations, benchmark)
	}
	if v.pauses { // the command that was ended for want of room, with its unfinished block
		require.LessOrEqual(t, again, smallIterations)
	} else {
		require.Zero(t, again, "measured twice")
	}
	left, err := filepath.Glob(filepath.Join(v.guest.dir, "spool", "*.json.gz*"))
	require.NoError(t, err)
	require.Empty(t, left, "everything is delivered, nothing is set aside")
}

func TestLongAnAPIThatHangsEndsNoRun(t *testing.T) {
	t.Parallel()
	v := newSurvivor(t, startStack(t), shortOutage(t))
	v.requireSurvives(t, func() func() { return v.freeze(t, "api") })
}

func TestLongAPostgresThatIsAwayEndsNoRun(t *testing.T) {
	t.Parallel()
	w, through := newWire(t, storetest.URL(t))
	v := newSurvivor(t, launch(t, through), shortOutage(t))
	v.requireSurvives(t, func() func() {
		w.set(true)
		return func() { w.set(false) }
	})
}

// Every call of the collector is answered by the proxy: with its own errors, a login page
// and a redirection to one, or not at all.
func TestLongAProxyThatAnswersItselfEndsNoRun(t *testing.T) {
	t.Parallel()
	v := newSurvivor(t, startStack(t), shortOutage(t))
	v.requireSurvives(t, v.answersItself)
}

// A run that is at its end waits with its blocks.
func TestLongAProxyThatAnswersTheLastCallsEndsNoRun(t *testing.T) {
	t.Parallel()
	v := newSurvivor(t, startStack(t), shortOutage(t))
	v.within, v.blocks = true, 4
	v.shell = v.napping(t)
	v.requireSurvives(t, v.answersItself)
}

func (v *survivor) answersItself() (back func()) {
	login := func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }
	return v.gateway.breaks(says(http.StatusNotFound), says(http.StatusRequestEntityTooLarge), says(http.StatusBadGateway), says(http.StatusOK), login, hangsUp)
}

// The disk of the collector's whole state directory is full: commands have no room, and the
// run waits.
func TestLongAFullDiskEndsNoRun(t *testing.T) {
	t.Parallel()
	v := newSurvivor(t, startStack(t), min(shortOutage(t), 2*time.Minute))
	v.pauses = true
	v.guest.onSmallDisk(t, "64m")
	v.requireSurvives(t, func() func() {
		filler := filepath.Join(v.guest.dir, "filler")
		require.ErrorIs(t, os.WriteFile(filler, make([]byte, 128<<20), 0o600), syscall.ENOSPC)
		return func() { require.NoError(t, os.Remove(filler)) }
	})
}

// onSmallDisk gives the state directory of an enrolled collector a file system of its own.
func (g *guest) onSmallDisk(t *testing.T, size string) {
	t.Helper()
	enrolled := filepath.Join(t.TempDir(), "kept")
	require.NoError(t, os.CopyFS(enrolled, os.DirFS(g.dir)))
	if err := syscall.Mount("tmpfs", g.dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("mounting a small file system: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(g.dir, syscall.MNT_DETACH) })
	require.NoError(t, os.CopyFS(g.dir, os.DirFS(enrolled)))
}
