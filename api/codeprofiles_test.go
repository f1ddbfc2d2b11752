package api_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/blobs"
	"github.com/benchloom/benchloom/internal/flame"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

var ginFull = bench.TestCase{Benchmark: "gin", Profile: "build", Scenario: "full", Backend: "gc", Target: linux}

// withFiles gives the API a blob store in a directory.
func withFiles(t testing.TB) func(*api.Config) {
	t.Helper()
	files, err := blobs.OpenDirectory(t.Context(), t.TempDir(), 1<<30)
	require.NoError(t, err)
	return func(c *api.Config) { c.Blobs = files }
}

// profileOfGin asks for a profile of gin; what it does not name is of the suite.
func profileOfGin(profiler string) apiclient.NewRequest {
	return apiclient.NewRequest{
		Project: "go", Tag: "1.26.0", Profiler: profiler, IdempotencyKey: "one",
		Selection: bench.Selection{Benchmarks: []string{"gin"}, Scenarios: []string{"full"}, Targets: []bench.Target{linux}},
	}
}

// profileRun is one of a profile job that the collector own has begun.
func (w *rolesWorld) profileRun() (bench.RunID, bench.JobKey) {
	w.t.Helper()
	project, err := w.writer.Project(w.t.Context(), "go")
	require.NoError(w.t, err)
	request, err := bench.NewProfileRequest("go", w.tag(), bench.Scope{Selection: bench.Selection{Benchmarks: []string{"gin"}}, Profiler: "perf"}, bench.Submission{Submitter: "wanda"})
	require.NoError(w.t, err)
	request.ID = bench.RequestID("r-profile-" + request.Tag)
	request, _, err = w.store.CreateRequest(w.t.Context(), request)
	require.NoError(w.t, err)
	w.admit(w.t, request.ID)
	made, err := bench.NewProfileJob("go", request.Tag, project.SuiteHash, ginFull, "perf")
	require.NoError(w.t, err)
	pool := bench.Pool{Target: linux, SizeClass: 2, Name: "main"}
	made.Key = bench.JobIdentity{Request: request.ID, Project: "go", Tag: made.Tag, Kind: made.Kind, TestCases: made.TestCases, Profiler: made.Profiler}.Key()
	made.Location = bench.Location{SizeClass: 2, Pool: "main", TaskQueue: pool.TaskQueue()}
	made.Turn = bench.Turn{Queue: "project:go", Weight: 1, Priority: 3, RequestCreated: request.CreatedAt}
	made.JobState = bench.JobState{Status: bench.JobQueued}
	require.NoError(w.t, w.store.ExpandRequest(w.t.Context(), request.ID, store.Expansion{Stage: bench.StageOwn, Jobs: storetest.Planned(made)}))
	_, err = w.store.HandOut(w.t.Context(), pool.TaskQueue(), store.HandOutOptions{Depth: func(int) int { return 100 }})
	require.NoError(w.t, err)
	plan := w.start(w.t, job{key: made.Key}, w.registered(), 1)
	require.Equal(w.t, "perf", plan.Job.Profiler, "its collector is told what to run")
	return plan.Run.ID, made.Key
}

// spent is a profile in which the function hot takes so many of 10 ms of CPU time.
func spent(t testing.TB, hot int64) []byte {
	t.Helper()
	var functions []*profile.Function
	var locations []*profile.Location
	for i, name := range []string{"main.main", "main.hot", "main.cold"} {
		functions = append(functions, &profile.Function{ID: uint64(i + 1), Name: name, SystemName: name, Filename: "main.go"})
		locations = append(locations, &profile.Location{ID: uint64(i + 1), Line: []profile.Line{{Function: functions[i], Line: 1}}})
	}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}, DefaultSampleType: "cpu",
		Function: functions, Location: locations,
		Sample: []*profile.Sample{
			{Location: []*profile.Location{locations[1], locations[0]}, Value: []int64{hot, hot * 1_000_000}},
			{Location: []*profile.Location{locations[2], locations[0]}, Value: []int64{10 - hot, (10 - hot) * 1_000_000}},
		},
	}
	var out bytes.Buffer
	require.NoError(t, p.Write(&out))
	return out.Bytes()
}

const perfOutput = "what perf has recorded"

// deliver uploads both files of a run as the collector own.
func (w *rolesWorld) deliver(t testing.TB, run bench.RunID, hot int64) apiclient.CodeProfile {
	t.Helper()
	own := w.client(t, "own")
	raw, err := own.StoreRawProfile(t.Context(), run, int64(len(perfOutput)), strings.NewReader(perfOutput))
	require.NoError(t, err)
	p, err := own.StoreCodeProfile(t.Context(), run, apiclient.NewCodeProfile{Raw: raw.Digest, Format: flame.PerfScript}, spent(t, hot))
	require.NoError(t, err)
	return p
}

func TestAProfileIsAskedForOnlyWhereItsProfilerExists(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	b.register(t, "c1")
	_, err := b.writer.CreateRequest(t.Context(), profileOfGin("perf"))
	p := problemOf(t, err)
	require.Equal(t, "urn:benchloom:no-program", p.Type)
	require.Contains(t, p.Detail, "install the package linux-perf")

	withPerf := registration("c1")
	withPerf.Devices = []string{"program:perf", "program:valgrind"}
	_, err = b.collector.RegisterCollector(t.Context(), withPerf)
	require.NoError(t, err)
	r, err := b.writer.CreateRequest(t.Context(), profileOfGin("perf"))
	require.NoError(t, err)
	require.Equal(t, []any{bench.AdHoc, "perf", true}, []any{r.Type, r.Profiler, r.Created})
	again, err := b.writer.CreateRequest(t.Context(), profileOfGin("perf"))
	require.NoError(t, err)
	require.Equal(t, []any{r.ID, false}, []any{again.ID, again.Created})
	_, err = b.writer.CreateRequest(t.Context(), profileOfGin("callgrind"))
	require.Contains(t, problemOf(t, err).Detail, "another profiler")

	for want, change := range map[string]func(*apiclient.NewRequest){
		"a release request measures; use type adhoc to profile": func(r *apiclient.NewRequest) { r.Type = bench.Release },
		"a profile is of one test case":                         func(r *apiclient.NewRequest) { r.Selection.Benchmarks = nil },
		"the selection holds 2 test cases":                      func(r *apiclient.NewRequest) { r.Selection.Scenarios = nil },
		`unknown profiler "vtune"`:                              func(r *apiclient.NewRequest) { r.Profiler = "vtune" },
		"an artifact cannot be compared with itself":            func(r *apiclient.NewRequest) { r.Versus = r.Tag },
		"only test cases of a suite are profiled; leave profiler out": func(r *apiclient.NewRequest) {
			*r = apiclient.NewRequest{Project: "go", Profiler: "perf", Command: &apiclient.Command{Argv: []string{"true"}}}
		},
	} {
		wrong := profileOfGin("perf")
		wrong.IdempotencyKey = ""
		change(&wrong)
		_, err := b.writer.CreateRequest(t.Context(), wrong)
		got := problemOf(t, err)
		require.Equal(t, http.StatusUnprocessableEntity, got.Status, want)
		require.Contains(t, got.Detail, want)
	}
}

func TestAProfileIsDeliveredAndRead(t *testing.T) {
	t.Parallel()
	w := newRolesWorld(t, withFiles(t))
	run, key := w.profileRun()
	p := w.deliver(t, run, 2)
	require.Equal(t, bench.ProfileIDOf(run), p.ID)
	require.Equal(t, []any{"go", key, run, "perf", "perf-script", "own", ginFull}, []any{p.Project, p.Job, p.Run, p.Profiler, p.Format, p.Collector, p.TestCase})
	require.Equal(t, []bench.SampleTotal{{Type: "samples", Unit: "count", Total: 10}, {Type: "cpu", Unit: "nanoseconds", Total: 10_000_000}}, p.SampleTypes)
	require.EqualValues(t, len(perfOutput), p.RawSize)
	require.Equal(t, p, w.deliver(t, run, 2), "a repetition changes nothing")

	read, err := w.reader.CodeProfile(t.Context(), p.ID)
	require.NoError(t, err)
	require.Equal(t, p, read)
	listed, err := w.reader.CodeProfiles(t.Context(), "go", apiclient.CodeProfileQuery{Run: run, Job: key, Request: p.Request, Tag: p.Tag, Benchmark: "gin", Limit: 5})
	require.NoError(t, err)
	require.Equal(t, []apiclient.CodeProfile{p}, listed)
	listed, err = w.reader.CodeProfiles(t.Context(), "go", apiclient.CodeProfileQuery{Benchmark: "kit"})
	require.NoError(t, err)
	require.Empty(t, listed)

	for form, want := range map[apiclient.ProfileForm]string{
		apiclient.FormRaw: perfOutput, apiclient.FormFolded: "main.main;main.hot 2000000", apiclient.FormSpeedscope: "main.hot", apiclient.FormHTML: "<svg",
	} {
		var file bytes.Buffer
		require.NoError(t, w.reader.CodeProfileFile(t.Context(), p.ID, form, "", &file))
		require.Contains(t, file.String(), want, form)
	}
	page := w.send(t, api.RoleReader, http.MethodGet, "/api/v1/profiles/"+string(p.ID)+"/file?form=html", "")
	require.Contains(t, page.header.Get("Content-Disposition"), "attachment", "what collectors name is not shown as a page of the service")
	var packed bytes.Buffer
	require.NoError(t, w.reader.CodeProfileFile(t.Context(), p.ID, apiclient.FormPprof, "", &packed))
	_, err = flame.Parse(flame.Pprof, &packed)
	require.NoError(t, err)

	table, err := w.reader.CodeProfileFunctions(t.Context(), p.ID, "samples")
	require.NoError(t, err)
	require.Equal(t, []any{"main.cold", int64(8)}, []any{table.Functions[0].Name, table.Functions[0].Self})
	_, err = w.reader.CodeProfileFunctions(t.Context(), p.ID, "heap")
	require.Contains(t, problemOf(t, err).Detail, "use samples, cpu")

	require.NoError(t, w.collector.FinishRun(t.Context(), run, apiclient.RunFinish{Outcome: bench.RunSuccess}))
	slower, _ := w.profileRun()
	b := w.deliver(t, slower, 7)
	d, err := w.reader.CodeProfileDifference(t.Context(), p.ID, b.ID, "")
	require.NoError(t, err)
	require.Subset(t, []string{"main.cold", "main.hot"}, []string{d.Functions[0].Name, d.Functions[1].Name}, "what changed most comes first")
	require.InDelta(t, .5, math.Abs(d.Functions[0].SelfShareB-d.Functions[0].SelfShareA), 1e-9)
	drawn := w.send(t, api.RoleReader, http.MethodGet, "/api/v1/profiles/diff?form=html&a="+string(p.ID)+"&b="+string(b.ID), "")
	require.Equal(t, http.StatusOK, drawn.status)
	require.Contains(t, drawn.body, "main.hot")
	graph, err := w.reader.CodeProfileFlames(t.Context(), b.ID, apiclient.FlameQuery{Search: "HOT"})
	require.NoError(t, err)
	require.Equal(t, []any{"cpu", []string{"samples", "cpu"}, int64(10_000_000), int64(7_000_000)}, []any{graph.Graph.Type, graph.Types, graph.Graph.Sum, graph.Matched})
	require.Equal(t, "main.hot", graph.Functions.Functions[0].Name)
	require.Nil(t, graph.Changes)
	require.Len(t, graph.Graph.Boxes, 4)
	hot := graph.Graph.Boxes[3]
	require.Equal(t, "main.hot", hot.Name)
	require.InDelta(t, .7, hot.Width, 1e-9)
	graph, err = w.reader.CodeProfileDifferenceFlames(t.Context(), p.ID, b.ID, apiclient.FlameQuery{Type: "samples", At: hot.ID, Boxes: 5})
	require.NoError(t, err)
	require.Equal(t, hot.ID, graph.Graph.At, "a frame has the same ID in every profile")
	require.True(t, graph.Graph.IsDifference)
	require.Equal(t, flame.Box{Name: "main.hot", File: "main.go", ID: hot.ID, Self: 7, Total: 7, BeforeSelf: 2, BeforeTotal: 2, Depth: 2, Width: 1}, graph.Graph.Boxes[2])
	require.Len(t, graph.Changes.Functions, 3)
	_, err = w.reader.CodeProfileDifferenceFlames(t.Context(), p.ID, b.ID, apiclient.FlameQuery{Type: "heap"})
	require.Contains(t, problemOf(t, err).Detail, "use samples, cpu")
	_, err = w.reader.CodeProfile(t.Context(), "paaaaaaaaaa")
	require.Equal(t, "urn:benchloom:unknown-profile", problemOf(t, err).Type)
}

func TestAProfileIsAcceptedFromItsOpenRunOnly(t *testing.T) {
	t.Parallel()
	w := newRolesWorld(t, withFiles(t))
	run, _ := w.profileRun()
	for _, who := range []string{"other", api.RoleWriter, api.RoleAdmin} {
		_, err := w.client(t, who).StoreRawProfile(t.Context(), run, 3, strings.NewReader("raw"))
		require.Equal(t, http.StatusForbidden, problemOf(t, err).Status, who)
		_, err = w.client(t, who).StoreCodeProfile(t.Context(), run, apiclient.NewCodeProfile{Raw: strings.Repeat("0", 64), Format: flame.Pprof}, spent(t, 1))
		require.Equal(t, http.StatusForbidden, problemOf(t, err).Status, who)
	}
	own := w.client(t, "own")
	unknown := bench.RunID("aaaaaaaaaaaaaaaa-00000000")
	_, err := own.StoreRawProfile(t.Context(), unknown, 3, strings.NewReader("raw"))
	require.Equal(t, http.StatusNotFound, problemOf(t, err).Status)

	raw, err := own.StoreRawProfile(t.Context(), run, 3, strings.NewReader("raw"))
	require.NoError(t, err)
	for want, upload := range map[string]struct{ raw, body string }{
		"the body is no profile":      {raw.Digest, "no profile at all"},
		"is not stored; upload it":    {strings.Repeat("0", 64), string(spent(t, 1))},
		"raw: a digest has 64 digits": {"../../etc/passwd", string(spent(t, 1))},
	} {
		_, err := own.StoreCodeProfile(t.Context(), run, apiclient.NewCodeProfile{Raw: upload.raw, Format: flame.Pprof}, []byte(upload.body))
		p := problemOf(t, err)
		require.Equal(t, http.StatusUnprocessableEntity, p.Status, want)
		require.Contains(t, p.Detail, want)
	}
	_, err = own.StoreRawProfile(t.Context(), run, apiclient.MaxRawProfile+1, &zeros{left: apiclient.MaxRawProfile + 1})
	require.Equal(t, http.StatusRequestEntityTooLarge, problemOf(t, err).Status)

	require.NoError(t, w.collector.FinishRun(t.Context(), run, apiclient.RunFinish{Outcome: bench.RunFailure}))
	_, err = own.StoreRawProfile(t.Context(), run, 3, strings.NewReader("raw"))
	require.Equal(t, http.StatusConflict, problemOf(t, err).Status)
	_, err = own.StoreCodeProfile(t.Context(), run, apiclient.NewCodeProfile{Raw: raw.Digest, Format: flame.Pprof}, spent(t, 1))
	require.Equal(t, apiclient.ProblemRunClosed, problemOf(t, err).Type)

	measured, _ := w.run()
	_, err = own.StoreRawProfile(t.Context(), measured, 3, strings.NewReader("raw"))
	require.Equal(t, "urn:benchloom:no-profile-job", problemOf(t, err).Type)
	listed, err := w.reader.CodeProfiles(t.Context(), "go", apiclient.CodeProfileQuery{})
	require.NoError(t, err)
	require.Empty(t, listed)
}

// zeros has so many zero bytes.
type zeros struct{ left int64 }

func (z *zeros) Read(p []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), z.left)
	clear(p[:n])
	z.left -= n
	return int(n), nil
}

func (z *zeros) Seek(int64, int) (int64, error) { return 0, nil }

// goneFiles is a blob store whose server goes away in the middle of a file.
type goneFiles struct {
	blobs.Store
	err error
}

func (g goneFiles) Put(_ context.Context, from io.Reader, _ int64) (blobs.Digest, int64, error) {
	_, _ = io.CopyN(io.Discard, from, 4)
	return "", 0, g.err
}

func TestNothingIsStoredWithoutTheBlobStore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files  blobs.Store
		status int
		want   string
	}{
		"gone":  {goneFiles{err: errors.New("connection reset by s3.example with key AKIASECRET")}, http.StatusServiceUnavailable, "does not answer as it should"},
		"full":  {goneFiles{err: &blobs.FullError{Most: 1 << 20}}, http.StatusInsufficientStorage, "keeps at most 1.0 MiB"},
		"large": {goneFiles{err: &blobs.TooLargeError{Limit: 1 << 20}}, http.StatusRequestEntityTooLarge, "larger than the allowed 1.0 MiB"},
		"none":  {nil, http.StatusServiceUnavailable, "start its API with --blobs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRolesWorld(t, func(config *api.Config) { config.Blobs = c.files })
			run, _ := w.profileRun()
			_, err := w.client(t, "own").StoreRawProfile(t.Context(), run, int64(len(perfOutput)), strings.NewReader(perfOutput))
			p := problemOf(t, err)
			require.Equal(t, c.status, p.Status)
			require.Contains(t, p.Detail, c.want)
			require.NotContains(t, p.Detail, "AKIA", "what a server says is for the log")
			listed, err := w.reader.CodeProfiles(t.Context(), "go", apiclient.CodeProfileQuery{})
			require.NoError(t, err)
			require.Empty(t, listed)
		})
	}
}
