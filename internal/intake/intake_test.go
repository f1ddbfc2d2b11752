package intake_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/intake"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const project = "go"

// now is in the middle of the look-back of all commits that tests make.
var now = time.Date(2026, 6, 30, 12, 0, 0, 0, time.UTC)

type bundle struct {
	intake.Intake
	t      *testing.T
	url    string
	store  *store.Store
	config bench.ProjectConfig
}

// setup makes a project whose commit source knows c0 to c5, a day apart, the last
// one of today; c0 and c1 are older than the look-back.
func setup(t *testing.T) *bundle {
	t.Helper()
	url := storetest.URL(t)
	b := &bundle{t: t, url: url, store: storetest.Open(t, url)}
	b.Intake = intake.Intake{Record: b.store, Random: rand.Reader, Now: func() time.Time { return now }}
	b.config.Source = bench.CommitSource{Git: "/repository", LookBack: bench.LookBack{Days: 10, Commits: 3}}
	text, err := json.Marshal(b.config)
	require.NoError(t, err)
	_, err = b.store.ApplyProject(t.Context(), store.Project{Name: project, Config: text})
	require.NoError(t, err)
	for i := range 6 {
		age := time.Duration(5-i) * 24 * time.Hour
		if i < 2 {
			age += 30 * 24 * time.Hour
		}
		parent := ""
		if i > 0 {
			parent = fmt.Sprint("c", i-1)
		}
		b.execute(`insert into commit (project, sha, parent, position, committed_at) values ($1, $2, $3, $4, $5)`,
			project, fmt.Sprint("c", i), parent, i, now.Add(-age))
	}
	return b
}

func (b *bundle) execute(sql string, args ...any) {
	b.t.Helper()
	conn, err := pgx.Connect(b.t.Context(), b.url)
	require.NoError(b.t, err)
	_, err = conn.Exec(b.t.Context(), sql, args...)
	require.NoError(b.t, err)
	require.NoError(b.t, conn.Close(b.t.Context()))
}

func (b *bundle) create(r bench.Request) intake.Taken {
	b.t.Helper()
	r.Project, r.Submitter = project, "ada"
	if r.Status == "" {
		r.Status = bench.ArtifactsReady
	}
	taken, err := b.Create(b.t.Context(), r, b.config)
	require.NoError(b.t, err)
	return taken
}

func (b *bundle) master(tag string) intake.Taken {
	b.t.Helper()
	return b.create(bench.Request{Type: bench.Master, Tag: tag})
}

func (b *bundle) complete(r bench.Request, outcome bench.Outcome) {
	b.t.Helper()
	require.NoError(b.t, b.store.CompleteRequest(b.t.Context(), r.ID, outcome, "", nil, ""))
}

// wants are the tags of requests, each with what it waits for.
func wants(requests []bench.Request) []string {
	out := make([]string, len(requests))
	for i, r := range requests {
		out[i] = r.Tag + " after " + r.WaitsFor
	}
	return out
}

func TestCommitsRequestMissingAncestors(t *testing.T) {
	t.Parallel()
	b := setup(t)
	taken := b.master("c5")
	require.True(t, taken.IsNew())
	require.Equal(t, []string{"c2 after ", "c3 after c2", "c4 after c3", "c5 after c4"}, wants(taken.Created), "ancestors first, as far as the look-back")
	require.Equal(t, "c4", taken.Request.Parent, "the commit source knows it")
	require.True(t, taken.Request.CommitDate.Equal(now))
	require.Equal(t, "its parent c1 is not measured: nobody has asked for it, and the look-back of the project ends here", taken.Created[0].ParentNote)
	for _, r := range taken.Created {
		require.Equal(t, bench.Master, r.Type)
		require.Equal(t, bench.ArtifactsReady, r.Status)
	}
	again := b.master("c5")
	require.False(t, again.IsNew())
	require.Empty(t, again.Created)
	require.Equal(t, taken.Request.ID, again.Request.ID)
}

func TestTheLookBackCountsCommitsToo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.config.Source.LookBack.Commits = 2
	require.Equal(t, []string{"c3 after ", "c4 after c3", "c5 after c4"}, wants(b.master("c5").Created))
}

// A project begins somewhere: what was measured first does not bring in what is
// older, whatever its outcome.
func TestCompletedParentsRequestNoAncestors(t *testing.T) {
	t.Parallel()
	for _, outcome := range []bench.Outcome{bench.Success, bench.Failure, bench.Cancelled} {
		b := setup(t)
		b.config.Source.LookBack.Commits = 1
		b.complete(b.master("c3").Request, outcome)
		b.config.Source.LookBack.Commits = 10
		require.Equal(t, []string{"c4 after c3"}, wants(b.master("c4").Created), outcome)
	}
}

func TestAParentThatCannotBeMeasuredIsNoted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for tag, c := range map[string]struct{ parent, says string }{
		"c0": {"", "no parent is known"},
		"c2": {"c1", "before the look-back of the project begins (2026-06-20)"},
		"x1": {"never-was", "its parent never-was is not measured: nobody has asked for it, and the commit source does not know it"},
	} {
		taken := b.create(bench.Request{Type: bench.Master, Tag: tag, Origin: bench.Origin{Parent: c.parent}})
		require.Len(t, taken.Created, 1)
		require.Empty(t, taken.Request.WaitsFor)
		require.Contains(t, taken.Request.ParentNote, c.says)
	}
}

// A try build waits for its parent, or else for its grandparent: what the parent
// lacks is measured together with the build.
func TestTryBuildsRequestGrandparents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	taken := b.create(bench.Request{Type: bench.Try, Tag: "t1", Origin: bench.Origin{Parent: "c4"}})
	require.Equal(t, []string{"c2 after ", "c3 after c2", "t1 after c3"}, wants(taken.Created))
	require.Contains(t, taken.Request.ParentNote, "its parent c4 has no request of its own")

	// Somebody asks for the parent after all: then the build waits for that.
	require.Equal(t, []string{"c4 after c3"}, wants(b.master("c4").Created))
	r, err := b.store.Request(t.Context(), taken.Request.ID)
	require.NoError(t, err)
	require.Equal(t, "c4", r.WaitsFor)
	require.Empty(t, r.ParentNote)

	unknown := b.create(bench.Request{Type: bench.Try, Tag: "t2", Origin: bench.Origin{Parent: "never-was"}})
	require.Empty(t, unknown.Request.WaitsFor)
	require.Contains(t, unknown.Request.ParentNote, "what is lacking of it is measured together with this one")
}

// What a request was made with counts where the notification does not say.
func TestArtifactsReadyFillsInWhatIsKnown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.config.Source.LookBack.Commits = 1
	for name, c := range map[string]struct {
		made   bench.Request
		notice store.Notice
		parent string
		waits  string
	}{
		"the notification's": {bench.Request{Origin: bench.Origin{Parent: "c4"}}, store.Notice{Tag: "t1", Parent: "c3"}, "c3", ""},
		"the request's":      {bench.Request{Origin: bench.Origin{Parent: "c4"}}, store.Notice{Tag: "t2"}, "c4", ""},
		"the commit's":       {bench.Request{}, store.Notice{Tag: "c5"}, "c4", ""},
		"nobody's":           {bench.Request{}, store.Notice{Tag: "t3"}, "", ""},
	} {
		c.made.Type, c.made.Status = bench.Try, bench.WaitingForArtifacts
		made := b.create(c.made).Request
		require.Equal(t, bench.WaitingForArtifacts, made.Status, name)
		for i := range 2 {
			receipt, err := b.ArtifactsReady(t.Context(), made, c.notice, b.config)
			require.NoError(t, err, name)
			require.Equal(t, i > 0, receipt.Duplicate, name)
			require.Equal(t, c.notice.Tag, receipt.Request.Tag, name)
			require.Equal(t, c.parent, receipt.Request.Parent, name)
			require.Equal(t, c.waits, receipt.Request.WaitsFor, name)
			require.Equal(t, bench.ArtifactsReady, receipt.Request.Status, name)
		}
	}
}

// The ancestors of a build are asked for when it is known what it was made from.
func TestArtifactsReadyRequestsAncestors(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.create(bench.Request{Type: bench.Try, Origin: bench.Origin{Parent: "c4"}, Standing: bench.Standing{Status: bench.WaitingForArtifacts}}).Request
	receipt, err := b.ArtifactsReady(t.Context(), made, store.Notice{Tag: "t1"}, b.config)
	require.NoError(t, err)
	require.Equal(t, []string{"c2 after ", "c3 after c2"}, wants(receipt.Created))
	require.Equal(t, "c3", receipt.Request.WaitsFor)

	b.complete(receipt.Request, bench.Success)
	late, err := b.ArtifactsReady(t.Context(), made, store.Notice{Tag: "t2", Parent: "c5"}, b.config)
	require.NoError(t, err)
	require.True(t, late.Late)
	require.Empty(t, late.Created)
}

// Whoever is in progress stays: only what waits is superseded.
func TestSupersedingSparesRunningBuilds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.config.Queue.Supersede = true
	build := func(pr int, tag string) intake.Taken {
		r := bench.Request{Type: bench.Try, Tag: tag, Origin: bench.Origin{PR: pr}}
		if tag == "" {
			r.Status = bench.WaitingForArtifacts
		}
		return b.create(r)
	}
	running := build(7, "t1").Request
	_, err := b.store.Admit(t.Context(), project, 1, func([]bench.Request, map[string]bool) (store.Admission, error) {
		return store.Admission{Next: []bench.RequestID{running.ID}}, nil
	})
	require.NoError(t, err)
	ready, waiting := build(7, "t2").Request, build(8, "").Request
	newest := build(7, "")
	require.Len(t, newest.Superseded, 1)
	require.Equal(t, ready.ID, newest.Superseded[0].ID)
	require.Equal(t, bench.Cancelled, newest.Superseded[0].Outcome)
	for _, id := range []bench.RequestID{running.ID, waiting.ID, newest.Request.ID} {
		r, err := b.store.Request(t.Context(), id)
		require.NoError(t, err)
		require.NotEqual(t, bench.Completed, r.Status)
	}
}
