package bench_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

var (
	byAda    = bench.Submission{Submitter: "ada"}
	madeAt   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	echo     = bench.Command{Argv: []string{"echo"}, TimeoutSeconds: 60, Iterations: 1}
	onLinux  = bench.Selection{Targets: []bench.Target{linux}}
	oneOfAll = bench.Selection{Benchmarks: []string{"gin"}}
)

// kinds makes one request of each kind.
func kinds(t *testing.T) map[string]bench.Request {
	t.Helper()
	must := func(r bench.Request, err error) bench.Request {
		t.Helper()
		require.NoError(t, err)
		r.ID = "rabcdefghjk"
		return r
	}
	from := bench.Origin{Parent: "aaa", PR: 7, CommitDate: &madeAt}
	waiting := must(bench.NewTryBuild("go", "", from, oneOfAll, byAda))
	named := must(bench.NewTryBuild("go", "t1", from, oneOfAll, byAda))
	return map[string]bench.Request{
		"release":     must(bench.NewRelease("go", "1.26.0", &madeAt, oneOfAll, byAda)),
		"master":      must(bench.NewMasterCommit("go", "bbb", from, oneOfAll, byAda)),
		"try":         waiting,
		"ready try":   must(named.Ready()),
		"measurement": must(bench.NewMeasurement("go", "1.26.0", &madeAt, bench.Scope{Versus: "1.25.0", SizeClass: 4, Constraints: &bench.Constraints{CPUs: 2}}, byAda)),
		"command":     must(bench.NewCommandRequest("adhoc", echo, bench.Scope{Selection: onLinux, SizeClass: 2}, byAda)),
		"batch":       must(bench.NewBatchRequest("adhoc", 3, "d1ge57", bench.Scope{}, byAda)),
	}
}

func TestNewRequestsHaveTheStatusOfTheirKind(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		kind     bench.RequestType
		status   bench.RequestStatus
		commands bool
		deferred bool
	}{
		"release":     {kind: bench.Release, status: bench.ArtifactsReady},
		"master":      {kind: bench.Master, status: bench.ArtifactsReady},
		"try":         {kind: bench.Try, status: bench.WaitingForArtifacts},
		"ready try":   {kind: bench.Try, status: bench.ArtifactsReady},
		"measurement": {kind: bench.AdHoc, status: bench.ArtifactsReady},
		"command":     {kind: bench.AdHoc, status: bench.InProgress, commands: true, deferred: true},
		"batch":       {kind: bench.AdHoc, status: bench.InProgress, commands: true, deferred: true},
	} {
		r := kinds(t)[name]
		require.NoError(t, r.Validate(), name)
		require.Equal(t, want.kind, r.Type, name)
		require.Equal(t, bench.Standing{Status: want.status}, r.Standing, name)
		require.Equal(t, want.commands, r.OfCommands(), name)
		require.Equal(t, want.deferred, r.Deferred, name)
		require.Equal(t, "ada", r.Submitter, name)
	}
}

// Each change makes a request of these kinds impossible, and leaves it possible for
// all others.
func TestRequestsHaveOnlyFieldsOfTheirKind(t *testing.T) {
	t.Parallel()
	all := []string{"release", "master", "try", "ready try", "measurement", "command", "batch"}
	artifacts := all[:5]
	tracked, without := []string{"release", "master", "try", "ready try"}, []string{"release", "measurement", "command", "batch"}
	commands := []string{"command", "batch"}
	for name, c := range map[string]struct {
		change  func(*bench.Request)
		refused []string
	}{
		"no project":           {func(r *bench.Request) { r.Project = "" }, all},
		"no submitter":         {func(r *bench.Request) { r.Submitter = "" }, all},
		"an unknown type":      {func(r *bench.Request) { r.Type = "nightly" }, all},
		"a type in capitals":   {func(r *bench.Request) { r.Type = "ADHOC" }, all},
		"an unknown status":    {func(r *bench.Request) { r.Status = "queued" }, all},
		"an outcome too early": {func(r *bench.Request) { r.Outcome = bench.Success }, all},
		"an end too early":     {func(r *bench.Request) { r.CompletedAt = &madeAt }, all},
		"no end":               {func(r *bench.Request) { r.Status, r.Outcome = bench.Completed, bench.Success }, all},
		"a bad tag":            {func(r *bench.Request) { r.Tag = "a b" }, all},
		"a bad parent":         {func(r *bench.Request) { r.Parent = "a b" }, all},
		"a bad other artifact": {func(r *bench.Request) { r.Versus = "a b" }, all},
		"a negative PR":        {func(r *bench.Request) { r.PR = -1 }, all},
		"a parent":             {func(r *bench.Request) { r.Parent = "zzz" }, without},
		"a pull request":       {func(r *bench.Request) { r.PR = 8 }, without},
		"a tag to wait for":    {func(r *bench.Request) { r.WaitsFor = "aaa" }, without},
		"a note on its parent": {func(r *bench.Request) { r.ParentNote = "none" }, without},
		"itself as parent":     {func(r *bench.Request) { r.Tag, r.Parent = "zzz", "zzz" }, all},
		"no tag":               {func(r *bench.Request) { r.Tag = "" }, []string{"release", "master", "ready try", "measurement"}},
		"a tag":                {func(r *bench.Request) { r.Tag = "zzz" }, commands},
		"another artifact":     {func(r *bench.Request) { r.Versus = "zzz" }, append(commands, tracked...)},
		"its own artifact":     {func(r *bench.Request) { r.Tag, r.Versus = "zzz", "zzz" }, all},
		"a size class":         {func(r *bench.Request) { r.SizeClass = 8 }, tracked},
		"a negative class":     {func(r *bench.Request) { r.SizeClass = -1 }, all},
		"constraints":          {func(r *bench.Request) { r.Constraints = &bench.Constraints{CPUs: 1} }, tracked},
		"waiting":              {func(r *bench.Request) { r.Status = bench.WaitingForArtifacts }, []string{"release", "master", "measurement", "command", "batch"}},
		"a selection":          {func(r *bench.Request) { r.Selection = bench.Selection{Set: "quick"} }, commands},
		"two targets":          {func(r *bench.Request) { r.Selection = bench.Selection{Targets: []bench.Target{linux, "b-c"}} }, commands},
		"negative iterations":  {func(r *bench.Request) { r.Selection.Iterations = -1 }, all},
		"a command":            {func(r *bench.Request) { r.Command = &echo }, append([]string{"batch"}, artifacts...)},
		"a batch":              {func(r *bench.Request) { r.Batch, r.Digest = 2, "d" }, append([]string{"command"}, artifacts...)},
		"an empty batch":       {func(r *bench.Request) { r.Batch = -1 }, all},
		"a digest":             {func(r *bench.Request) { r.Digest = "d" }, append([]string{"command"}, artifacts...)},
		"no digest":            {func(r *bench.Request) { r.Digest = "" }, []string{"batch"}},
		"a deferred workflow":  {func(r *bench.Request) { r.Deferred = true }, artifacts},
		"a workflow at once":   {func(r *bench.Request) { r.Deferred = false }, []string{"batch"}},
		"a date":               {func(r *bench.Request) { r.CommitDate = &madeAt }, commands},
	} {
		for kind, r := range kinds(t) {
			c.change(&r)
			err := r.Validate()
			refused := false
			for _, k := range c.refused {
				refused = refused || k == kind
			}
			if !refused {
				require.NoError(t, err, "%s of a %s", name, kind)
				continue
			}
			require.ErrorIs(t, err, bench.ErrInvalid, "%s of a %s", name, kind)
			require.ErrorContains(t, err, "request rabcdefghjk: ", "%s of a %s", name, kind)
		}
	}
}

func TestConstructorsRefuseInvalidRequests(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func() (bench.Request, error){
		"a release without a tag": func() (bench.Request, error) {
			return bench.NewRelease("go", "", nil, bench.Selection{}, byAda)
		},
		"a commit without a tag": func() (bench.Request, error) {
			return bench.NewMasterCommit("go", "", bench.Origin{}, bench.Selection{}, byAda)
		},
		"a commit made from itself": func() (bench.Request, error) {
			return bench.NewMasterCommit("go", "aaa", bench.Origin{Parent: "aaa"}, bench.Selection{}, byAda)
		},
		"a try build that is ready, though nobody knows which": func() (bench.Request, error) {
			r, err := bench.NewTryBuild("go", "", bench.Origin{}, bench.Selection{}, byAda)
			require.NoError(t, err)
			return r.Ready()
		},
		"a measurement of nothing": func() (bench.Request, error) {
			return bench.NewMeasurement("go", "", nil, bench.Scope{}, byAda)
		},
		"a measurement against itself": func() (bench.Request, error) {
			return bench.NewMeasurement("go", "v1", nil, bench.Scope{Versus: "v1"}, byAda)
		},
		"a command with a selection": func() (bench.Request, error) {
			return bench.NewCommandRequest("go", echo, bench.Scope{Selection: oneOfAll}, byAda)
		},
		"a batch of nothing": func() (bench.Request, error) {
			return bench.NewBatchRequest("go", 0, "d", bench.Scope{}, byAda)
		},
		"a batch without a digest": func() (bench.Request, error) {
			return bench.NewBatchRequest("go", 1, "", bench.Scope{}, byAda)
		},
		"nobody's": func() (bench.Request, error) {
			return bench.NewRelease("go", "v1", nil, bench.Selection{}, bench.Submission{})
		},
	} {
		r, err := make()
		require.ErrorIs(t, err, bench.ErrInvalid, name)
		require.Zero(t, r, name)
	}
}

// A graph's nodes say what is measured and where: its request has nothing of that.
func TestARequestForAGraphHasOnlyItsTemplate(t *testing.T) {
	t.Parallel()
	call := bench.TemplateCall{Name: "nightly", Definitions: "d", Graph: "g"}
	r, err := bench.NewGraphRequest("go", call, byAda)
	require.NoError(t, err)
	require.Equal(t, bench.Standing{Status: bench.InProgress}, r.Standing)
	require.False(t, r.OfSuite())
	require.False(t, r.OfCommands())
	require.True(t, kinds(t)["release"].OfSuite())
	for name, change := range map[string]func(*bench.Request){
		"a tag":           func(r *bench.Request) { r.Tag = "v1" },
		"a selection":     func(r *bench.Request) { r.Selection = oneOfAll },
		"a command":       func(r *bench.Request) { r.Command = &echo },
		"a batch":         func(r *bench.Request) { r.Batch = 2 },
		"a size class":    func(r *bench.Request) { r.SizeClass = 2 },
		"constraints":     func(r *bench.Request) { r.Constraints = &bench.Constraints{CPUs: 2} },
		"another type":    func(r *bench.Request) { r.Type = bench.Release },
		"no template":     func(r *bench.Request) { r.Template = &bench.TemplateCall{Definitions: "d", Graph: "g"} },
		"awaited by name": func(r *bench.Request) { r.Status = bench.WaitingForArtifacts },
		"a profiler":      func(r *bench.Request) { r.Profiler = "perf" },
	} {
		changed := r
		change(&changed)
		require.ErrorIs(t, changed.Validate(), bench.ErrInvalid, name)
	}
}
