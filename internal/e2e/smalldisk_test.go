package e2e_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/devstack"
	"github.com/benchloom/benchloom/internal/diskspace"
)

// readiness is a process's answer at /readyz.
type readiness struct {
	status int
	short  bool // it says that only the disk is short
	text   string
}

func readyOf(ctx context.Context, address string) (readiness, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return readiness{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return readiness{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return readiness{status: response.StatusCode, short: response.Header.Get(diskspace.ShortHeader) != "", text: string(text)}, err
}

func awaitReadiness(t *testing.T, address string, status int) readiness {
	t.Helper()
	var r readiness
	require.Eventually(t, func() bool {
		var err error
		r, err = readyOf(t.Context(), address)
		return err == nil && r.status == status
	}, patience, 20*time.Millisecond, "%s does not answer %d", address, status)
	return r
}

// staysReady asks again and again until the returned function is called, which returns the answers that were not "ready".
func staysReady(t *testing.T, address string) (unready func() []readiness) {
	t.Helper()
	var found []readiness
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-t.Context().Done():
				return
			case <-tick.C:
			}
			if r, err := readyOf(t.Context(), address); err != nil || r.status != http.StatusOK {
				found = append(found, r)
			}
		}
	}()
	return func() []readiness {
		close(stop)
		<-stopped
		return found
	}
}

// fillUp leaves less than the given bytes free on a small file system.
func fillUp(t *testing.T, file string, left int64) {
	t.Helper()
	f, err := os.Create(file)
	require.NoError(t, err)
	defer f.Close()
	for block := make([]byte, 1<<20); ; {
		space, err := diskspace.Of(filepath.Dir(file))
		require.NoError(t, err)
		if space.Free < left {
			return
		}
		_, err = f.Write(block)
		require.NoError(t, err)
	}
}

// A benchmark that fills its part of a small disk fails alone. While others fill the disk, the collector says so and takes no
// job: those that wait are not lost, and run as soon as there is room.
func TestLongASmallDisk(t *testing.T) {
	t.Parallel()
	s := startStack(t, "--collectors", "1x1", "--share-cores")
	g := s.enrol(t, "guest")
	g.onSmallDisk(t, "192m")
	port, err := devstack.FreePort("127.0.0.1")
	require.NoError(t, err)
	metrics := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	g.start(t, s.bin, "collector", "run", "--co-located", "--disk", "32MiB", "--disk-reserve", "64MiB", "--metrics", metrics)
	s.awaitState(t, "guest", bench.CollectorWaiting)
	awaitReadiness(t, metrics, http.StatusOK)

	// Its file is stopped at the limit, which is there some microseconds after its start.
	other := s.sized(t, 1)
	unready := staysReady(t, metrics)
	full := s.submit(t, apiclient.NewRequest{Command: &apiclient.Command{
		Argv: []string{"sh", "-c", `until [ "$(ulimit -f)" != unlimited ]; do :; done; head -c 1000000000 /dev/zero >file; exit 1`},
	}, PlacementWish: apiclient.PlacementWish{SizeClass: guestClass}})
	d := s.await(t, full.ID, ended)
	require.Equal(t, bench.Failure, d.Outcome)
	runs := s.runsOf(t, full.ID)
	require.NotEmpty(t, runs)
	for _, r := range runs {
		require.Equal(t, "guest", r.Collector)
		require.Contains(t, r.Message, "killed at the disk limit")
	}
	next := s.gated(t)
	next.begun(t)
	next.letGo(t)
	s.done(t, next)
	require.Empty(t, unready(), "it stays ready")
	other.begun(t)
	other.letGo(t)
	s.done(t, other)

	filler := filepath.Join(g.dir, "filler")
	fillUp(t, filler, 16<<20)
	r := awaitReadiness(t, metrics, http.StatusServiceUnavailable)
	require.True(t, r.short)
	require.Contains(t, r.text, "not ready: the file system of "+g.dir+" has ")
	require.Contains(t, r.text, "less than the reserve of 64 MiB: free space there")
	waiting := s.gated(t)
	require.Eventually(t, func() bool { return strings.Contains(g.output(t), "takes no jobs until there is room for them") }, patience, 20*time.Millisecond)
	require.Empty(t, s.runsOf(t, waiting.id))
	require.Equal(t, bench.CollectorWaiting, s.collector(t, "guest").State)

	freed := time.Now().Truncate(time.Millisecond)
	require.NoError(t, os.Remove(filler))
	awaitReadiness(t, metrics, http.StatusOK)
	waiting.begun(t)
	waiting.letGo(t)
	s.done(t, waiting)
	require.False(t, s.runsOf(t, waiting.id)[0].StartedAt.Before(freed), "it has waited for room")
	require.Contains(t, g.output(t), "there is room again")
}
