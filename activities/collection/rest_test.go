//go:build linux

package collection_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/profiler"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

// command records a job of a command that a shell carries out once.
func (b *bundle) command(script string) bench.JobKey {
	b.t.Helper()
	return b.request(bench.Job{Work: bench.Work{
		Kind: bench.KindCommand, Iterations: 1, Command: &bench.Command{Argv: []string{"sh", "-c", script}, TimeoutSeconds: 60, Iterations: 1},
	}}, "command")
}

// output reads the recorded output of a run.
func (b *bundle) output(run bench.RunID) string {
	b.t.Helper()
	text, _, err := b.store.ReadLog(b.t.Context(), run, 0, 1<<20)
	require.NoError(b.t, err)
	return string(text)
}

// recorded requires that a run has ended well, with its result, its output and its samples.
func (b *bundle) recorded(key bench.JobKey) {
	b.t.Helper()
	run := b.runs(key)[0]
	require.Equal(b.t, bench.RunSuccess, run.Outcome)
	require.Equal(b.t, 1, b.done(key))
	require.Contains(b.t, b.output(run.ID), "said\n")
	require.EqualValues(b.t, len(b.output(run.ID)), run.LogSize)
	require.Empty(b.t, b.spooled())
	profile, err := b.store.Profile(b.t.Context(), run.ID)
	require.NoError(b.t, err)
	require.Len(b.t, profile.Attempts, 1)
	require.NotNil(b.t, profile.Attempts[0].Summary)
	require.True(b.t, slices.ContainsFunc(profile.Attempts[0].Series, func(s store.ProfileSeries) bool { return s.Name == "measuring" }))
}

// passed makes no call of a collector end at the gate.
func passed(string) bool { return false }

func TestACommandIsHandedInWithItsEnd(t *testing.T) {
	b := profiled(t, nil)
	b.gate.refuse(passed)
	b.gate.older = false
	key := b.command("echo said")
	_, err := b.run(key, 1)
	require.NoError(t, err)
	require.Equal(t, []string{"start", "finish"}, b.gate.called())
	b.recorded(key)
}

// An API that does not know of it gets each part by itself.
func TestAnOlderAPIGetsEachPartByItself(t *testing.T) {
	b := profiled(t, nil)
	b.gate.refuse(passed)
	key := b.command("echo said")
	_, err := b.run(key, 1)
	require.NoError(t, err)
	called := b.gate.called()
	require.Equal(t, []string{"start", "finish"}, called[:2])
	require.ElementsMatch(t, []string{"batches", "1", "log", "finish"}, called[2:])
	require.Equal(t, "finish", called[len(called)-1])
	b.recorded(key)
}

// What is too much for one request is sent before.
func TestMuchIsNotHandedInWithTheEnd(t *testing.T) {
	b := profiled(t, nil)
	b.gate.refuse(passed)
	b.gate.older = false
	key := b.command("seq 1 20000; echo said")
	_, err := b.run(key, 1)
	require.NoError(t, err)
	require.Equal(t, []string{"start", "log", "finish"}, b.gate.called())
	b.recorded(key)
}

// crowd is a source with so many series that the samples of half a second are too many for the end of a run.
type crowd struct{}

func (crowd) Name() string { return "a crowd" }

func (crowd) Collect(context.Context) (c profiler.Collected, _ error) {
	for i := range 500 {
		c.Values = append(c.Values, profiler.Value{Metric: profiler.CPUUsed, Device: fmt.Sprintf("cpu%d", i), Value: 1})
	}
	return c, nil
}

func (crowd) Close() error { return nil }

// Samples that are too many to go with the end are sent before it. Its summary goes with the end
// all the same, so that only samples are lost if the API does not take them in time.
func TestTheSummaryOfManySamplesGoesWithTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		away func(path string) bool
		lost bool
	}{
		"they arrive": {passed, false},
		"they do not": {profiles, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := profiled(t, nil)
			b.Profiling.Machine = func() []profiler.Collector { return []profiler.Collector{crowd{}} }
			b.gate.refuse(c.away)
			b.gate.older = false
			key := b.command("sleep 1.5; echo said")
			_, err := b.run(key, 1)
			require.NoError(t, err)
			called := b.gate.called()
			require.Equal(t, "batches", called[1])
			require.Equal(t, "finish", called[len(called)-1])
			profile, err := b.store.Profile(t.Context(), b.runs(key)[0].ID)
			require.NoError(t, err)
			require.Len(t, profile.Attempts, 1)
			attempt := profile.Attempts[0]
			require.NotNil(t, attempt.Summary)
			require.Equal(t, c.lost, attempt.Dropped > 0)
			require.Equal(t, c.lost, len(attempt.Series) == 0)
		})
	}
}

func TestAFailedCommandIsHandedInWithItsEnd(t *testing.T) {
	b := setup(t)
	key := b.command("echo said; exit 3")
	_, err := b.run(key, 1)
	b.fails(err, protocol.ErrTypeJobFailure, true, "exit status 3")
	require.Equal(t, []string{"start", "finish"}, b.gate.called())
	run := b.runs(key)[0]
	require.Equal(t, bench.RunFailure, run.Outcome)
	require.Contains(t, run.Message, "exit status 3")
	require.Contains(t, b.output(run.ID), "said\n")
	require.Contains(t, b.output(run.ID), "== run ended: ")
	errs, err := b.store.RunErrors(t.Context(), run.ID, 10)
	require.NoError(t, err)
	require.Len(t, errs, 1)
	require.Empty(t, b.spooled())
}

// While the API is away, the block is safe, and the next run delivers it first.
func TestACommandWhoseEndCannotBeToldIsNotLost(t *testing.T) {
	b := setup(t)
	key := b.command("echo said >>" + filepath.Join(b.root, "journal"))
	b.gate.refuse(func(path string) bool { return strings.HasSuffix(path, "/finish") })
	_, err := b.run(key, 1)
	b.fails(err, protocol.ErrTypeInfrastructure, false, "closing the run")
	require.Len(t, b.spooled(), 1)
	require.Zero(t, b.done(key))
	b.gate.refuse(nil)
	_, err = b.run(key, 2)
	require.NoError(t, err)
	require.Equal(t, 1, b.done(key))
	require.Equal(t, []string{"said"}, b.journal(), "it was not measured again")
	require.Empty(t, b.spooled())
}

// A block that the API refuses ends the run as if it had been sent by itself.
func TestARefusedBlockOfACommandIsKept(t *testing.T) {
	b := setup(t)
	key := b.command("echo said")
	refusals := 0
	b.gate.reply(func(path string) bool {
		if !uploads(path) && !(strings.HasSuffix(path, "/finish") && refusals == 0) {
			return false
		}
		refusals++
		return true
	}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(apiclient.HeaderAPI, "1")
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"type": "urn:benchloom:conflict", "status": 409, "detail": "not a test case of the job"}`)
	})
	_, err := b.run(key, 1)
	b.fails(err, protocol.ErrTypeInfrastructure, false, "not a test case of the job")
	require.Equal(t, 2, refusals)
	require.Equal(t, bench.RunLost, b.runs(key)[0].Outcome)
	require.Len(t, b.spooled(), 1)
}
