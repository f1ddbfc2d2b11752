package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

// packingEnv holds the URL of the record of which this program packs the results, instead
// of testing.
const packingEnv = "BENCHLOOM_TEST_PACK"

// packAll packs the results of the project, and returns the exit status of the process.
func packAll(url string) int {
	s, err := store.Open(context.Background(), url)
	for n := 1; n > 0 && err == nil; {
		n, err = s.PackResults(context.Background(), project)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// After any sequence of accepting, invalidating, measuring again and purging, with packing
// processes that are killed and database sessions that are terminated in between, readers get
// what the rows say; once nothing is stale any more, they get it from what is packed.
// BENCHLOOM_SEED repeats a run.
func TestKilledProcessesLeavePackedResultsSound(t *testing.T) {
	t.Parallel()
	first := rand.Uint64() //nolint:gosec // not for secrets
	if text := os.Getenv("BENCHLOOM_SEED"); text != "" {
		var err error
		first, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	for seed := first; seed != first+2; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			h := &killedHistory{packedHistory: newPackedHistory(t, seed)}
			h.interrupt = h.terminated
			for range 8 {
				h.measure(h.tag())
			}
			// One packing that nobody disturbs tells how much it sends.
			h.due()
			h.whole = h.packElsewhere(-1)
			require.Positive(t, h.whole)
			_, err := h.RebuildPacked(t.Context(), project, store.Act{Who: "ada", Reason: "a test"})
			require.NoError(t, err)
			h.due()
			h.packElsewhere(h.random.IntN(h.whole * 9 / 10))
			require.Equal(t, 1, h.kills)
			for range 30 {
				h.step()
			}

			h.due()
			h.checkPacked()
			require.Zero(t, h.count(`select count(*) from stale_result`))
			h.checkReading()
		})
	}
}

// killedHistory does random things to results while what packs them is killed.
type killedHistory struct {
	*packedHistory
	whole int // bytes that packing sends
	kills int
}

func (h *killedHistory) step() {
	act := store.Act{Who: "ada", Reason: "a test"}
	switch n := h.random.IntN(12); {
	case n < 4:
		h.measure(h.tag())
	case n < 5:
		tag := h.tag()
		h.terminated(func(ctx context.Context, s *store.Store) error {
			_, err := s.InvalidateResults(ctx, store.ResultFilter{Project: project, Tag: tag}, act)
			return err
		})
	case n < 6:
		h.purge(h.tag(), act)
	case n < 7:
		h.terminated(func(ctx context.Context, s *store.Store) error {
			_, err := s.RebuildPacked(ctx, project, act)
			return err
		})
	case n < 9:
		h.terminated(func(ctx context.Context, s *store.Store) error {
			_, err := s.PackResults(ctx, project)
			return err
		})
	default:
		h.packElsewhere(h.random.IntN(h.whole))
	}
}

// due lets time pass, so that also artifacts with open jobs are packed.
func (h *killedHistory) due() { h.execute(`update stale_result set at = at - interval '1 hour'`) }

// terminated lets something begin on sessions of its own, which Postgres ends at some time.
func (h *killedHistory) terminated(do func(ctx context.Context, s *store.Store) error) {
	h.t.Helper()
	const doomed = "doomed"
	s := storetest.Open(h.t, h.url+"&application_name="+doomed)
	ended := make(chan error, 1)
	go func() { ended <- do(h.t.Context(), s) }()
	moment, cancel := context.WithTimeout(h.t.Context(), time.Duration(h.random.IntN(30_000))*time.Microsecond)
	defer cancel()
	<-moment.Done()
	h.execute(`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = $1`, doomed)
	if err := <-ended; err != nil {
		require.True(h.t, store.IsTransient(err), "it fails by losing its session alone: %v", err)
	}
}

// packElsewhere packs in a process of its own, while others read. Once it has sent that many
// bytes to Postgres, be it within a statement, it is killed; negative: it is not. It returns
// the bytes that it has sent.
func (h *killedHistory) packElsewhere(bytesToKill int) int {
	h.t.Helper()
	const packer = "packer"
	at, err := url.Parse(h.url)
	require.NoError(h.t, err)
	query := at.Query()
	dir, err := os.MkdirTemp("", "tap") // the path of a socket is short
	require.NoError(h.t, err)
	defer func() { require.NoError(h.t, os.RemoveAll(dir)) }()
	socket := ".s.PGSQL." + query.Get("port")
	through, err := openTap(h.t.Context(), filepath.Join(dir, socket), filepath.Join(query.Get("host"), socket), bytesToKill)
	require.NoError(h.t, err)
	query.Set("host", dir)
	query.Set("application_name", packer)
	at.RawQuery = query.Encode()

	var stderr bytes.Buffer
	process := exec.CommandContext(h.t.Context(), os.Args[0])
	process.Env, process.Stderr = append(os.Environ(), packingEnv+"="+at.String()), &stderr
	require.NoError(h.t, process.Start())
	ended := make(chan struct{})
	var killing sync.WaitGroup
	killing.Go(func() {
		select {
		case <-through.full:
			_ = process.Process.Kill()
		case <-ended:
		}
	})
	h.checkReading()
	err = process.Wait()
	close(ended)
	killing.Wait()
	sent := through.close()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() < 0 && bytesToKill >= 0 {
		h.kills++
	} else {
		require.NoError(h.t, err, "%s", &stderr)
	}
	// Postgres notices that a client is gone when it reads or writes next.
	require.Eventually(h.t, func() bool {
		return h.count(`select count(*) from pg_stat_activity where datname = current_database() and application_name = $1`, packer) == 0
	}, time.Minute, 5*time.Millisecond)
	h.checkReading()
	return sent
}

// tap passes on the connections of a socket to another, and counts what clients send.
type tap struct {
	listener net.Listener
	to       string
	work     sync.WaitGroup
	full     chan struct{} // closed when the limit is reached; what comes after it is lost

	mu     sync.Mutex
	limit  int // bytes that are passed on; negative: all
	sent   int
	closed bool // full is
}

func openTap(ctx context.Context, from, to string, limit int) (*tap, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "unix", from)
	if err != nil {
		return nil, err
	}
	t := &tap{listener: listener, to: to, full: make(chan struct{}), limit: limit}
	t.work.Go(func() { t.accept(ctx) })
	return t, nil
}

func (t *tap) accept(ctx context.Context) {
	var dialer net.Dialer
	for {
		client, err := t.listener.Accept()
		if err != nil {
			return
		}
		server, err := dialer.DialContext(ctx, "unix", t.to)
		if err != nil {
			_ = client.Close()
			return
		}
		t.work.Go(func() {
			_, _ = io.Copy(client, server)
			_ = client.Close()
		})
		t.work.Go(func() {
			_, _ = io.Copy(passing{t, server}, client)
			_ = server.Close()
		})
	}
}

// close returns the bytes that were passed on, once all clients are gone.
func (t *tap) close() int {
	_ = t.listener.Close()
	t.work.Wait()
	return t.sent
}

// passing writes to a server what the limit allows.
type passing struct {
	*tap
	server io.Writer
}

func (p passing) Write(b []byte) (int, error) {
	if n, err := p.server.Write(b[:p.allow(len(b))]); err != nil {
		return n, err
	}
	return len(b), nil
}

// allow counts bytes and returns how many of them may be passed on.
func (t *tap) allow(n int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	allowed := n
	if t.limit >= 0 {
		allowed = min(n, t.limit-t.sent)
	}
	t.sent += allowed
	if allowed < n && !t.closed {
		t.closed = true
		close(t.full)
	}
	return allowed
}
