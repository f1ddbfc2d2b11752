package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// attempts are requests about another collector's work, by operation: each is complete,
// so that nothing but whose work it is can be wrong with it. %s is the other's run.
var attempts = map[string]string{
	"register-collector": `{"name": "c1", "target": "x86_64-unknown-linux-gnu", "size_class": 2, "pool": "main", "machine_id": "machine-of-c1", "version": "v0.1.0", "hardware_id": "cpu0", "facts": {}, "co_located": false}`,
	"heartbeat":          `{"epoch": 1}`,
	"start-run":          `{"reason": "scheduled", "collector": "c2", "epoch": 1}`,
	"upload-profile":     `{"attempt": "a1", "host": "m1", "batches": []}`,
	"upload-block":       `{"results": []}`,
	"append-run-log":     "planted",
	"finish-run":         `{"outcome": "success"}`,
	"upload-build-chunk": "planted",
	"finish-build":       `{"size": 7, "sha256": "` + strings.Repeat("0", 64) + `"}`,
	"get-build-chunk":    "",
	// Neither is a profile, nor is the run one of a profile job: whose it is comes first.
	"upload-raw-profile":  "planted",
	"upload-run-file":     "planted",
	"upload-code-profile": "planted",
}

// Every operation for collectors refuses another's token in the same way, and an
// operation that is added needs an attempt here.
func TestEveryOperationOfCollectorsRefusesAnothersToken(t *testing.T) {
	t.Parallel()
	b := setup(t, invitedOnly)
	b.project(t)
	own := b.enrol(t, "c1")
	b.enrol(t, "c2")
	r, err := own.RegisterCollector(t.Context(), unnamed("c1"))
	require.NoError(t, err)
	run := bench.NewRunID(b.submit(t, "1.26.0").key, "workflow", "activity", 1)
	_, err = own.StartRun(t.Context(), run, b.runStart(t, run, r))
	require.NoError(t, err)
	b.wait() // until it is announced
	before, err := b.store.Run(t.Context(), run)
	require.NoError(t, err)

	var d document
	require.NoError(t, json.Unmarshal([]byte(b.send(t, "", http.MethodGet, "/openapi.json", "").body), &d))
	var tried []string
	for path, operations := range d.Paths {
		for method, op := range operations {
			if !strings.Contains(op.Description, "Needs a token with the role collector.") {
				continue
			}
			body, ok := attempts[op.OperationID]
			require.True(t, ok, "%s has no attempt", op.OperationID)
			tried = append(tried, op.OperationID)
			address := strings.NewReplacer("{run}", string(run), "{collector}", "c1", "{number}", "1", "{key}", strings.Repeat("0", 64)).Replace(path)
			var headers []string
			if !strings.HasPrefix(body, "{") {
				headers = []string{"Content-Type", "application/octet-stream"}
			}
			switch op.OperationID {
			case "append-run-log":
				address += "?offset=0"
			case "upload-run-file":
				address += "?path=report"
			case "upload-code-profile":
				address += "?format=pprof&raw=" + strings.Repeat("0", 64)
			}
			answer := b.send(t, "c2", strings.ToUpper(method), address, body, headers...)
			require.Equal(t, http.StatusForbidden, answer.status, "%s: %s", op.OperationID, answer.body)
			require.Equal(t, "urn:benchloom:not-yours", answer.problem(t).Type, op.OperationID)
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(attempts)), tried)
	after, err := b.store.Run(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// A heartbeat tells of the caller's own run, and a start is the caller's own.
func TestBodiesMayNotNameAnothersWork(t *testing.T) {
	t.Parallel()
	b := setup(t, invitedOnly)
	b.project(t)
	own, others := b.enrol(t, "c1"), b.enrol(t, "c2")
	r, err := own.RegisterCollector(t.Context(), unnamed("c1"))
	require.NoError(t, err)
	theirs, err := others.RegisterCollector(t.Context(), unnamed("c2"))
	require.NoError(t, err)
	run := bench.NewRunID(b.submit(t, "1.26.0").key, "workflow", "activity", 1)
	start := b.runStart(t, run, r)
	_, err = others.StartRun(t.Context(), run, start)
	require.Equal(t, "urn:benchloom:not-yours", problemOf(t, err).Type)
	_, err = own.StartRun(t.Context(), run, start)
	require.NoError(t, err)

	beat := apiclient.Heartbeat{Epoch: theirs.Collector.Epoch, Run: run, Progress: apiclient.RunProgress{Phase: "forged"}}
	_, err = others.Heartbeat(t.Context(), "c2", beat)
	require.Equal(t, "urn:benchloom:not-yours", problemOf(t, err).Type)
	detail, err := b.nobody.Collector(t.Context(), "c2")
	require.NoError(t, err)
	require.Empty(t, detail.CurrentRun)
	beat.Run = bench.NewRunID(run.Job(), "workflow", "activity", 2) // one that has not begun
	_, err = others.Heartbeat(t.Context(), "c2", beat)
	require.NoError(t, err)
}

// The fence refuses with types of their own what was dispatched again, and what waits
// elsewhere; the secret is in no answer and no log.
func TestTheFenceRefusesWhatTheTaskIsNotFor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	c := b.register(t, "c1")
	id := bench.NewRunID(b.submit(t, "1.26.0").key, "workflow", "activity", 1)
	start := b.runStart(t, id, c)
	for want, change := range map[error]func(*apiclient.RunStart){
		apiclient.ErrStaleDispatch: func(s *apiclient.RunStart) { s.Dispatch = "" },
		apiclient.ErrElsewhere:     func(s *apiclient.RunStart) { s.TaskQueue = "bench/elsewhere" },
	} {
		wrong := start
		change(&wrong)
		_, err := b.collector.StartRun(t.Context(), id, wrong)
		require.ErrorIs(t, err, want)
		require.False(t, apiclient.IsTransient(err))
	}
	_, err := b.collector.StartRun(t.Context(), id, start)
	require.NoError(t, err)

	for _, path := range []string{"jobs/" + string(id.Job()), "collectors/c1"} {
		answer := b.send(t, "reader", http.MethodGet, "/api/v1/"+path, "")
		require.Equal(t, http.StatusOK, answer.status, path)
		require.NotContains(t, answer.body, string(start.Dispatch), path)
	}
	require.NotContains(t, b.log.String(), string(start.Dispatch))
	require.NotEmpty(t, fmt.Sprint(start.Dispatch))
}
