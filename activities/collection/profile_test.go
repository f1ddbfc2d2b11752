//go:build linux

package collection_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/activities/collection"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/profiler"
	"github.com/benchloom/benchloom/internal/store"
)

// receiver takes the profiles of runs in the API's place.
type receiver struct {
	mu    sync.Mutex
	calls []string
	got   []profiler.Upload
}

func (r *receiver) take(w http.ResponseWriter, call *http.Request) {
	var u profiler.Upload
	zipped, err := gzip.NewReader(call.Body)
	if err == nil {
		err = json.NewDecoder(zipped).Decode(&u)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call.URL.Path)
	r.got = append(r.got, u)
	w.Header().Set(apiclient.HeaderAPI, "1")
}

// batches returns the batches of a series in the order of arrival.
func (r *receiver) batches(scope profiler.Scope, name string) []profiler.Batch {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []profiler.Batch
	for _, u := range r.got {
		for _, b := range u.Batches {
			if b.Scope == scope && b.Name == name && b.Device == "" {
				found = append(found, b)
			}
		}
	}
	return found
}

// indexes returns the batch indexes of a series.
func (r *receiver) indexes(scope profiler.Scope, name string) []int {
	var all []int
	for _, b := range r.batches(scope, name) {
		all = append(all, b.Batches...)
	}
	return all
}

func profiles(path string) bool { return strings.HasSuffix(path, "/profile/batches") }

// profiled is a collector whose runs are recorded by the machine's own readings.
func profiled(t *testing.T, answer http.HandlerFunc) *bundle {
	t.Helper()
	b := setup(t)
	lock := filepath.Join(b.root, "lock")
	b.Profiling = &collection.Profiling{
		Host: "m1",
		Lock: func() profiler.HostLock { return flock.New(lock) },
		Job:  func() []profiler.Collector { return profiler.JobCollectors(machine.NewGroupReader(machine.Group{})) },
		Machine: func() []profiler.Collector {
			return profiler.MachineCollectors(machine.NewReader(machine.Config{Root: "/", Now: time.Now, KeepOpen: true}), machine.NewThermometer("/"))
		},
		Devices: func() []profiler.Collector { return nil },
	}
	b.gate.reply(profiles, answer)
	b.gate.isOlder() // else the samples of such short runs go with their ends
	return b
}

func TestARunHasAProfile(t *testing.T) {
	var r receiver
	b := profiled(t, r.take)
	key := b.job("v1", "one", "two")
	out, err := b.run(key, 1)
	require.NoError(t, err)
	require.Equal(t, bench.RunSuccess, out.Outcome)

	// Four commands were measured, each of which was set up under the number of the one before.
	require.Equal(t, []int{1, 2, 3, 4}, r.indexes(profiler.ScopeTiming, "measuring"))
	require.Equal(t, []int{0, 1, 2, 3}, r.indexes(profiler.ScopeTiming, "setting up"))
	require.Equal(t, []int{0}, r.indexes(profiler.ScopeTiming, "fetching"))
	require.Equal(t, []int{0, 2}, r.indexes(profiler.ScopeTiming, "preparing"), "of two variants, one after the other")
	require.Contains(t, r.indexes(profiler.ScopeTiming, "uploading"), 4)
	require.NotEmpty(t, r.batches(profiler.ScopeMachine, string(profiler.MemoryFree)))
	for _, call := range r.calls {
		require.Equal(t, "/api/v1/runs/"+string(out.Run)+"/profile/batches", call)
	}
	for _, batch := range r.batches(profiler.ScopeTiming, "measuring") {
		require.Equal(t, string(out.Run), batch.Attempt)
		require.Equal(t, "m1", batch.Host)
		require.Equal(t, profiler.Seconds, batch.Unit)
	}

	// The last upload sums up the run, and says what the numbers stand for.
	sum := r.got[len(r.got)-1].Summary
	require.NotNil(t, sum)
	var commands []string
	for _, c := range sum.Commands {
		require.Equal(t, "v1", c.Artifact)
		commands = append(commands, fmt.Sprintf("%d: %s %d", c.Batch, strings.Fields(c.Case)[0], c.Iteration))
	}
	require.Equal(t, []string{"1: one 1", "2: one 2", "3: two 1", "4: two 2"}, commands)
	phases := map[string]int{}
	for _, p := range sum.Phases {
		phases[p.Name] = p.Count
	}
	require.Equal(t, 4, phases["measuring"])
	require.Equal(t, 2, phases["preparing"])
	// A command that is over before its sampler had the CPU has no sample.
	require.True(t, slices.ContainsFunc(sum.Series, func(s profiler.SeriesSummary) bool {
		return s.Name == string(profiler.MemoryFree) && len(s.Batches) > 0
	}))
	for _, s := range sum.Series {
		require.Subset(t, []int{1, 2, 3, 4}, s.Batches)
	}
	for _, u := range r.got {
		require.Empty(t, u.Check())
	}

	// Nothing is left to measure: there is nothing to record.
	before := len(r.calls)
	_, err = b.run(key, 2)
	require.NoError(t, err)
	require.Len(t, r.calls, before)
}

// Another attempt at a job has series of its own, also if its first one left some.
func TestAttemptsAtAJobHaveProfilesOfTheirOwn(t *testing.T) {
	var r receiver
	b := profiled(t, r.take)
	key := b.job("v1", "one", "fails")
	for n := range 2 {
		_, err := b.run(key, n+1)
		require.Error(t, err)
	}
	attempts := map[string][]int{}
	for _, batch := range r.batches(profiler.ScopeTiming, "measuring") {
		attempts[batch.Attempt] = append(attempts[batch.Attempt], batch.Sequence)
	}
	require.Len(t, attempts, 2)
	for attempt, sequences := range attempts {
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(sequences))), len(sequences), "attempt %s", attempt)
	}
}

// However profiles are answered, the run goes on and its results are stored.
func TestNoAnswerToAProfileConcernsItsRun(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"an older API":    func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) },
		"a refusal":       func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnprocessableEntity) },
		"an error":        func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) },
		"a reset":         func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"no answer":       nil,
		"a redirection":   func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"another program": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) },
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan struct{})
			if answer == nil {
				answer = func(http.ResponseWriter, *http.Request) { <-ended }
			}
			b := profiled(t, answer)
			key := b.job("v1", "one", "two")
			out, err := b.run(key, 1)
			close(ended)
			require.NoError(t, err)
			require.Equal(t, bench.RunSuccess, out.Outcome)
			require.Equal(t, 2, b.done(key))
			require.NotNil(t, b.runs(key)[0].FinishedAt)
			require.Empty(t, b.spooled())
		})
	}
}

func TestABrokenProfileDoesNotConcernItsRun(t *testing.T) {
	for name, spoil := range map[string]func(*collection.Profiling){
		"no lock can be made":    func(p *collection.Profiling) { p.Lock = nil },
		"opening readers panics": func(p *collection.Profiling) { p.Machine = func() []profiler.Collector { panic("no machine") } },
		"there is a nil collector": func(p *collection.Profiling) {
			p.Job = func() []profiler.Collector { return []profiler.Collector{nil} }
		},
		"the lock cannot be opened": func(p *collection.Profiling) { p.Lock = func() profiler.HostLock { return flock.New("/nowhere/lock") } },
	} {
		t.Run(name, func(t *testing.T) {
			var r receiver
			b := profiled(t, r.take)
			spoil(b.Profiling)
			key := b.job("v1", "one")
			out, err := b.run(key, 1)
			require.NoError(t, err)
			require.Equal(t, bench.RunSuccess, out.Outcome)
			require.Equal(t, 1, b.done(key))
		})
	}
}

func TestProfilingIsConfiguredByProject(t *testing.T) {
	for name, c := range map[string]struct {
		config string
		want   []string // names of series
		none   []string
	}{
		"nothing":           {`{}`, []string{"measuring", "memory_free"}, nil},
		"switched off":      {`{"profiling": {"enabled": false}}`, nil, []string{"measuring", "memory_free"}},
		"neither kind":      {`{"profiling": {"system_metrics": false, "timings": false}}`, nil, []string{"measuring", "memory_free"}},
		"no system metrics": {`{"profiling": {"system_metrics": false}}`, []string{"measuring"}, []string{"memory_free"}},
		"no timings":        {`{"profiling": {"timings": false}}`, []string{"memory_free"}, []string{"measuring"}},
		"a later begin":     {`{"profiling": {"start_on_batch": 2}}`, []string{"measuring"}, []string{"fetching", "preparing"}},
		"an earlier end":    {`{"profiling": {"end_after_batch": 0}}`, []string{"fetching"}, []string{"measuring"}},
	} {
		t.Run(name, func(t *testing.T) {
			var r receiver
			b := profiled(t, r.take)
			_, err := b.store.ApplyProject(t.Context(), store.Project{Name: "go", Config: json.RawMessage(c.config), SuiteHash: b.hash})
			require.NoError(t, err)
			key := b.job("v1", "one")
			_, err = b.run(key, 1)
			require.NoError(t, err)
			has := func(name string) bool {
				return len(r.batches(profiler.ScopeTiming, name))+len(r.batches(profiler.ScopeMachine, name)) > 0
			}
			for _, name := range c.want {
				require.True(t, has(name), "%s is missing", name)
			}
			for _, name := range c.none {
				require.False(t, has(name), "%s is there", name)
			}
			if len(c.want) == 0 {
				require.Empty(t, r.calls, "nothing is sent at all")
			}
		})
	}
}
