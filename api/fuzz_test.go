package api_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// What a collector sends never costs more than an answer: no panic, no internal error,
// and every refusal is a problem that says what is wrong. The API has a real record, so
// that what it accepts also has to fit there.

// fuzzJSON sends bodies as a caller. accepted looks at what was taken; nil: nothing does.
func fuzzJSON(f *testing.F, w *rolesWorld, who, method, path string, accepted func(t *testing.T, body string), seeds ...any) {
	f.Helper()
	for _, s := range seeds {
		text, err := json.Marshal(s)
		require.NoError(f, err)
		f.Add(string(text))
	}
	for _, s := range []string{"", "{}", "null", "[]", `{"a":1,"a":2}`, "{\"\xff\":0}", "\x00", `"\ud800"`, strings.Repeat("[", 1000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := w.send(t, who, method, "/api/v1"+path, text, "Content-Type", "application/json")
		requireAnswer(t, got)
		if got.status < 300 && accepted != nil {
			accepted(t, got.body)
		}
	})
}

// requireAnswer accepts a success and a refusal, but no failure.
func requireAnswer(t *testing.T, got reply) {
	t.Helper()
	require.Less(t, got.status, 500, got.body)
	if got.status >= 400 {
		got.problem(t)
	}
}

// requireReadable reads back what the record took.
func requireReadable(t *testing.T, w *rolesWorld, paths ...string) {
	t.Helper()
	for _, path := range paths {
		got := w.send(t, api.RoleAdmin, http.MethodGet, "/api/v1"+path, "")
		require.Equal(t, http.StatusOK, got.status, "%s: %s", path, got.body)
	}
}

func FuzzUploadBlock(f *testing.F) {
	w := newRolesWorld(f)
	run, j := w.run()
	whole := block(j.cases, 1)
	odd := whole
	odd.Errors = []apiclient.BlockError{{TestCase: &j.cases[0], Kind: bench.FailJob, Message: "it failed", OutputTail: "\x1b[31m"}, {Kind: bench.FailOutOfMemory}}
	skipped := apiclient.Block{Results: []apiclient.TestCaseResult{{TestCase: j.cases[0], Skipped: "not here"}}}
	fuzzJSON(f, w, "own", http.MethodPost, "/runs/"+string(run)+"/blocks/1", func(t *testing.T, _ string) {
		requireReadable(t, w, "/results/export?project=go", "/requests/"+string(j.request.ID))
	}, whole, odd, skipped)
}

func FuzzUploadZippedBlock(f *testing.F) {
	w := newRolesWorld(f)
	run, j := w.run()
	text, err := json.Marshal(block(j.cases, 1))
	require.NoError(f, err)
	for _, s := range []string{string(text), "{}", strings.Repeat(" ", 1<<20)} {
		var zipped bytes.Buffer
		z := gzip.NewWriter(&zipped)
		_, err := z.Write([]byte(s))
		require.NoError(f, err)
		require.NoError(f, z.Close())
		f.Add(zipped.String())
		f.Add(zipped.String()[:zipped.Len()/2])
	}
	f.Fuzz(func(t *testing.T, body string) {
		requireAnswer(t, w.send(t, "own", http.MethodPost, "/api/v1/runs/"+string(run)+"/blocks/1", body, "Content-Type", "application/json", "Content-Encoding", "gzip"))
	})
}

func FuzzStartRun(f *testing.F) {
	w := newRolesWorld(f)
	j := w.submit(f, w.tag())
	r := w.registered()
	fuzzJSON(f, w, "own", http.MethodPost, "/runs/"+string(bench.NewRunID(j.key, "workflow", "activity", 1))+"/start", func(t *testing.T, _ string) {
		requireReadable(t, w, "/jobs/"+string(j.key))
	}, apiclient.RunStart{Reason: bench.Scheduled, Collector: "own", Epoch: r.Collector.Epoch, Facts: json.RawMessage(`{"kernel":"6.1"}`)},
		apiclient.RunStart{Reason: bench.Retry, Collector: "other", Epoch: 1})
}

func FuzzFinishRun(f *testing.F) {
	w := newRolesWorld(f)
	run, j := w.run()
	fuzzJSON(f, w, "own", http.MethodPost, "/runs/"+string(run)+"/finish", func(t *testing.T, _ string) {
		requireReadable(t, w, "/jobs/"+string(j.key))
	}, apiclient.RunFinish{Outcome: bench.RunSuccess, Seconds: 1.5, PeakMemory: 1 << 30, CPUSeconds: 1}, apiclient.RunFinish{Outcome: bench.RunFailure, Message: "it failed", OutputTail: "\x1b]0;title\x07"})
}

func FuzzHeartbeat(f *testing.F) {
	w := newRolesWorld(f)
	run, _ := w.run()
	r := w.registered()
	quiet, dirs := "", []string{"go", "go/mod"}
	fuzzJSON(f, w, "own", http.MethodPost, "/collectors/own/heartbeat", func(t *testing.T, _ string) {
		requireReadable(t, w, "/collectors/own", "/shares")
	}, apiclient.Heartbeat{Epoch: r.Collector.Epoch, Run: run, CountWaiting: true, AskWaits: true, Disturbed: &quiet, CacheDirs: &dirs},
		apiclient.Heartbeat{Epoch: r.Collector.Epoch, Run: run, Progress: apiclient.RunProgress{Phase: "measuring"}})
}

func FuzzRegisterCollector(f *testing.F) {
	w := newRolesWorld(f)
	fuzzJSON(f, w, "own", http.MethodPost, "/collectors/register", func(t *testing.T, _ string) {
		requireReadable(t, w, "/collectors/own", "/queues")
	}, unnamed("own"), registration("own"), registration("other"))
}

func FuzzEnrollCollector(f *testing.F) {
	w := newRolesWorld(f)
	invited, err := w.admin.InviteCollector(f.Context(), invite("third"))
	require.NoError(f, err)
	fuzzJSON(f, w, "", http.MethodPost, "/collectors/enroll", func(t *testing.T, body string) {
		require.NotContains(t, body, invited.Token)
	}, apiclient.Enrolment{Token: invited.Token, SecretHash: sha256Hex("own"), Host: linux}, apiclient.Enrolment{Token: "ble_guessed", SecretHash: strings.Repeat("0", 64)})
}

func FuzzFinishBuild(f *testing.F) {
	w := newRolesWorld(f)
	run, _ := w.run()
	fuzzJSON(f, w, "own", http.MethodPost, "/runs/"+string(run)+"/build/finish", nil, apiclient.BuildFinish{Size: 1, SHA256: buildKey}, apiclient.BuildFinish{Size: 1 << 62})
}

func FuzzAppendLog(f *testing.F) {
	w := newRolesWorld(f)
	run, _ := w.run()
	for offset, text := range map[int64]string{0: "== begins\n", 1 << 62: "far", -1: "before", 3: "\x1b[2J\xff\x00"} {
		f.Add(offset, text)
	}
	f.Fuzz(func(t *testing.T, offset int64, text string) {
		got := w.send(t, "own", http.MethodPost, fmt.Sprintf("/api/v1/runs/%s/log?offset=%d", run, offset), text, "Content-Type", "application/octet-stream")
		requireAnswer(t, got)
		requireReadable(t, w, "/runs/"+string(run)+"/log")
	})
}

// Only the token itself opens something, however the header is written.
func FuzzAuthorization(f *testing.F) {
	w := newRolesWorld(f)
	admin := w.tokens[api.RoleAdmin]
	for _, header := range []string{"Bearer " + admin, "bearer " + admin, "Bearer  " + admin, admin, "Basic " + admin, "Bearer " + admin + "=", "Bearer " + w.tokens["expired"], "Bearer " + w.tokens["own"], "Bearer blm_", ""} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		// The handler itself: a client would refuse most of these headers.
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/tokens", nil)
		request.Host = strings.TrimPrefix(w.server.URL, "http://")
		request.Header["Authorization"] = []string{header}
		answer := httptest.NewRecorder()
		w.server.Config.Handler.ServeHTTP(answer, request)
		scheme, secret, _ := strings.Cut(header, " ")
		if strings.EqualFold(scheme, "Bearer") && secret == admin {
			require.Equal(t, http.StatusOK, answer.Code)
			return
		}
		require.Contains(t, []int{http.StatusUnauthorized, http.StatusForbidden}, answer.Code, "%q", header)
		require.NotContains(t, answer.Body.String(), "blm_unknown", "no secret is echoed")
	})
}

func FuzzApplyProject(f *testing.F) {
	w := newRolesWorld(f)
	fuzzJSON(f, w, api.RoleAdmin, http.MethodPut, "/projects/go", func(t *testing.T, _ string) {
		requireReadable(t, w, "/projects/go", "/projects", "/audit")
	}, apiclient.Project{Name: "go", SuiteHash: w.suite, Config: bench.ProjectConfig{Description: "A project", Targets: []bench.Target{linux}}})
}

func FuzzCreateRequest(f *testing.F) {
	w := newRolesWorld(f)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	fuzzJSON(f, w, api.RoleWriter, http.MethodPost, "/requests", func(t *testing.T, _ string) {
		requireReadable(t, w, "/requests", "/projects/go/queue")
	}, apiclient.NewRequest{Project: "go", Tag: "1.0"}, apiclient.NewRequest{Project: "go", Type: bench.Try, PR: 1, Tag: "t", Parent: "p", CommitDate: &at},
		apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"true"}, TimeoutSeconds: 1}, PlacementWish: apiclient.PlacementWish{Target: linux}},
		apiclient.NewRequest{Project: "go", Type: bench.AdHoc, Tag: "1", Versus: "2", Selection: bench.Selection{Benchmarks: []string{"gin"}, Iterations: 3}})
}
