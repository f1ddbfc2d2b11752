package api_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/profiler"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
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

func FuzzUploadProfile(f *testing.F) {
	w := newRolesWorld(f)
	run, _ := w.run()
	path := "/runs/" + string(run) + "/profile/"
	whole := samples("a1", sampled(cpuUsed, "a1", 0, 3), sampled(fetching, "a1", 0, 1))
	whole.Absent = []profiler.Absence{{Scope: profiler.ScopeJob, Metric: profiler.IOPressure, Reason: "version 1"}}
	uneven := samples("a1", sampled(freeOfIt, "a1", 1, 3))
	uneven.Batches[0].Times = uneven.Batches[0].Times[:1]
	fuzzJSON(f, w, "own", http.MethodPost, path+"batches", func(t *testing.T, _ string) {
		requireReadable(t, w, path+"series", path+"metrics")
	}, whole, uneven, lastOf("a1"))
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
	run := bench.NewRunID(j.key, "workflow", "activity", 1)
	dispatched := w.runStart(f, run, r)
	dispatched.Facts = json.RawMessage(`{"kernel":"6.1"}`)
	fuzzJSON(f, w, "own", http.MethodPost, "/runs/"+string(run)+"/start", func(t *testing.T, _ string) {
		requireReadable(t, w, "/jobs/"+string(j.key))
	}, dispatched, apiclient.RunStart{Reason: bench.Scheduled, Collector: "own", Epoch: r.Collector.Epoch, Facts: json.RawMessage(`{"kernel":"6.1"}`)},
		apiclient.RunStart{Reason: bench.Retry, Collector: "other", Epoch: 1})
}

func FuzzFinishRun(f *testing.F) {
	w := newRolesWorld(f)
	run, j := w.run()
	fuzzJSON(f, w, "own", http.MethodPost, "/runs/"+string(run)+"/finish", func(t *testing.T, _ string) {
		requireReadable(t, w, "/jobs/"+string(j.key))
	}, apiclient.RunFinish{Outcome: bench.RunSuccess, Seconds: 1.5, PeakMemory: 1 << 30, CPUSeconds: 1, Rest: restOf(j)}, apiclient.RunFinish{Outcome: bench.RunFailure, Message: "it failed", OutputTail: "\x1b]0;title\x07"})
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
	run := w.buildRun()
	require.Equal(f, http.StatusNoContent, w.send(f, "own", http.MethodPut, "/api/v1/runs/"+string(run)+"/build/chunks/0", "piece", "Content-Type", "application/octet-stream").status)
	fuzzJSON(f, w, "own", http.MethodPost, "/runs/"+string(run)+"/build/finish", nil,
		apiclient.BuildFinish{Size: 5, SHA256: sha256Hex("piece")}, apiclient.BuildFinish{Size: 1, SHA256: buildKey}, apiclient.BuildFinish{Size: 1 << 62})
}

func FuzzUploadBuildChunk(f *testing.F) {
	w := newRolesWorld(f)
	run := w.buildRun()
	for number, piece := range map[int64]string{0: "piece", 1: "\x1f\x8b", -1: "before", 1 << 40: "far", 2: ""} {
		f.Add(number, piece)
	}
	f.Fuzz(func(t *testing.T, number int64, piece string) {
		requireAnswer(t, w.send(t, "own", http.MethodPut, fmt.Sprintf("/api/v1/runs/%s/build/chunks/%d", run, number), piece, "Content-Type", "application/octet-stream"))
	})
}

func FuzzUploadRawProfile(f *testing.F) {
	w := newRolesWorld(f, withFiles(f))
	run, _ := w.profileRun()
	for _, file := range []string{"", perfOutput, "\x1f\x8b", "\x00\xff"} {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file string) {
		requireAnswer(t, w.send(t, "own", http.MethodPut, "/api/v1/runs/"+string(run)+"/code-profile/raw", file, "Content-Type", "application/octet-stream"))
	})
}

// Whatever was stored first is what stays, so it is read after each attempt.
func FuzzUploadCodeProfile(f *testing.F) {
	w := newRolesWorld(f, withFiles(f))
	run, _ := w.profileRun()
	raw, err := w.client(f, "own").StoreRawProfile(f.Context(), run, int64(len(perfOutput)), strings.NewReader(perfOutput))
	require.NoError(f, err)
	whole := string(spent(f, 2))
	f.Add(raw.Digest, "pprof", whole[:len(whole)/2])
	f.Add(raw.Digest, "vtune", whole)
	f.Add(strings.Repeat("0", 64), "pprof", whole)
	f.Add("../../etc/passwd", "pprof", whole)
	f.Add(raw.Digest, "perf-script", "")
	f.Add(raw.Digest, "perf-script", whole)
	profile := "/profiles/" + string(bench.ProfileIDOf(run))
	f.Fuzz(func(t *testing.T, digest, format, body string) {
		query := url.Values{"raw": {digest}, "format": {format}}.Encode()
		requireAnswer(t, w.send(t, "own", http.MethodPut, "/api/v1/runs/"+string(run)+"/code-profile?"+query, body, "Content-Type", "application/octet-stream"))
		for _, path := range []string{profile, profile + "/functions", profile + "/file?form=html"} {
			requireAnswer(t, w.send(t, api.RoleReader, http.MethodGet, "/api/v1"+path, ""))
		}
	})
}

func FuzzUploadRunFile(f *testing.F) {
	w := newRolesWorld(f, withFiles(f))
	run := w.keepingRun()
	for _, path := range []string{"out/report.html", "../x", "/etc/passwd", "a\x00b", "ä ö", "a//b", strings.Repeat("x", 501), ""} {
		f.Add(path, "text")
	}
	f.Fuzz(func(t *testing.T, path, body string) {
		query := url.Values{"path": {path}}.Encode()
		requireAnswer(t, w.send(t, "own", http.MethodPut, "/api/v1/runs/"+string(run)+"/files?"+query, body, "Content-Type", "application/octet-stream"))
		requireAnswer(t, w.send(t, api.RoleReader, http.MethodGet, "/api/v1/runs/"+string(run)+"/files/content?"+query, ""))
		requireReadable(t, w, "/runs/"+string(run)+"/files")
	})
}

func FuzzPutOwnToken(f *testing.F) {
	w := newRolesWorld(f)
	fuzzJSON(f, w, "shared", http.MethodPut, "/collectors/own-token", func(t *testing.T, _ string) {
		requireReadable(t, w, "/collectors")
	}, apiclient.OwnToken{Name: "uninvited", SecretHash: strings.Repeat("0", 64), Machines: []string{"machine"}}, apiclient.OwnToken{Name: "own", SecretHash: sha256Hex("own")})
}

// buildRun is one of a build that the collector own has begun.
func (w *rolesWorld) buildRun() bench.RunID {
	r, err := w.writer.CreateRequest(w.t.Context(), apiclient.NewRequest{Project: "go", Tag: w.tag()})
	require.NoError(w.t, err)
	w.admit(w.t, r.ID)
	recipe := bench.BuildRecipe{Repository: "/srv/repo", Command: []string{"make"}, Output: ".", TimeoutSeconds: 60}
	spec, err := recipe.Spec("go", r.Tag, linux, strings.Repeat("c", 40), strings.Repeat("a", 40))
	require.NoError(w.t, err)
	require.NoError(w.t, w.store.SetBuildRevision(w.t.Context(), "go", recipe.Hash(linux), spec))
	pool := bench.Pool{Target: linux, SizeClass: 2, Name: "main"}
	key := bench.JobIdentity{Project: "go", Kind: bench.KindBuild, Suite: string(spec.Key)}.Key()
	require.NoError(w.t, w.store.ExpandRequest(w.t.Context(), r.ID, store.Expansion{Stage: bench.StageBuild, Jobs: storetest.Planned(bench.Job{
		Project: "go", Key: key,
		Work:     bench.Work{Tag: r.Tag, Kind: bench.KindBuild, Target: linux, Build: &spec, TestCases: []bench.TestCase{}},
		Location: bench.Location{SizeClass: 2, Pool: "main", TaskQueue: pool.TaskQueue()},
		Turn:     bench.Turn{Queue: "project:go", Weight: 1, Priority: 3, RequestCreated: r.CreatedAt},
		JobState: bench.JobState{Status: bench.JobQueued},
	})}))
	_, err = w.store.HandOut(w.t.Context(), pool.TaskQueue(), store.HandOutOptions{Depth: func(int) int { return 100 }})
	require.NoError(w.t, err)
	return w.start(w.t, job{request: r, key: key}, w.registered(), 1).Run.ID
}

// fuzzed names the target of each operation with which collectors send something.
var fuzzed = map[string]func(*testing.F){
	"append-run-log": FuzzAppendLog, "enroll-collector": FuzzEnrollCollector, "finish-build": FuzzFinishBuild, "finish-run": FuzzFinishRun,
	"heartbeat": FuzzHeartbeat, "put-own-token": FuzzPutOwnToken, "register-collector": FuzzRegisterCollector, "start-run": FuzzStartRun,
	"upload-block": FuzzUploadBlock, "upload-build-chunk": FuzzUploadBuildChunk, "upload-profile": FuzzUploadProfile,
	"upload-raw-profile": FuzzUploadRawProfile, "upload-code-profile": FuzzUploadCodeProfile,
	"upload-run-file": FuzzUploadRunFile,
}

func TestEveryBodyOfCollectorsHasAFuzzTarget(t *testing.T) {
	t.Parallel()
	for _, op := range operations(t, setup(t)) {
		if op.method != http.MethodGet && strings.HasPrefix(op.role, "collector") {
			require.Contains(t, fuzzed, op.id)
		}
	}
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
