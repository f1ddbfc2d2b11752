package orchestration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/activities/orchestration"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/intake"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/sizing"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
	"github.com/benchloom/benchloom/internal/suite"
	"github.com/benchloom/benchloom/internal/suitecache"
)

const (
	// Numbers of random histories that are played; a failing one prints its seed,
	// and BENCHLOOM_HISTORY=seed plays that one alone.
	someHistories, allHistories = 4, 40
	// players play them side by side.
	players = 4
)

const historySuite = `name: history
artifact: {provider: directory, parameters: {path: "/artifacts/{tag}"}}
targets: [x86_64-unknown-linux-gnu, aarch64-unknown-linux-gnu]
iterations: 1
profiles: {build: {}, check: {}}
backends: {gc: {}}
procedures:
  compiletime:
    scenarios:
      full: {measure: {run: [sh, -c, "true"]}}
benchmarks:
  - {name: gin, kind: compiletime}
  - {name: kit, kind: compiletime}
  - {name: sort, kind: runtime, measure: {run: [sh, -c, "true"]}}
`

// Whatever is asked for in whatever order, cancelled, told twice or not at all:
// when a job starts, its parent's corresponding test cases are stored, or it is
// recorded why they never will be; nothing is measured twice; there are never more
// in progress than allowed; every admission follows from its recorded state; and
// everything ends.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	playHistories(t, 0, someHistories)
}

func TestLongRandomHistories(t *testing.T) {
	t.Parallel()
	playHistories(t, someHistories, allHistories)
}

func playHistories(t *testing.T, first, end int) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, suite.FileName), []byte(historySuite), 0o644))
	packed, err := suite.Pack(dir)
	require.NoError(t, err)
	url := storetest.URL(t)
	record := storetest.Open(t, url)
	require.NoError(t, record.PutSuite(t.Context(), packed.Hash, "history", packed.Archive))
	db, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	suites := suitecache.New(record)
	play := func(t *testing.T, seed int) {
		t.Helper()
		h := &chronicle{t: t, ctx: t.Context(), seed: seed, store: record, db: db, suite: packed.Hash}
		h.Activities = &orchestration.Activities{
			Store: record, Workflows: h, Suites: suites, Log: slog.New(slog.DiscardHandler), OfflineAfter: time.Hour,
			Sizes: sizing.Sizes{Record: record, OfflineAfter: time.Hour, Now: time.Now, Random: rand.Float64, Log: slog.New(slog.DiscardHandler)},
		}
		h.play()
	}
	if only := os.Getenv("BENCHLOOM_HISTORY"); only != "" {
		var seed int
		_, err := fmt.Sscan(only, &seed)
		require.NoError(t, err)
		play(t, seed)
		return
	}
	for p := range players {
		t.Run(fmt.Sprint("player ", p), func(t *testing.T) {
			t.Parallel()
			for seed := first + p; seed < end; seed += players {
				play(t, seed)
			}
		})
	}
}

// chronicle is a project with all that happens to it. It plays the part of the
// workflows (see history_workflows_test.go), collectors, CI systems and people.
type chronicle struct {
	*orchestration.Activities
	workflows // what is not told here is only remembered
	t         *testing.T
	ctx       context.Context
	seed      int
	rand      *rand.Rand
	store     *store.Store
	db        *pgxpool.Pool
	suite     string

	project    string
	config     bench.ProjectConfig
	class      bench.SizeClass // its own, so that histories share no collectors
	collectors []bench.Collector
	// armDead: the collector of the optional target takes nothing.
	armDead bool
	intake  intake.Intake
	commits []string
	parents map[string]string // of commits
	tries   int
	broken  map[string]bool // tag and test case: it fails each time
	// measured holds the results, by tag and test case.
	measured map[string]bool
	// waived are jobs that somebody has cancelled, with each request that waited.
	waived []string

	machines []*machine // of requests, in the order of their making
	jobs     []*jobFlow
	// handedOut are jobs that are to be started.
	starting  sync.Mutex
	handedOut []protocol.JobInput
	// faulty: messages get lost, calls are repeated, collectors die.
	faulty bool
	log    []string
}

// play plays the history from beginning to end.
func (h *chronicle) play() {
	defer func() {
		if h.t.Failed() {
			h.t.Logf("seed %d: BENCHLOOM_HISTORY=%d plays it again\n%s", h.seed, h.seed, strings.Join(h.log, "\n"))
		}
	}()
	h.begin()
	wishes, actions := 5+h.rand.IntN(6), 60+h.rand.IntN(80)
	for i := range actions {
		if i*wishes/actions != (i+1)*wishes/actions {
			h.wish()
		}
		h.something()
		if i%25 == 0 {
			h.checkGraphs()
		}
	}
	h.finish()
	h.checkEnd()
	h.checkGraphs()
	h.execute(`delete from collector_config where size_class = $1`, h.class)
}

func (h *chronicle) begin() {
	h.rand = rand.New(rand.NewPCG(uint64(h.seed), 42))
	h.project, h.class, h.faulty = fmt.Sprintf("history-%d", h.seed), bench.SizeClass(h.seed+1), true
	h.broken, h.measured, h.parents = map[string]bool{}, map[string]bool{}, map[string]string{}
	h.intake = intake.Intake{Record: h.store, Random: reader{h.rand}, Now: time.Now}
	h.config = bench.ProjectConfig{
		Targets: []bench.Target{target}, Size: bench.SizePolicy{Class: h.class}, MaxJobFails: 2,
		Queue:  bench.QueuePolicy{MaxInProgress: bench.SlotCount(1 + h.rand.IntN(3)), Supersede: h.chance(0.3), Policy: []string{"spec", "upstream"}[h.rand.IntN(2)]},
		Verify: []bench.VerifyMode{bench.VerifyOff, bench.VerifySuspects, bench.VerifySuspects, bench.VerifyAll}[h.rand.IntN(4)],
		Source: bench.CommitSource{Git: "/repository", LookBack: bench.LookBack{Commits: 2 + h.rand.IntN(6)}},
	}
	h.register(target, "c1")
	h.register(target, "c2")
	switch h.rand.IntN(3) {
	case 0: // nobody serves it
		h.config.OptionalTargets = []bench.Target{arm}
	case 1:
		h.config.OptionalTargets = []bench.Target{arm}
		h.register(arm, "c3")
		h.armDead = h.chance(0.5)
	}
	text, err := json.Marshal(h.config)
	h.ok(err)
	_, err = h.store.ApplyProject(h.ctx, store.Project{Name: h.project, Config: text, SuiteHash: h.suite})
	h.ok(err)
	for i := range 3 + h.rand.IntN(6) {
		h.commit(i)
	}
}

// commit makes a commit, mostly on top of the one before. Some are not known to
// the commit source, some were made before the look-back begins, some have a
// parent that nobody knows.
func (h *chronicle) commit(i int) {
	sha := fmt.Sprint("c", i)
	switch {
	case i == 0:
	case h.chance(0.1):
		h.parents[sha] = "unknown"
	case h.chance(0.2):
		h.parents[sha] = h.commits[h.rand.IntN(i)]
	default:
		h.parents[sha] = h.commits[i-1]
	}
	h.commits = append(h.commits, sha)
	if h.chance(0.1) {
		return
	}
	age := time.Duration(20-i) * 24 * time.Hour
	if i < 3 && h.chance(0.2) {
		age += 60 * 24 * time.Hour
	}
	h.execute(`insert into commit (project, sha, parent, position, committed_at) values ($1, $2, $3, $4, $5)`,
		h.project, sha, h.parents[sha], i, time.Now().Add(-age))
}

func (h *chronicle) register(t bench.Target, name string) {
	c, err := h.store.RegisterCollector(h.ctx, bench.Collector{
		Name: fmt.Sprintf("%s-of-%d", name, h.seed), Target: t, SizeClass: h.class, Pool: "main", MachineID: fmt.Sprint(name, h.seed),
		Version: "1", HardwareID: "cpu", Facts: json.RawMessage(`{}`),
	}, offline)
	h.ok(err)
	h.collectors = append(h.collectors, c)
}

// wish asks for something to be benchmarked.
func (h *chronicle) wish() {
	r := bench.Request{Project: h.project, Submission: bench.Submission{Submitter: "ada"}, Standing: bench.Standing{Status: bench.ArtifactsReady}}
	switch n := h.rand.IntN(20); {
	case n < 8:
		r.Type, r.Tag = bench.Master, h.commits[h.rand.IntN(len(h.commits))]
		r.Parent = h.parents[r.Tag]
	case n < 16:
		h.tries++
		r.Type, r.PR = bench.Try, 1+h.rand.IntN(3)
		if h.chance(0.5) {
			r.Tag, r.Parent = fmt.Sprint("t", h.tries), h.commits[h.rand.IntN(len(h.commits))]
		}
		if r.Tag == "" || h.chance(0.3) {
			r.Status = bench.WaitingForArtifacts
		}
	case n < 18:
		r.Type, r.Tag = bench.Release, fmt.Sprintf("1.%d.0", h.rand.IntN(5))
	default:
		r.Type, r.Tag = bench.AdHoc, fmt.Sprint("own-", len(h.machines))
	}
	if h.chance(0.6) { // a benchmark, a profile that others lack
		r.Selection.Benchmarks = [][]string{{"gin"}, {"gin", "kit"}, {"kit", "sort"}, {"gin", "kit", "sort"}}[h.rand.IntN(4)]
		r.Selection.Profiles = [][]string{nil, {"build"}, {"check"}}[h.rand.IntN(3)]
	}
	for range 1 + h.rand.IntN(2) { // whoever asks gets no answer, perhaps, and asks again
		taken, err := h.intake.Create(h.ctx, r, h.config)
		if strings.Contains(fmt.Sprint(err), "conflict") {
			h.note("wish for %s %s: %v", r.Type, r.Tag, err)
			return
		}
		h.ok(err)
		h.note("wish for %s %s (parent %s): %s waits for %q, %d new, note %q", r.Type, r.Tag, r.Parent, taken.Request.ID, taken.Request.WaitsFor, len(taken.Created), taken.Request.ParentNote)
		for _, c := range taken.Created {
			h.machines = append(h.machines, &machine{ref: protocol.RequestRef{Project: h.project, ID: c.ID}, kind: c.Type})
		}
		for _, s := range taken.Superseded {
			h.machine(s.ID).cancelled = true
		}
		if r.Tag == "" {
			return // asked for twice, these would be two builds
		}
	}
}

// say tells that the artifacts of a try build are ready; also of one that has
// ended, or said so before.
func (h *chronicle) say() {
	var ids []bench.RequestID
	for _, m := range h.machines {
		if m.kind == bench.Try {
			ids = append(ids, m.ref.ID)
		}
	}
	if len(ids) > 0 {
		h.notify(ids[h.rand.IntN(len(ids))])
	}
}

func (h *chronicle) notify(id bench.RequestID) {
	r, err := h.store.Request(h.ctx, id)
	if err != nil {
		return // purged
	}
	n := store.Notice{Tag: r.Tag, Parent: r.Parent}
	if n.Tag == "" {
		n = store.Notice{Tag: "t-" + string(id), Parent: h.commits[len(id)%len(h.commits)]}
	}
	for range 1 + h.rand.IntN(2) {
		receipt, err := h.intake.ArtifactsReady(h.ctx, r, n, h.config)
		h.ok(err)
		h.note("artifacts of %s are ready as %s: duplicate %v, late %v, waits for %q", id, n.Tag, receipt.Duplicate, receipt.Late, receipt.Request.WaitsFor)
		h.equal(r.Status == bench.Completed, receipt.Late, "a late one starts nothing")
		for _, c := range receipt.Created {
			h.machines = append(h.machines, &machine{ref: protocol.RequestRef{Project: h.project, ID: c.ID}, kind: c.Type})
		}
	}
	h.nudge(id)
}

// something happens.
func (h *chronicle) something() {
	switch n := h.rand.IntN(100); {
	case n < 40:
		if i := h.rand.IntN(max(1, len(h.machines))); i < len(h.machines) {
			h.step(h.machines[i])
		}
	case n < 52:
		h.admit()
	case n < 85:
		h.stepJob()
	case n < 93:
		h.say()
	case n < 96:
		h.cancelSomeRequest()
	case n < 97:
		h.cancelSomeJob()
	case n < 99:
		h.removeSomeArtifact()
	default: // its workflow was reset, or continues as new
		if len(h.machines) > 0 {
			m := h.machines[h.rand.IntN(len(h.machines))]
			m.phase, m.stage = loading, 0
		}
	}
}

func (h *chronicle) cancelSomeRequest() {
	if len(h.machines) == 0 {
		return
	}
	m := h.machines[h.rand.IntN(len(h.machines))]
	_, err := h.store.CancelRequest(h.ctx, m.ref.ID, "ada", "on a whim")
	if err == nil {
		h.note("%s is cancelled", m.ref.ID)
		m.cancelled = true
	}
}

func (h *chronicle) cancelSomeJob() {
	open := h.openJobs()
	if len(open) > 0 {
		j := open[h.rand.IntN(len(open))]
		h.note("job %s is cancelled in the Web UI", j.in.Key)
		j.cancelled = true
	}
}

// removeSomeArtifact removes the results of an artifact that nobody is being
// compared with, and sometimes its jobs and its request, too.
func (h *chronicle) removeSomeArtifact() {
	tag := h.commits[h.rand.IntN(len(h.commits))]
	if h.count(`select count(*) from job_queue where project = $1 and tag = $2 and status in ('queued', 'handed_out', 'in_progress')`, h.project, tag)+
		h.count(`select count(*) from benchmark_request where project = $1 and status = 'in_progress' and (parent = $2 or tag = $2)`, h.project, tag)+
		h.count(`select count(*) from benchmark_request where project = $1 and status <> 'completed' and tag = $2`, h.project, tag) > 0 {
		return
	}
	h.execute(`delete from test_result where artifact_id in (select id from artifact where project = $1 and tag = $2)`, h.project, tag)
	for key := range h.measured {
		if strings.HasPrefix(key, tag+" ") {
			delete(h.measured, key)
		}
	}
	if h.chance(0.5) {
		h.note("the results of %s are gone", tag)
		return
	}
	h.note("%s is purged", tag)
	h.jobs = slices.DeleteFunc(h.jobs, func(j *jobFlow) bool { return j.in.Tag == tag })
	h.execute(`delete from job_queue where project = $1 and tag = $2`, h.project, tag)
	h.execute(`delete from benchmark_request where project = $1 and tag = $2 and type <> 'adhoc'`, h.project, tag)
	h.machines = slices.DeleteFunc(h.machines, func(m *machine) bool {
		return h.count(`select count(*) from benchmark_request where id = $1`, m.ref.ID) == 0
	})
}

// finish lets everything come to its end: nothing gets lost any more.
func (h *chronicle) finish() {
	h.faulty = false
	for range 400 {
		for _, m := range slices.Clone(h.machines) {
			if r := h.request(m.ref.ID); r.Status == bench.WaitingForArtifacts {
				if h.chance(0.5) {
					h.execute(`update benchmark_request set created_at = created_at - interval '15 days' where id = $1`, r.ID)
				} else {
					h.notify(r.ID)
				}
			}
			for range 3 {
				h.step(m)
			}
		}
		h.admit()
		for _, c := range h.collectors {
			h.handOutTo(c)
		}
		for range len(h.openJobs()) {
			h.stepJob()
		}
		if !slices.ContainsFunc(h.machines, func(m *machine) bool { return !m.over() }) {
			return
		}
	}
	for _, m := range h.machines {
		if !m.over() {
			r := h.request(m.ref.ID)
			h.t.Errorf("request %s (%s %s, parent %s, waits for %q) has not ended: %s, %s; phase %d", r.ID, r.Type, r.Tag, r.Parent, r.WaitsFor, r.Status, r.Message, m.phase)
		}
	}
	h.t.FailNow()
}

func (h *chronicle) chance(p float64) bool { return h.rand.Float64() < p }

// fault happens now and then, until the end is near.
func (h *chronicle) fault(p float64) bool { return h.chance(p) && h.faulty }

func (h *chronicle) note(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

func (h *chronicle) ok(err error) {
	h.t.Helper()
	require.NoError(h.t, err)
}

func (h *chronicle) equal(want, got any, why string) {
	h.t.Helper()
	require.Equal(h.t, want, got, why)
}

func (h *chronicle) execute(sql string, args ...any) {
	h.t.Helper()
	_, err := h.db.Exec(h.ctx, sql, args...)
	h.ok(err)
}

func (h *chronicle) count(sql string, args ...any) int {
	h.t.Helper()
	var n int
	h.ok(h.db.QueryRow(h.ctx, sql, args...).Scan(&n))
	return n
}

func (h *chronicle) request(id bench.RequestID) bench.Request {
	h.t.Helper()
	r, err := h.store.Request(h.ctx, id)
	h.ok(err)
	return r
}

// reader reads random bytes of the history's own source.
type reader struct{ rand *rand.Rand }

var _ io.Reader = reader{}

func (r reader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r.rand.Uint32())
	}
	return len(p), nil
}
