package api_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// announced lists the announcements that were tried.
func (w *workflows) announced() []protocol.RunStarted {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]protocol.RunStarted(nil), w.runs...)
}

func (w *workflows) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

// A run that goes on is announced to its job's workflow once. The collector's heartbeats
// repeat what failed, and what a process that has ended left out.
func TestARunThatGoesOnIsAnnounced(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	j := b.submit(t, "1.26.0")
	b.workflows.fail(errors.New("Temporal is away"))
	run := b.start(t, j, c, 1).Run
	b.wait()
	told := protocol.RunStarted{Run: run.ID, Number: 1, Collector: "c1"}
	require.Equal(t, []protocol.RunStarted{told}, b.workflows.announced())

	beat := func() {
		t.Helper()
		_, err := b.collector.Heartbeat(t.Context(), "c1", apiclient.Heartbeat{Epoch: c.Collector.Epoch, Run: run.ID})
		require.NoError(t, err)
		b.wait()
	}
	beat()
	require.Len(t, b.workflows.announced(), 2)
	b.workflows.fail(nil)
	beat()
	require.Equal(t, []protocol.RunStarted{told, told, told}, b.workflows.announced())

	// Its workflow knows of it now, whoever asks.
	beat()
	require.Equal(t, run.ID, b.start(t, j, c, 1).Run.ID)
	b.wait()
	require.Len(t, b.workflows.announced(), 3)
}

// A run that has ended before its announcement needs none.
func TestAShortRunIsNotAnnounced(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *api.Config) { c.AnnounceAfter = time.Hour })
	b.project(t)
	c := b.register(t, "c1")
	j := b.submit(t, "1.26.0")
	run := b.start(t, j, c, 1).Run.ID
	require.Equal(t, run, b.start(t, j, c, 1).Run.ID) // the answer was lost
	_, err := b.collector.Heartbeat(t.Context(), "c1", apiclient.Heartbeat{Epoch: c.Collector.Epoch, Run: run})
	require.NoError(t, err)
	require.NoError(t, b.collector.FinishRun(t.Context(), run, apiclient.RunFinish{Outcome: bench.RunSuccess}))
	b.wait()
	require.Empty(t, b.workflows.announced())
}
