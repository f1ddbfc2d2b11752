package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// history is a repository with twelve commits on its main branch, one of them a merge,
// two releases, and three builds of proposed changes.
type history struct {
	gitRepository
	log     string   // of executions: "commit" for each
	commits []string // oldest first
	tries   []tryBuild
	suite   string
}

type tryBuild struct {
	tag, parent string
	pr          int
}

const historySuite = `name: history
artifact:
  provider: build
  parameters:
    repository: %[1]s
    command: [sh, -c, "mkdir out && cp id out/id"]
    output: out
iterations: 2
benchmarks:
  - {name: one, kind: runtime, measure: {run: [sh, -c, 'echo "$$(cat "$$1/id") one" >> "%[2]s"', sh, "${artifact}"]}}
  - {name: two, kind: runtime, measure: {run: [sh, -c, 'echo "$$(cat "$$1/id") two" >> "%[2]s"', sh, "${artifact}"]}}
`

func (h *history) change(t *testing.T, id string) string {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(h.dir, "id"), []byte(id), 0o644))
	h.git(t, "add", "id")
	return h.commit(t, id)
}

func newHistory(t *testing.T) *history {
	t.Helper()
	h := &history{gitRepository: newGitRepository(t), log: filepath.Join(t.TempDir(), "executions"), suite: t.TempDir()}
	require.NoError(t, os.WriteFile(h.log, nil, 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(h.suite, "suite.yaml"), fmt.Appendf(nil, historySuite, h.dir, h.log), 0o644))
	for i := range 12 {
		if i == 6 { // a merged branch counts as one commit
			h.git(t, "checkout", "--quiet", "-b", "side")
			h.change(t, "side")
			h.git(t, "checkout", "--quiet", "main")
			h.git(t, "merge", "--quiet", "--no-ff", "-m", "merge", "side")
			h.commits = append(h.commits, h.git(t, "rev-parse", "HEAD"))
			continue
		}
		h.commits = append(h.commits, h.change(t, fmt.Sprintf("c%d", i+1)))
	}
	h.git(t, "tag", "v1.0.0", h.commits[3])
	h.git(t, "tag", "v1.1.0", h.commits[8])
	for i, parent := range []int{2, 6, 11} {
		h.git(t, "checkout", "--quiet", "-b", fmt.Sprint("try", i), h.commits[parent])
		h.tries = append(h.tries, tryBuild{tag: h.change(t, fmt.Sprint("t", i+1)), parent: h.commits[parent], pr: 100 + i})
	}
	h.git(t, "checkout", "--quiet", "main")
	return h
}

// executions counts measurements by "commit's text, benchmark".
func (h *history) executions(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile(h.log)
	require.NoError(t, err)
	out := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		out[strings.TrimSpace(line)]++
	}
	return out
}

// life is a service on which everything of a history has been requested, in random
// order.
type life struct {
	*stack
	*history
	ids   []bench.RequestID
	tries map[bench.RequestID]tryBuild
	said  sync.WaitGroup
}

// begin submits all requests. A simulated CI system announces the artifacts of each try
// build several times, late and out of order.
func begin(t *testing.T, seed uint64, args ...string) *life {
	t.Helper()
	l := &life{stack: startWhole(t, args...), history: newHistory(t), tries: make(map[bench.RequestID]tryBuild)}
	random := rand.New(rand.NewPCG(seed, 0))
	none := 0
	l.applyProject(t, "history", l.suite, bench.ProjectConfig{
		Source: bench.CommitSource{Git: l.dir0(), Every: "24h", Backfill: &none}, Queue: bench.QueuePolicy{MaxInProgress: 2}, FailoverAfter: "never",
	})
	require.Eventually(t, func() bool {
		list, err := l.api.Commits(t.Context(), "history", 0)
		return err == nil && len(list.Commits) == len(l.commits)
	}, patience, 50*time.Millisecond)

	var wishes []apiclient.NewRequest
	for _, c := range l.commits {
		wishes = append(wishes, apiclient.NewRequest{Project: "history", Type: bench.Master, Tag: c})
	}
	for _, v := range []string{"v1.0.0", "v1.1.0"} {
		wishes = append(wishes, apiclient.NewRequest{Project: "history", Type: bench.Release, Tag: v})
	}
	for _, b := range l.history.tries {
		wishes = append(wishes, apiclient.NewRequest{Project: "history", Type: bench.Try, PR: b.pr})
	}
	random.Shuffle(len(wishes), func(i, j int) { wishes[i], wishes[j] = wishes[j], wishes[i] })
	type notice struct {
		id    bench.RequestID
		build tryBuild
	}
	var notices []notice
	for _, w := range wishes {
		r := l.submit(t, w)
		l.ids = append(l.ids, r.ID)
		for _, b := range l.history.tries {
			if w.Type == bench.Try && b.pr == w.PR {
				l.tries[r.ID] = b
				notices = append(notices, notice{r.ID, b}, notice{r.ID, b}, notice{r.ID, b})
			}
		}
	}
	random.Shuffle(len(notices), func(i, j int) { notices[i], notices[j] = notices[j], notices[i] })
	for _, n := range notices {
		delay := time.Duration(random.IntN(4000)) * time.Millisecond
		l.said.Go(func() {
			time.Sleep(delay) // a CI system takes its time
			for range 100 {   // and repeats its message until it is accepted
				if _, err := l.api.ArtifactsReady(t.Context(), string(n.id), apiclient.ArtifactsReady{Tag: n.build.tag, Parent: n.build.parent}); err == nil || t.Context().Err() != nil {
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
	return l
}

// dir0 returns the repository's directory; the stack has a dir too.
func (l *life) dir0() string { return l.history.dir }

// halfway waits until n requests have ended.
func (l *life) halfway(t *testing.T, n int) {
	t.Helper()
	conn := l.database(t)
	require.Eventually(t, func() bool {
		var ended int
		err := conn.QueryRow(t.Context(), `select count(*) from benchmark_request where project = 'history' and status = 'completed'`).Scan(&ended)
		return err == nil && ended >= n
	}, patience, 20*time.Millisecond)
}

// complete waits for all requests to end and requires their success.
func (l *life) complete(t *testing.T) {
	t.Helper()
	for _, id := range l.ids {
		d := l.await(t, id, patience)
		requireSuccess(t, d.Outcome, d)
		b, isTry := l.tries[id]
		if !isTry {
			continue
		}
		require.Equal(t, b.tag, d.Tag)
		require.Equal(t, b.parent, d.Baseline)
		report, err := l.api.Compare(t.Context(), apiclient.CompareQuery{Project: "history", A: b.parent, B: b.tag})
		require.NoError(t, err)
		require.Empty(t, report.Missing, "a try build has its parent's results to compare with")
	}
	l.said.Wait()
	l.requireCollections(t, "history", 2)
}

// admissions requires that 'queue simulate', given the recorded state of each
// admission, names the admitted request as the first admissible one.
func (l *life) admissions(t *testing.T) {
	t.Helper()
	list, err := l.api.Admissions(t.Context(), "history")
	require.NoError(t, err)
	require.Len(t, list.Admissions, len(l.ids))
	for _, a := range list.Admissions {
		file := filepath.Join(t.TempDir(), "state.json")
		require.NoError(t, os.WriteFile(file, a.State, 0o644))
		var stdout bytes.Buffer
		cmd := exec.CommandContext(t.Context(), l.bin, "queue", "simulate", "--file", file, "-o", "json", "--policy", a.Policy)
		cmd.Stdout = &stdout
		require.NoError(t, cmd.Run())
		var order struct {
			Order []struct {
				ID         bench.RequestID `json:"id"`
				Admissible bool            `json:"admissible"`
			} `json:"order"`
		}
		require.NoError(t, json.Unmarshal(stdout.Bytes(), &order))
		for _, e := range order.Order {
			if e.Admissible {
				require.Equal(t, a.Request, e.ID, "admitted out of order, from\n%s", a.State)
				break
			}
		}
	}
}

// Twelve commits, three proposed changes and two releases of a project are built and
// measured, in whatever order they were requested, while one collector is killed and the
// other one is drained and replaced.
func TestLifeOfAProject(t *testing.T) {
	t.Parallel()
	l := begin(t, 1, "--collectors", "2x1", "--share-cores")
	l.halfway(t, 3)
	l.kill(t, "collector-local-1") // up restarts it

	// An ad-hoc command needs no admission by the project.
	conn := l.database(t)
	var before time.Time
	require.NoError(t, conn.QueryRow(t.Context(), `select clock_timestamp()`).Scan(&before))
	adhoc := l.submit(t, apiclient.NewRequest{Command: &apiclient.Command{Argv: []string{"true"}}})
	requireSuccess(t, l.await(t, adhoc.ID, ended).Outcome, adhoc.ID)
	var earlier int
	require.NoError(t, conn.QueryRow(t.Context(), `
		select count(*) from job_queue other, job_queue mine join request_job rj on rj.job_id = mine.id
		where rj.request_id = $1 and other.id <> mine.id and other.started_at > greatest($2, mine.handed_out_at) and other.started_at < mine.started_at`, adhoc.ID, before).Scan(&earlier))
	require.LessOrEqual(t, earlier, 1, "it is one of the next two to start")

	// The other collector is removed, and a new machine replaces it.
	_, code := l.run(t, "collector", "drain", "local-2")
	require.Zero(t, code)
	var drained time.Time
	require.NoError(t, conn.QueryRow(t.Context(), `select clock_timestamp()`).Scan(&drained))
	g := l.enrol(t, "replacement", "--size-class", "1", "--pool", l.collector(t, "local-1").Pool)
	g.start(t, l.bin, "collector", "run", "--co-located")
	l.complete(t)
	l.admissions(t)
	var late, replaced int
	require.NoError(t, conn.QueryRow(t.Context(), `
		select count(*) filter (where collector = 'local-2' and started_at > $1), count(*) filter (where collector = 'replacement') from job_run`,
		drained).Scan(&late, &replaced))
	require.Zero(t, late, "a drained collector takes no further job")
	require.Positive(t, replaced)
}

// storedTests lists what has a stored result, keyed like executions, except for the two
// commits that are measured again as releases.
func (l *life) storedTests(t *testing.T) []string {
	t.Helper()
	conn := l.database(t)
	rows, err := conn.Query(t.Context(), `
		select a.tag, tc.benchmark from test_result r join artifact a on a.id = r.artifact_id join test_case tc on tc.id = r.test_case_id
		where a.project = 'history'`)
	require.NoError(t, err)
	defer rows.Close()
	var out []string
	for rows.Next() {
		var tag, benchmark string
		require.NoError(t, rows.Scan(&tag, &benchmark))
		if id := l.git(t, "show", tag+":id"); id != "c4" && id != "c9" {
			out = append(out, id+" "+benchmark)
		}
	}
	require.NoError(t, rows.Err())
	return out
}

// Temporal's database is lost in the middle of a project's life. Stored results are not
// measured again.
func TestLongLifeOfAProjectAfterLosingTemporalsDatabase(t *testing.T) {
	t.Parallel()
	l := begin(t, 2, "--collectors", "2x1", "--share-cores")
	l.halfway(t, 5)
	stored := l.storedTests(t)
	require.NotEmpty(t, stored)
	before := l.history.executions(t)
	l.stop(t)
	l.deleteTemporal(t)
	l.start(t)
	l.complete(t)
	l.admissions(t)
	after := l.history.executions(t)
	for _, test := range stored {
		require.Equal(t, before[test], after[test], "%s was stored when Temporal's database was lost", test)
	}
}
