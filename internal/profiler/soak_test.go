package profiler_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/profiler"
)

// soakEnv sets how long the soak lasts ('make soak-profiler': 20m). Only then are times compared: they tell nothing on a busy machine.
const soakEnv = "BENCHLOOM_PROFILER_SOAK"

// timed is a collector that notes when it is read.
type timed struct {
	profiler.Collector
	mu    sync.Mutex
	reads []time.Time
}

func (t *timed) Collect(ctx context.Context) (profiler.Collected, error) {
	t.mu.Lock()
	t.reads = append(t.reads, time.Now())
	t.mu.Unlock()
	return t.Collector.Collect(ctx)
}

// intervals returns the times between readings.
func (t *timed) intervals() []time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []time.Duration
	for i := 1; i < len(t.reads); i++ {
		all = append(all, t.reads[i].Sub(t.reads[i-1]))
	}
	return all
}

// late returns the share of intervals above a length.
func late(intervals []time.Duration, above time.Duration) float64 {
	n := 0
	for _, d := range intervals {
		if d > above {
			n++
		}
	}
	return float64(n) / float64(max(1, len(intervals)))
}

// faults sends in turn to a server that hangs, one that refuses connections, one that resets them, one that answers 500, and one
// that takes everything.
type faults struct {
	servers []*apiclient.Client
	tries   atomic.Int64
	taken   atomic.Int64
}

func (f *faults) Send(ctx context.Context, u profiler.Upload) error {
	turn := int(f.tries.Add(1)-1) % len(f.servers)
	return f.servers[turn].SendProfile(ctx, "soak", u)
}

// service starts a server and returns a client of it.
func service(t *testing.T, handler http.HandlerFunc) (*apiclient.Client, *httptest.Server) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	// Without connections that outlive a request, or the test.
	client, err := apiclient.New(server.URL, "", &http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
	require.NoError(t, err)
	return client, server
}

func newFaults(t *testing.T) *faults {
	t.Helper()
	f := &faults{}
	hung, _ := service(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then is the client's leaving noticed
		<-r.Context().Done()
	})
	refused, gone := service(t, nil)
	gone.Close()
	reset, _ := service(t, func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		if tcp, ok := connection.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = connection.Close()
	})
	failing, _ := service(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	f.servers = []*apiclient.Client{hung, refused, reset, failing, f.good(t)}
	return f
}

// good returns a server that takes everything.
func (f *faults) good(t *testing.T) *apiclient.Client {
	t.Helper()
	client, _ := service(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set(apiclient.HeaderAPI, "1")
		f.taken.Add(1)
	})
	return client
}

// soaked is an agent with the measured command that it goes with.
type soaked struct {
	sender *faults
	reads  []*timed
	steps  []time.Duration // in calls of the agent
	totals profiler.Totals
}

// attempt runs an agent beside a job for some time.
func (s *soaked) attempt(t *testing.T, during time.Duration) {
	clock := &timed{Collector: profiler.JobCollectors(machine.NewGroupReader(machine.Group{}))[0]}
	s.reads = append(s.reads, clock)
	c := config(s.sender, clock)
	c.Machine = profiler.MachineCollectors(
		machine.NewReader(machine.Config{Root: "/", Now: time.Now, KeepOpen: true}), machine.NewThermometer("/"))
	c.Lock = free{}
	a, err := profiler.New(c)
	if err != nil {
		t.Error(err)
		return
	}
	a.Start(t.Context())
	step := time.NewTicker(time.Second)
	defer step.Stop()
	for n := range int(during / time.Second) {
		<-step.C
		begin := time.Now()
		err = a.UpdateBatch(n)
		a.RecordTiming("measure", begin.Add(-time.Second), begin)
		s.steps = append(s.steps, time.Since(begin))
		if err != nil {
			t.Error(err)
		}
	}
	totals := a.End()
	s.totals.Sent += totals.Sent
	s.totals.Dropped += totals.Dropped
	s.totals.Failed += totals.Failed
}

// heap returns the bytes in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// An agent whose server fails in every way is compared with one beside it whose server is well.
func TestLongAServerThatFailsInEveryWayCostsSamplesOnly(t *testing.T) {
	t.Parallel()
	length, compare := time.Minute, false
	if text := os.Getenv(soakEnv); text != "" {
		var err error
		length, err = time.ParseDuration(text)
		require.NoError(t, err, soakEnv)
		compare = true
	}
	bad := &soaked{sender: newFaults(t)}
	well := &soaked{sender: &faults{}}
	well.sender.servers = []*apiclient.Client{well.sender.good(t)}

	heaps := []uint64{heap()}
	for left := length; left > 0; left -= profiler.MaxActive {
		during := min(left, profiler.MaxActive)
		var both sync.WaitGroup
		both.Go(func() { bad.attempt(t, during) })
		both.Go(func() { well.attempt(t, during) })
		both.Wait()
		heaps = append(heaps, heap())
	}
	for _, s := range []*soaked{bad, well} {
		var all []time.Duration
		for _, r := range s.reads {
			all = append(all, r.intervals()...)
		}
		slices.Sort(all)
		slices.Sort(s.steps)
		t.Logf("%d uploads tried, %d taken; values: %+v; %d intervals: median %s, 99.5 %% %s, longest %s, above 150 ms %.2f %%; calls: median %s, longest %s",
			s.sender.tries.Load(), s.sender.taken.Load(), s.totals, len(all), all[len(all)/2], all[len(all)*995/1000], all[len(all)-1],
			100*late(all, 150*time.Millisecond), s.steps[len(s.steps)/2], s.steps[len(s.steps)-1])
	}
	t.Logf("heap before, and after each window: %d bytes", heaps)
	require.Greater(t, bad.sender.tries.Load(), int64(len(bad.sender.servers)), "it met every server")
	require.Positive(t, bad.sender.taken.Load(), "it goes on to the server that is well")
	require.Positive(t, bad.totals.Dropped)
	require.Positive(t, bad.totals.Sent)
	require.Less(t, heaps[len(heaps)-1], heaps[0]+4<<20, "memory is flat")
	if !compare {
		return
	}
	lateness := func(s *soaked) (share float64) {
		for _, r := range s.reads {
			share += late(r.intervals(), 150*time.Millisecond) / float64(len(s.reads))
		}
		return share
	}
	require.Less(t, lateness(bad), lateness(well)+0.005, "sampling is on time")
	require.Less(t, bad.steps[len(bad.steps)/2], 2*well.steps[len(well.steps)/2]+time.Millisecond, "the job does not wait")
}
