package api_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

func TestTheOverviewShowsWhatHappens(t *testing.T) {
	t.Parallel()
	b := setup(t)
	empty := b.page(t, "", "/")
	empty.requireSound(t, "empty")
	require.Contains(t, empty.section("s-running"), "Nothing runs, because no request is in progress.")
	require.Contains(t, empty.section("s-attention"), "every pool with waiting jobs has a collector")
	require.Contains(t, empty.section("s-verdicts"), "benchloom project apply")
	b.project(t)
	c1 := b.register(t, "c1")
	j := b.submit(t, "1.26.0")
	b.start(t, j, c1, 1)
	p := b.page(t, "", "/")
	p.requireSound(t, "running")
	require.Contains(t, p.section("s-running"), "1 run")
	require.Contains(t, p.section("s-running"), "c1")
	require.Contains(t, p.links(), "/requests/"+string(j.request.ID))
	require.Contains(t, p.links(), "/jobs/"+string(j.key))
	require.Contains(t, p.links(), "http://127.0.0.1:8233")

	require.NoError(t, b.store.CompleteRequest(t.Context(), j.request.ID, bench.Success, "1.25.0", []byte(`{"line": "1 changed"}`), "done"))
	require.Contains(t, b.page(t, "", "/").section("s-verdicts"), "go 1.26.0 : ✓ success 1 changed against 1.25.0")
}

// What is wrong comes first, with since when and what helps.
func TestTheOverviewSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	b.register(t, "c1")
	j := b.submit(t, "1.26.0")
	overview, err := b.nobody.Overview(t.Context())
	require.NoError(t, err)
	require.Empty(t, overview.Attention, "a job waits, and its pool has a collector")

	// Its only collector is heard of no more, and a request was forgotten.
	b.past(t, `update collector_config set last_heartbeat = now() - interval '1 hour';
		update benchmark_request set workflow_started_at = null, created_at = now() - interval '2 hours'`)
	_, err = b.store.PauseQueue(t.Context(), apiclient.AdHocProject, store.Act{Who: "ada", Reason: "no more commands"})
	require.NoError(t, err)
	overview, err = b.nobody.Overview(t.Context())
	require.NoError(t, err)
	var kinds []apiclient.AttentionKind
	for _, a := range overview.Attention {
		kinds = append(kinds, a.Kind)
		require.NotEmpty(t, a.What)
		require.NotEmpty(t, a.Remedy)
		require.WithinRange(t, *a.Since, time.Now().Add(-3*time.Hour), time.Now().Add(time.Minute))
	}
	require.Equal(t, []apiclient.AttentionKind{apiclient.AttentionPool, apiclient.AttentionRequest, apiclient.AttentionPause}, kinds)
	p := b.page(t, "", "/")
	p.requireSound(t, "wrong")
	for _, want := range []string{
		"No live collector takes jobs from bench/x86_64-unknown-linux-gnu/2/main; waiting there: 1 job",
		"Request " + string(j.request.ID), "Its workflow was never started", "Paused by ada: no more commands",
	} {
		require.Contains(t, p.section("s-attention"), want)
	}
}
