package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/admission"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/devstack"
	"github.com/benchloom/benchloom/internal/diagnose/inspect"
	"github.com/benchloom/benchloom/internal/dispatch"
	"github.com/benchloom/benchloom/internal/profiler"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
	"github.com/benchloom/benchloom/internal/suite"
	"github.com/benchloom/benchloom/internal/up"
)

// Each script has its own API and record. Its commands stand in for the orchestrator
// and the collectors.
func TestWithService(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("testdata/service/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, scripts)
	for _, script := range scripts {
		s := &service{t: t, invitedOnly: strings.HasPrefix(filepath.Base(script), "enroll")}
		testscript.Run(t, testscript.Params{Files: []string{script}, Cmds: s.commands(), Setup: s.setup, RequireExplicitExec: true})
	}
}

// service is the API of one script.
type service struct {
	t         *testing.T
	url       string // of the record
	record    *store.Store
	server    *httptest.Server
	dir       string // of the script; it holds the tokens
	collector *apiclient.Client
	secret    string // the token that collectors share
	epoch     int64
	// invitedOnly requires collectors to be invited, as in production.
	invitedOnly bool
}

const (
	target = bench.Target("x86_64-unknown-linux-gnu")
	slot   = "bench-1"
)

// noWorkflows is a starter that starts nothing.
type noWorkflows struct{}

func (noWorkflows) JobEnded(context.Context, bench.RequestRef, protocol.JobEnded) error { return nil }
func (noWorkflows) StartRequest(context.Context, bench.RequestRef) error                { return nil }
func (noWorkflows) StartJob(context.Context, protocol.JobInput) error                   { return nil }
func (noWorkflows) MoveJob(context.Context, bench.JobRef, protocol.Moved) error {
	return nil
}

func (noWorkflows) HandOut(context.Context, bench.RequestRef, protocol.HandOut) error {
	return nil
}

func (noWorkflows) SetLevel(context.Context, bench.JobRef, int) (bool, error) {
	return true, nil
}
func (noWorkflows) GoFirst(context.Context, bench.JobRef) error { return nil }
func (noWorkflows) CancelRequest(context.Context, bench.RequestRef, []bench.JobRef) error {
	return nil
}

func (noWorkflows) ArtifactsReady(context.Context, bench.RequestRef, protocol.ArtifactsReady) error {
	return nil
}

func (noWorkflows) RunStarted(context.Context, bench.JobRef, protocol.RunStarted) error {
	return nil
}

func (noWorkflows) WatchProject(context.Context, string, time.Duration) error { return nil }
func (noWorkflows) UnwatchProject(context.Context, string) error              { return nil }
func (noWorkflows) SyncProject(context.Context, string) error                 { return nil }

func (s *service) setup(env *testscript.Env) error {
	quickExit(env)
	s.url = storetest.URL(s.t)
	s.record = storetest.Open(s.t, s.url)
	inspector := &inspect.Inspector{Record: s.record, Workflows: noWorkflows{}, OfflineAfter: 30 * time.Second, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	handler, err := api.New(s.t.Context(), api.Config{
		Store: s.record, Starter: noWorkflows{}, Dispatcher: &dispatch.Dispatcher{Record: s.record, Workflows: noWorkflows{}, OfflineAfter: 30 * time.Second, Log: slog.New(slog.DiscardHandler)},
		Inspector: inspector,
		Settings: api.Settings{
			Now: time.Now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
			Version: "v0.1.0", TemporalUI: "http://127.0.0.1:8233", Namespace: "benchloom", OpenRead: true,
			InvitedOnly: s.invitedOnly, TemporalAddress: "127.0.0.1:1",
		},
	})
	if err != nil {
		return err
	}
	server := httptest.NewServer(handler)
	env.Defer(func() {
		server.Close()
		handler.Wait()
	})
	if err := s.tokens(env); err != nil {
		return err
	}
	return s.publish(env, server)
}

// tokens creates a token of each role.
func (s *service) tokens(env *testscript.Env) error {
	var files []api.TokenFile
	for _, role := range []string{api.RoleAdmin, api.RoleReader, api.RoleCollector} {
		token, err := api.NewToken(rand.Reader)
		if err != nil {
			return err
		}
		path := filepath.Join(env.WorkDir, role+".token")
		if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
			return err
		}
		files = append(files, api.TokenFile{Path: path, Owner: "ada", Role: role})
		switch role {
		case api.RoleAdmin:
			env.Setenv("BENCHLOOM_TOKEN", token)
		case api.RoleCollector:
			s.secret = token
		}
	}
	return api.BootstrapTokens(s.t.Context(), s.record, files)
}

// publish announces the API in the environment, and in a state directory with a
// token of its own.
func (s *service) publish(env *testscript.Env, server *httptest.Server) error {
	env.Setenv("BENCHLOOM_URL", server.URL)
	env.Setenv("BENCHLOOM_ISOLATION", "off") // no benchmark runs, and not every machine has accounts
	env.Setenv("HOME", env.WorkDir)
	env.Setenv("TZ", "UTC")
	state, err := devstack.OpenState(filepath.Join(env.WorkDir, "state"))
	if err != nil {
		return err
	}
	env.Defer(func() { require.NoError(s.t, state.Close()) })
	if _, err := state.Token(up.TokenUser); err != nil {
		return err
	}
	own := api.TokenFile{Path: state.Path("tokens", up.TokenUser), Owner: "local", Role: api.RoleAdmin}
	if err := api.BootstrapTokens(s.t.Context(), s.record, []api.TokenFile{own}); err != nil {
		return err
	}
	if err := state.WriteUp(devstack.Up{Addresses: map[string]string{up.AddressAPI: server.URL}, Processes: map[string]int{"api": 1}}, time.Now()); err != nil {
		return err
	}
	s.server, s.dir = server, env.WorkDir
	if s.invitedOnly {
		return nil
	}
	s.collector, err = s.as(slot)
	return err
}

// as returns a client with the own token of a collector.
func (s *service) as(name string) (*apiclient.Client, error) {
	shared, err := apiclient.New(s.server.URL, s.secret, s.server.Client())
	if err != nil {
		return nil, err
	}
	token, err := api.NewToken(rand.Reader)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256([]byte(token))
	if err := shared.PutOwnToken(s.t.Context(), apiclient.OwnToken{Name: name, SecretHash: hex.EncodeToString(hash[:]), Machines: []string{}}); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(s.dir, name+".token"), []byte(token+"\n"), 0o600); err != nil {
		return nil, err
	}
	return apiclient.New(s.server.URL, token, s.server.Client())
}

func (s *service) commands() map[string]func(*testscript.TestScript, bool, []string) {
	commands := scriptCommands()
	for name, f := range map[string]func(args []string) error{"register": s.register, "begin": s.begin, "measure": s.measure, "fail": s.fail, "finish": s.finish, "commits": s.commits, "gone": s.gone, "aside": s.aside, "pack": s.pack, "sample": s.sample, "sql": s.sql} {
		commands[name] = func(ts *testscript.TestScript, _ bool, args []string) { ts.Check(f(args)) }
	}
	commands["answered"] = s.answered
	return commands
}

// register registers the collector or, with names, the slots of a shared host:
// register HOST SLOT...
func (s *service) register(names []string) error {
	if len(names) > 0 {
		host, err := s.as(names[0])
		if err != nil {
			return err
		}
		return s.registerSlots(host, names)
	}
	r, err := s.collector.RegisterCollector(s.t.Context(), apiclient.Registration{
		Name: slot, Target: target, SizeClass: 2, Pool: "main", MachineID: "machine-of-" + slot, Version: "v0.1.0", HardwareID: "cpu0",
		Facts: json.RawMessage(`{"cpu_model":"some"}`), Unenforced: []apiclient.Unenforced{{Name: "memory", Reason: "no cgroup"}},
	})
	s.epoch = r.Collector.Epoch
	return err
}

func (s *service) registerSlots(host *apiclient.Client, names []string) error {
	for _, name := range names[1:] {
		_, err := host.RegisterCollector(s.t.Context(), apiclient.Registration{
			Name: name, Target: target, SizeClass: 1, Pool: "shared", MachineID: "machine-of-" + name, Version: "v0.1.0", HardwareID: "cpu0",
			Facts: json.RawMessage(`{}`), SharedHost: names[0], CoLocated: true,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// begin PROJECT TAG admits a request, hands its jobs out and begins one run of
// each.
func (s *service) begin(args []string) error {
	_, err := s.started(args[0], args[1])
	return err
}

// started does what begin does and returns the plans of the runs.
func (s *service) started(project, tag string) ([]apiclient.RunPlan, error) {
	ctx := s.t.Context()
	r, err := s.record.RequestByTag(ctx, project, tag)
	if err != nil {
		return nil, err
	}
	all := func(open []bench.Request, done map[string]bool) (store.Admission, error) {
		state, err := admission.EncodeState(admission.RequestsOf(open), done)
		return store.Admission{Next: []bench.RequestID{r.ID}, Policy: "spec", State: state}, err
	}
	if _, err := s.record.Admit(ctx, project, 100, all); err != nil {
		return nil, err
	}
	jobs, err := s.jobs(r)
	if err != nil {
		return nil, err
	}
	if err := s.record.ExpandRequest(ctx, r.ID, store.Expansion{Stage: bench.StageOwn, Jobs: storetest.Planned(jobs...)}); err != nil {
		return nil, err
	}
	var plans []apiclient.RunPlan
	for _, j := range jobs {
		if _, err := s.record.HandOut(ctx, j.TaskQueue, store.HandOutOptions{Depth: func(int) int { return 100 }}); err != nil {
			return nil, err
		}
		run := bench.NewRunID(j.Key, "workflow", "activity", 1)
		task, err := storetest.Dispatched(ctx, s.url, run, slot)
		if err != nil {
			return nil, err
		}
		plan, err := s.collector.StartRun(ctx, run, apiclient.RunStart{
			Reason: bench.Scheduled, Collector: slot, Epoch: s.epoch, Dispatch: task.Dispatch, TaskQueue: task.TaskQueue,
		})
		if err != nil {
			return nil, err
		}
		if _, err := s.collector.AppendLog(ctx, run, 0, fmt.Appendf(nil, "== %s of %s\n", j.Kind, tag)); err != nil {
			return nil, err
		}
		plans = append(plans, plan)
	}
	return plans, nil
}

// jobs expands a request as the orchestrator does.
func (s *service) jobs(r bench.Request) ([]bench.Job, error) {
	project, err := s.record.Project(s.t.Context(), r.Project)
	if err != nil {
		return nil, err
	}
	_, archive, err := s.record.SuiteArchive(s.t.Context(), project.SuiteHash)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(s.t.TempDir(), "suite")
	if err := suite.Unpack(bytes.NewReader(archive), project.SuiteHash, dir); err != nil {
		return nil, err
	}
	loaded, err := suite.LoadDir(dir)
	if err != nil {
		return nil, err
	}
	selection := r.Selection
	selection.Targets = []bench.Target{target}
	plans, err := loaded.Expand(selection)
	if err != nil {
		return nil, err
	}
	pool := bench.Pool{Target: target, SizeClass: 2, Name: "main"}
	var jobs []bench.Job
	for _, p := range plans {
		identity := bench.JobIdentity{
			Tag: r.Tag, Target: p.Target, Backend: p.Backend, Profile: p.Profile, Kind: p.Kind, Suite: project.SuiteHash, TestCases: p.TestCases, SizeClass: 2,
		}
		jobs = append(jobs, bench.Job{
			Project: r.Project, Key: identity.Key(),
			Work:     bench.Work{Tag: r.Tag, Kind: p.Kind, Target: p.Target, Backend: p.Backend, Profile: p.Profile, SuiteHash: project.SuiteHash, TestCases: p.TestCases},
			Location: bench.Location{SizeClass: 2, Pool: pool.Name, TaskQueue: pool.TaskQueue()},
			Turn:     bench.Turn{Queue: "project:" + r.Project, Weight: 1, Priority: 3, RequestCreated: r.CreatedAt},
			JobState: bench.JobState{Status: bench.JobQueued},
		})
	}
	return jobs, nil
}

// measure PROJECT TAG SECONDS [BYTES] runs a request in which each test case takes about
// that long and writes a file of that size.
func (s *service) measure(args []string) error {
	seconds, err := strconv.ParseFloat(args[2], 64)
	if err != nil {
		return err
	}
	size := 12345.0
	if len(args) > 3 {
		if size, err = strconv.ParseFloat(args[3], 64); err != nil {
			return err
		}
	}
	plans, err := s.started(args[0], args[1])
	if err != nil {
		return err
	}
	for _, plan := range plans {
		if _, err := s.collector.UploadBlock(s.t.Context(), plan.Run.ID, 1, collections(plan.Missing, seconds, size)); err != nil {
			return err
		}
		if err := s.collector.FinishRun(s.t.Context(), plan.Run.ID, apiclient.RunFinish{Outcome: bench.RunSuccess}); err != nil {
			return err
		}
	}
	return s.close(args[0], args[1], plans, bench.Success)
}

// fail PROJECT TAG MESSAGE runs a request whose test cases all fail.
func (s *service) fail(args []string) error {
	plans, err := s.started(args[0], args[1])
	if err != nil {
		return err
	}
	for _, plan := range plans {
		var block apiclient.Block
		for _, tc := range plan.Missing {
			block.Errors = append(block.Errors, apiclient.BlockError{TestCase: &tc, Kind: bench.FailJob, Message: args[2], OutputTail: "last words\n"})
		}
		if _, err := s.collector.UploadBlock(s.t.Context(), plan.Run.ID, 1, block); err != nil {
			return err
		}
		if err := s.collector.FinishRun(s.t.Context(), plan.Run.ID, apiclient.RunFinish{Outcome: bench.RunFailure, Message: args[2]}); err != nil {
			return err
		}
	}
	return s.close(args[0], args[1], plans, bench.Failure)
}

// finish RUN ends a run after some more output.
func (s *service) finish(args []string) error {
	run, said := bench.RunID(args[0]), "\x1b]52;c;cm0=\ais in the clipboard\nthe end\n"
	piece, err := s.collector.RunLog(s.t.Context(), run, apiclient.LogQuery{})
	if err != nil {
		return err
	}
	if _, err := s.collector.AppendLog(s.t.Context(), run, piece.Next, []byte(said)); err != nil {
		return err
	}
	return s.collector.FinishRun(s.t.Context(), run, apiclient.RunFinish{Outcome: bench.RunFailure})
}

// sample RUN N sends N samples of two series of a run, and its summary.
func (s *service) sample(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	u := profiler.Upload{
		Attempt: "a1", Host: "m1", Absent: []profiler.Absence{{Scope: profiler.ScopeMachine, Metric: profiler.CPUFrequency, Reason: "a virtual machine"}},
		Summary: &profiler.Summary{Phases: []profiler.PhaseSummary{{Name: "fetch", Count: 2, TotalSeconds: 3, LongestSeconds: 2}}},
	}
	for _, series := range []profiler.Series{{Scope: profiler.ScopeJob, Name: string(profiler.CPUUsed)}, {Scope: profiler.ScopeMachine, Name: string(profiler.MemoryFree)}} {
		b := profiler.Batch{Series: series, Unit: series.Unit(), Attempt: u.Attempt, Host: u.Host}
		for i := range n {
			b.Values = append(b.Values, float64(i)/float64(n))
			b.Batches = append(b.Batches, 1)
			b.Times = append(b.Times, time.Date(2026, 3, 4, 15, 0, 0, 0, time.UTC).Add(time.Duration(i)*profiler.Interval))
		}
		u.Batches = append(u.Batches, b)
	}
	return s.collector.SendProfile(s.t.Context(), bench.RunID(args[0]), u)
}

// commits PROJECT REPOSITORY SHA... records commits, oldest first, as a look does,
// and requests the last one.
func (s *service) commits(args []string) error {
	var history []store.Commit
	parent := ""
	for _, sha := range args[2:] {
		history = append([]store.Commit{{SHA: sha, Parent: parent, CommittedAt: time.Now().Add(-time.Hour), Author: "Ada", Subject: "about " + sha, Skipped: true}}, history...)
		parent = sha
	}
	history[0].Skipped = false
	if _, err := s.record.RecordCommits(s.t.Context(), args[0], history); err != nil {
		return err
	}
	id, err := bench.NewRequestID(rand.Reader)
	if err != nil {
		return err
	}
	if _, _, err := s.record.CreateRequest(s.t.Context(), bench.Request{ID: id, Project: args[0], Type: bench.Master, Tag: parent, Submission: bench.Submission{Submitter: "commit-source"}}); err != nil {
		return err
	}
	return s.record.RecordPoll(s.t.Context(), store.SourceState{Project: args[0], Repository: args[1], Head: parent})
}

// gone PROJECT REASON records that a project's repository cannot be read.
func (s *service) gone(args []string) error {
	_, err := s.record.RecordFailedPoll(s.t.Context(), args[0], args[1])
	return err
}

func (s *service) close(project, tag string, plans []apiclient.RunPlan, outcome bench.Outcome) error {
	ctx := s.t.Context()
	for _, plan := range plans {
		if _, err := s.record.FinishJob(ctx, plan.Job.Key, 0, ""); err != nil {
			return err
		}
	}
	r, err := s.record.RequestByTag(ctx, project, tag)
	if err != nil {
		return err
	}
	return s.record.CompleteRequest(ctx, r.ID, outcome, "", nil, fmt.Sprintf("%s of %s", outcome, tag))
}

// collections returns five collections of each test case, with times around seconds.
func collections(cases []bench.TestCase, seconds, size float64) apiclient.Block {
	var out apiclient.Block
	for _, tc := range cases {
		r := apiclient.TestCaseResult{TestCase: tc}
		for i := range 5 {
			took := seconds * (1 + float64(i)/1000)
			r.Collections = append(r.Collections, apiclient.Collection{
				Iteration: i + 1, CollectedAt: time.Date(2026, 1, 2, 3, 4, i, 0, time.UTC),
				Values: map[bench.Metric]float64{bench.WallTime: took, bench.CPUTime: took / 2, bench.MinorFaults: 100 * took, "size:binary": size},
			})
		}
		out.Results = append(out.Results, r)
	}
	return out
}

func (noWorkflows) Explain(_ context.Context, id string) (protocol.WorkflowState, error) {
	return protocol.WorkflowState{ID: id, Status: protocol.WorkflowMissing}, nil
}
func (noWorkflows) RestartRequest(context.Context, bench.RequestRef) error { return nil }
func (noWorkflows) QueueChanged(context.Context, string) error             { return nil }
func (noWorkflows) ResetToStart(context.Context, string, string) error     { return nil }
func (noWorkflows) TriggerReconcile(context.Context) error                 { return nil }
func (noWorkflows) TriggerRetain(context.Context) error                    { return nil }
