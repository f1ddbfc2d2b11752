package hostile_test

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/up"
)

// proxy stands between a collector and the API, and answers the first uploads of blocks
// by itself.
type proxy struct {
	*httptest.Server
	// uploads counts the blocks that it saw, answered those that did not come through.
	uploads, answered atomic.Int64
	// open lets everything through from now on.
	open atomic.Bool
}

// proxied starts a proxy that answers uploads with these statuses before it lets any
// through.
func proxied(t *testing.T, s service, statuses ...int) *proxy {
	t.Helper()
	behind, err := url.Parse(s.url)
	require.NoError(t, err)
	forward := httputil.NewSingleHostReverseProxy(behind)
	p := &proxy{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The block of a command goes with its end.
		if strings.Contains(r.URL.Path, "/blocks/") || strings.HasSuffix(r.URL.Path, "/finish") {
			if n := p.uploads.Add(1); int(n) <= len(statuses) && !p.open.Load() {
				p.answered.Add(1)
				w.Header().Set("Content-Type", "text/html")
				w.WriteHeader(statuses[n-1])
				fmt.Fprintf(w, "<html><head><title>%d</title></head><body>nginx</body></html>", statuses[n-1])
				return
			}
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

// machine is a real collector of its own pool that reaches the API at an address.
func (s service) machine(t *testing.T, name string, class bench.SizeClass, api string) (dir string) {
	t.Helper()
	dir = s.enrolMachine(t, name, class, api)
	runMachine(t, dir)
	return dir
}

// enrolMachine invites a collector of its own pool and enrols it, but does not start it.
func (s service) enrolMachine(t *testing.T, name string, class bench.SizeClass, api string) (dir string) {
	t.Helper()
	invited, err := s.API.InviteCollector(t.Context(), apiclient.Invite{Name: name, Target: target, SizeClass: class, Pool: "pool-of-" + name})
	require.NoError(t, err)
	dir = t.TempDir()
	out, err := s.run(t, "collector", "enroll", api, invited.Token, "--state-dir", dir, "--temporal", s.Up.Addresses[up.AddressTemporal])
	require.NoError(t, err, out)
	return dir
}

// runMachine starts the collector of a state directory with further variables in its
// environment. It ends with the test, or is killed before.
func runMachine(t *testing.T, dir string, environ ...string) (kill func()) {
	t.Helper()
	p := programs()
	require.NoError(t, p.Find())
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = log.Close() })
	command := exec.Command(p.Benchloom, "collector", "run", "--state-dir", dir, "--co-located")
	command.Env = slices.Concat(os.Environ(), []string{"BENCHLOOM_TOKEN=", "BENCHLOOM_URL="}, environ)
	command.Stdout, command.Stderr = log, log
	require.NoError(t, command.Start())
	end := sync.OnceFunc(func() {
		kill := time.AfterFunc(time.Minute, func() { _ = command.Process.Kill() })
		_ = command.Wait()
		kill.Stop()
	})
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		end()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("collector of %s:\n%s", dir, text)
		}
	})
	return func() {
		require.NoError(t, command.Process.Kill())
		end()
	}
}

// awaitMachine waits until a collector can take jobs.
func (s service) awaitMachine(t *testing.T, name string) {
	t.Helper()
	require.Eventually(t, func() bool {
		c, err := s.API.Collector(t.Context(), name)
		return err == nil && c.State != bench.CollectorOffline
	}, patience, 50*time.Millisecond, "the collector %s does not register", name)
}

// setAside lists what a collector has put aside as refused.
func setAside(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(filepath.Base(path), "refused") {
			files = append(files, path)
		}
		return nil
	}))
	return files
}

// What a proxy answers is not the API's refusal: the block is delivered as soon as it
// comes through, and measured once.
func TestAProxysAnswerIsNoRefusal(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	p := proxied(t, s, http.StatusNotFound, http.StatusRequestEntityTooLarge, http.StatusForbidden, http.StatusBadGateway)
	dir := s.machine(t, "behind-a-proxy", 13, p.URL)
	s.awaitMachine(t, "behind-a-proxy")
	count := writable(t, "count")
	id := s.submit(t, apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"sh", "-c", "echo once >>" + count}}, PlacementWish: apiclient.PlacementWish{SizeClass: 13}})
	d := s.await(t, id)
	require.Equal(t, bench.Success, d.Outcome, d.Message)
	require.Len(t, d.Runs, 1)
	require.EqualValues(t, 4, p.answered.Load())
	require.Empty(t, setAside(t, dir))
}
