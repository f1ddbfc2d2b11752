package admission_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/admission"
	"github.com/benchloom/benchloom/internal/bench"
)

var now = time.Date(2026, 3, 4, 15, 0, 0, 0, time.UTC)

var pool = bench.Pool{Target: "x86_64-unknown-linux-gnu", SizeClass: 2, Name: "main"}

// shape is a job for test cases that the digest stands for.
func shape(digest string) admission.JobShape {
	return admission.JobShape{
		Project: "go", Kind: bench.KindCompileTime, Target: pool.Target, Profile: "build", CasesDigest: digest, CaseCount: 1,
		SizeClass: pool.SizeClass, Pool: pool.Name, TaskQueue: pool.TaskQueue(),
	}
}

func past(digest string, minutes float64) admission.PastJob {
	return admission.PastJob{JobShape: shape(digest), Seconds: 60 * minutes, CompletedAt: now.Add(-time.Hour)}
}

func master(id, waitsFor string) bench.Request {
	return bench.Request{
		ID: bench.RequestID(id), Tag: "tag-" + id, Type: bench.Master,
		Origin:   bench.Origin{Parent: waitsFor, WaitsFor: waitsFor},
		Standing: bench.Standing{Status: bench.ArtifactsReady},
		Timeline: bench.Timeline{CreatedAt: now.Add(-time.Hour)},
	}
}

// inProgress is admitted ten minutes ago and has written its jobs.
func inProgress(id string) bench.Request {
	r := master(id, "")
	at := now.Add(-10 * time.Minute)
	r.Status, r.AdmittedAt, r.ExpandedAt = bench.InProgress, &at, &at
	return r
}

// snapshot has a request that runs, one that waits for it, and one that waits for its turn.
func snapshot() admission.Snapshot {
	waiting := master("w", "")
	waiting.Status, waiting.Type, waiting.Tag = bench.WaitingForArtifacts, bench.Try, ""
	return admission.Snapshot{
		Open: []bench.Request{waiting, master("child", "tag-running"), master("next", ""), master("lost", "gone"), inProgress("running")},
		Jobs: []admission.OpenJob{
			{JobShape: shape("a"), Status: bench.JobInProgress, Seconds: 120, Waiters: []bench.RequestID{"running"}},
			{JobShape: shape("b"), Status: bench.JobHandedOut, Waiters: []bench.RequestID{"running"}},
		},
		Past:     []admission.PastJob{past("a", 10), past("b", 5)},
		Examples: []admission.Example{{Request: "running", Type: bench.Master, Tag: "tag-running", Jobs: []admission.JobShape{shape("a"), shape("b")}}},
		Pools:    []bench.PoolCount{{Pool: pool, Live: 1, Total: 2}},
	}
}

func minutes(at time.Time) int {
	if at.IsZero() {
		return -1
	}
	return int(at.Sub(now).Minutes())
}

type seen struct {
	id         string
	start, end int
	basis      string
}

func view(entries []admission.Entry) []seen {
	var out []seen
	for _, e := range entries {
		out = append(out, seen{string(e.Request.ID), minutes(e.Expected.Start), minutes(e.Expected.End), e.Expected.Basis})
	}
	return out
}

const (
	own   = "2 jobs by the same job's history in its pool"
	plan  = own + "; its jobs are taken to be those of request running (tag-running)"
	stuck = "not known: parent gone is neither finished nor requested; request it or drop the link"
)

func TestViewEstimatesTheQueue(t *testing.T) {
	t.Parallel()
	entries := admission.View(snapshot(), bench.ProjectConfig{}, now)
	require.Equal(t, []seen{
		{"running", -10, 13, own},
		{"child", 13, 28, plan},
		{"next", 28, 43, plan},
		{"lost", -1, -1, stuck},
		{"w", -1, -1, "not known: waiting for artifacts"},
	}, view(entries))
	require.Equal(t, "parent tag-running is in progress, not finished", entries[1].Position.Blocked)

	// A second collector shares the jobs; in a second slot the next one passes the child that waits.
	s := snapshot()
	s.Pools[0].Live = 2
	require.Equal(t, []seen{
		{"running", -10, 8, own},
		{"child", 8, 23, plan},
		{"next", 0, 15, plan},
	}, view(admission.View(s, bench.ProjectConfig{Queue: bench.QueuePolicy{MaxInProgress: 2}}, now))[:3])
}

func TestEstimatesWithoutHistory(t *testing.T) {
	t.Parallel()
	s := snapshot()
	s.Open = []bench.Request{master("next", "")}
	s.Jobs, s.Past = nil, nil
	expect := func(start, end int, basis string) {
		t.Helper()
		require.Equal(t, []seen{{"next", start, end, basis}}, view(admission.View(s, bench.ProjectConfig{}, now)))
	}
	expect(0, 20, "2 jobs assumed to take 10 minutes, nothing like it has run; its jobs are taken to be those of request running (tag-running)")
	s.Examples[0].Seconds = 1800
	expect(0, 30, "as long as request running (tag-running) took")
	s.Examples = nil
	expect(0, 60, "assumed to take an hour: the project has measured nothing yet")
	s = snapshot()
	s.Pools[0].Live = 0
	require.Equal(t, seen{"running", -10, -1, "not known: no live collector serves " + pool.TaskQueue()}, view(admission.View(s, bench.ProjectConfig{}, now))[0])
}

func TestTheMostSimilarRequestIsTheExample(t *testing.T) {
	t.Parallel()
	one := bench.Selection{Benchmarks: []string{"gin"}}
	s := snapshot()
	s.Past = append(s.Past, past("c", 1), past("d", 2), past("e", 3))
	s.Examples = []admission.Example{
		{Request: "release", Type: bench.Release, Jobs: []admission.JobShape{shape("c")}},
		{Request: "narrow", Type: bench.Release, Selection: one, Jobs: []admission.JobShape{shape("d")}},
		{Request: "same", Type: bench.Master, Jobs: []admission.JobShape{shape("e")}},
	}
	s.Jobs = nil
	for name, c := range map[string]struct {
		change func(r *bench.Request)
		end    int
	}{
		"type and selection": {func(*bench.Request) {}, 3},
		"selection":          {func(r *bench.Request) { r.Selection = one }, 2},
		"type":               {func(r *bench.Request) { r.Selection.Iterations = 7 }, 3},
		"the latest":         {func(r *bench.Request) { r.Type, r.Selection.Iterations = bench.Try, 7 }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := s
			r := master("next", "")
			c.change(&r)
			own.Open = []bench.Request{r}
			require.Equal(t, c.end, view(admission.View(own, bench.ProjectConfig{}, now))[0].end)
		})
	}
}

func TestSharedJobsAreCountedOnce(t *testing.T) {
	t.Parallel()
	s := snapshot()
	s.Open = []bench.Request{inProgress("running"), inProgress("second")}
	for i := range s.Jobs {
		s.Jobs[i].Waiters = []bench.RequestID{"running", "second"}
	}
	require.Equal(t, []seen{
		{"running", -10, 13, own},
		{"second", -10, 0, "none of its jobs is left, or others wait for the same ones"},
	}, view(admission.View(s, bench.ProjectConfig{}, now)))
}

func TestAnAdHocRequestTakesTurnsWithTheQueue(t *testing.T) {
	t.Parallel()
	s := snapshot()
	mine := shape("mine")
	mine.Project, mine.Kind = "adhoc", bench.KindCommand
	r := bench.Request{ID: "mine", Type: bench.AdHoc, Standing: bench.Standing{Status: bench.InProgress}}
	e := admission.ExpectAdHoc(s, r, now)
	require.Equal(t, seen{"", -1, 10, "assumed to take ten minutes: its jobs are not written yet"}, seen{"", minutes(e.Start), minutes(e.End), e.Basis})

	at := now
	r.ExpandedAt, r.AdmittedAt = &at, &at
	s.Jobs = append(s.Jobs, admission.OpenJob{JobShape: mine, Status: bench.JobQueued, Waiters: []bench.RequestID{"mine"}})
	s.Past = append(s.Past, admission.PastJob{JobShape: mine, Seconds: 60, CompletedAt: now})
	e = admission.ExpectAdHoc(s, r, now)
	// Behind the running job's 8 minutes and one of the queue's, 5 minutes.
	require.Equal(t, seen{"", 0, 14, "1 job by the same job's history in its pool"}, seen{"", minutes(e.Start), minutes(e.End), e.Basis})
}

func TestWaitsForIsTheParentInTheOrder(t *testing.T) {
	t.Parallel()
	date := now.AddDate(0, 0, -1)
	r := master("r", "tag-parent")
	r.Parent, r.PR, r.CommitDate = "older", 7, &date
	require.Equal(t, []admission.Request{{
		ID: "r", Tag: "tag-r", Type: bench.Master, ParentTag: "tag-parent", PR: 7, CreatedAt: r.CreatedAt, CommitDate: date,
		Status: bench.ArtifactsReady,
	}}, admission.RequestsOf([]bench.Request{r}))
	require.Equal(t, admission.Spec, admission.PolicyOf(bench.ProjectConfig{}))
	require.Equal(t, admission.Upstream, admission.PolicyOf(bench.ProjectConfig{Queue: bench.QueuePolicy{Policy: "upstream"}}))
}

func TestNoEstimateBehindThousandsOfJobs(t *testing.T) {
	t.Parallel()
	s := snapshot()
	s.LeftOut = 95_000
	own := inProgress("own")
	own.Type, own.AdmittedAt = bench.AdHoc, nil
	require.Equal(t, admission.Expected{Basis: "not known: 95002 jobs are open, more than can be foreseen"}, admission.ExpectAdHoc(s, own, now))
}
