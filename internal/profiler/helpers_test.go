package profiler_test

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/benchloom/benchloom/internal/profiler"
)

func TestMain(m *testing.M) {
	if os.Getenv("PROFILER_TEST_EXIT") != "" {
		exitWhileProfiling()
		return
	}
	goleak.VerifyTestMain(m)
}

// receiver is a sender that keeps what it gets. Answer, if set, decides what becomes of an upload.
type receiver struct {
	answer func(ctx context.Context, u profiler.Upload) error

	mu    sync.Mutex
	got   []profiler.Upload
	tries []time.Time
}

func (r *receiver) Send(ctx context.Context, u profiler.Upload) error {
	r.mu.Lock()
	r.tries = append(r.tries, time.Now())
	r.mu.Unlock()
	if r.answer != nil {
		if err := r.answer(ctx, u); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, u)
	return nil
}

func (r *receiver) uploads() []profiler.Upload {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// tried returns the times at which something was sent.
func (r *receiver) tried() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.tries)
}

// batches returns the batches of a series in the order of arrival.
func (r *receiver) batches(scope profiler.Scope, name string) []profiler.Batch {
	var found []profiler.Batch
	for _, u := range r.uploads() {
		for _, b := range u.Batches {
			if b.Scope == scope && b.Name == name && b.Device == "" {
				found = append(found, b)
			}
		}
	}
	return found
}

// values, indexes and times return those of all batches of a series.
func (r *receiver) values(scope profiler.Scope, name string) []float64 {
	return flat(r.batches(scope, name), func(b profiler.Batch) []float64 { return b.Values })
}

func (r *receiver) indexes(scope profiler.Scope, name string) []int {
	return flat(r.batches(scope, name), func(b profiler.Batch) []int { return b.Batches })
}

func (r *receiver) times(scope profiler.Scope, name string) []time.Time {
	return flat(r.batches(scope, name), func(b profiler.Batch) []time.Time { return b.Times })
}

func flat[T any](batches []profiler.Batch, of func(profiler.Batch) []T) []T {
	var all []T
	for _, b := range batches {
		all = append(all, of(b)...)
	}
	return all
}

// source is a collector made of a function.
type source struct {
	collect func() (profiler.Collected, error)
	closed  int
}

func (s *source) Name() string { return "test" }

func (s *source) Collect(context.Context) (profiler.Collected, error) { return s.collect() }

func (s *source) Close() error {
	s.closed++
	return nil
}

// memory is a source whose reading is always the same.
func memory() *source {
	return &source{collect: func() (profiler.Collected, error) {
		return profiler.Collected{Values: []profiler.Value{{Metric: profiler.MemoryUsed, Value: 42}}}, nil
	}}
}

// processor is a source of CPU time that grows by half of the time.
func processor() *source {
	begin := time.Now()
	return &source{collect: func() (profiler.Collected, error) {
		value := profiler.Value{Metric: profiler.CPUUsed, Value: 1000 + time.Since(begin).Seconds()/2, Counter: true}
		return profiler.Collected{Values: []profiler.Value{value}}, nil
	}}
}

const (
	memoryUsed = string(profiler.MemoryUsed)
	cpuUsed    = string(profiler.CPUUsed)
)

// config returns a complete configuration of an agent that does everything.
func config(s profiler.Sender, job ...profiler.Collector) profiler.Config {
	return profiler.Config{
		Settings: profiler.Settings{Enabled: true, SystemMetrics: true, Timings: true},
		Attempt:  "run-1", Host: "m1", Job: job,
		Sender: s, Log: slog.New(slog.DiscardHandler), Now: time.Now,
	}
}

func newAgent(t *testing.T, c profiler.Config) *profiler.Agent {
	t.Helper()
	a, err := profiler.New(c)
	require.NoError(t, err)
	return a
}

// phase records a phase that has just ended.
func phase(a *profiler.Agent, name string) {
	a.RecordTiming(name, time.Now().Add(-20*time.Millisecond), time.Now())
}

// notes is a log that counts its lines.
type notes struct {
	mu   sync.Mutex
	text strings.Builder
}

func (n *notes) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(b)
}

func (n *notes) count(part string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Count(n.text.String(), part)
}

func (n *notes) log() *slog.Logger { return slog.New(slog.NewTextHandler(n, nil)) }

// bubble runs a test with a clock of its own, which advances when everything waits. It fails if a goroutine is left.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

func pointer[T any](v T) *T { return &v }
