package orchestration_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
	"github.com/benchloom/benchloom/internal/graphset"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

func templateNode(t testing.TB, name string, d graph.Definition) graph.Node {
	t.Helper()
	j, err := graph.NewJob(d)
	require.NoError(t, err)
	return graph.Node{Name: name, Job: j}
}

func commandNode(t testing.TB, name string) graph.Node {
	t.Helper()
	return templateNode(t, name, graph.Command{Target: target, Steps: []graph.Step{{Argv: []string{"true"}}}})
}

// ask requests a graph.
func (b *bundle) ask(nodes []graph.Node, edges ...graph.Edge) protocol.RequestRef {
	b.t.Helper()
	g, err := graph.New(nodes, edges)
	require.NoError(b.t, err)
	r, err := bench.NewGraphRequest(project, bench.TemplateCall{Name: "nightly", Definitions: "d", Graph: g.Hash()}, bench.Submission{Submitter: "ada"})
	require.NoError(b.t, err)
	r.ID, err = bench.NewRequestID(rand.Reader)
	require.NoError(b.t, err)
	_, created, err := b.store.CreateGraphRequest(b.t.Context(), r, g)
	require.NoError(b.t, err)
	require.True(b.t, created)
	return protocol.RequestRef{Project: project, ID: r.ID}
}

// graphOf is the set of a request's graphs.
func (b *bundle) graphOf(ref protocol.RequestRef) graphset.Set {
	b.t.Helper()
	set, err := b.store.GraphSet(b.t.Context(), ref.ID)
	require.NoError(b.t, err)
	return set
}

// nodeStates are the states of the nodes that count, by name, with their messages.
func (b *bundle) nodeStates(ref protocol.RequestRef) map[string]string {
	b.t.Helper()
	set, out := b.graphOf(ref), make(map[string]string)
	states := set.States(time.Now())
	for _, n := range set.Nodes {
		if !n.Input && !n.Replaced {
			out[n.Name] = fmt.Sprint(states[n.Job].Status)
			if n.Message != "" {
				out[n.Name] += ": " + n.Message
			}
		}
	}
	return out
}

// What nodes measure is built before, by a node of the graph or as the project says; what is
// stored is not built again.
func TestAGraphBuildsWhatItsNodesMeasure(t *testing.T) {
	t.Parallel()
	b, _, c := setupBuilds(t)
	measure := func(name, tag string) graph.Node {
		return templateNode(t, name, graph.Benchmark{Tag: tag, Target: target, Iterations: 2})
	}
	recipe := bench.BuildRecipe{Repository: "/srv/repo.git", Command: []string{"make"}}
	build := func(name, tag string) graph.Node {
		return templateNode(t, name, graph.Build{Tag: tag, Target: target, BuildRecipe: recipe})
	}

	first := b.ask([]graph.Node{build("build", "1.0.0"), measure("measure", "1.0.0"), measure("other", "1.2.0")})
	b.handOut(first)
	require.Equal(t, map[string]string{"build": "ready", "measure": "blocked", "build 1.2.0 " + string(target): "ready", "other": "blocked"}, b.nodeStates(first))
	for _, j := range b.jobs(first) {
		if j.Build != nil {
			b.deliver(j, c, 1)
			b.recordEnd(j.Key, "")
		}
	}
	require.Equal(t, map[string]string{"build": "success", "measure": "ready", "build 1.2.0 " + string(target): "success", "other": "ready"}, withoutMessages(b.nodeStates(first)))

	// The trees of 1.0.0 and 1.1.0 are the same.
	again := b.ask([]graph.Node{build("build", "1.1.0"), measure("measure", "1.1.0")}, graph.Edge{From: "build", To: "measure", Condition: graph.OnSuccess})
	b.handOut(again)
	require.Equal(t, map[string]string{"build": "success: it is built and stored already", "measure": "ready"}, b.nodeStates(again))

	twins := b.ask([]graph.Node{build("one", "1.2.0"), templateNode(t, "two", graph.Build{Tag: "1.2.0", Target: target, BuildRecipe: bench.BuildRecipe{Repository: "/srv/repo.git", Command: []string{"make", "all"}}})})
	b.handOut(twins)
	require.Equal(t, map[string]string{"one": "success: it is built and stored already", "two": "ready"}, b.nodeStates(twins))
	same := b.ask([]graph.Node{templateNode(t, "two", graph.Build{Tag: "1.2.0", Target: target, BuildRecipe: bench.BuildRecipe{Repository: "/srv/repo.git", Command: []string{"make", "most"}}}),
		templateNode(t, "three", graph.Build{Tag: "1.2.0", Target: target, BuildRecipe: bench.BuildRecipe{Repository: "/srv/repo.git", Command: []string{"make", "most"}}})})
	_, err := b.Activities.Expand(t.Context(), own(same))
	require.ErrorContains(t, err, "node two: it builds the same as node three; make one node of them")
}

// Revisions of checkouts are found when the graph is written, so that a branch may move on.
func TestAGraphChecksOutWhatItsCommandsNeed(t *testing.T) {
	t.Parallel()
	b, h, _ := setupBuilds(t)
	script := func(revision string) graph.Node {
		return templateNode(t, "check", graph.Command{
			Target: target, Checkouts: []graph.Checkout{{Repository: "/srv/repo.git", Revision: revision}}, Steps: []graph.Step{{Argv: []string{"make"}}, {Argv: []string{"./check"}}},
		})
	}
	ref := b.ask([]graph.Node{script("1.2.0")})
	b.handOut(ref)
	h.trees["1.2.0"] = "tree c"
	job := b.jobs(ref)[0]
	require.Equal(t, []bench.ScriptCheckout{{Repository: "/srv/repo.git", Revision: "1.2.0", Commit: object("commit 1.2.0"), Tree: object("tree b")}}, job.Command.Script.Checkouts)
	require.Equal(t, "check", job.Name)
	require.Equal(t, []string{"make"}, job.Command.Script.Before[0].Argv)

	_, err := b.Activities.Expand(t.Context(), own(b.ask([]graph.Node{script("9.9.9")})))
	require.ErrorContains(t, err, "node check: ")
	require.ErrorContains(t, err, "9.9.9")
}

// withoutMessages keeps the states alone.
func withoutMessages(states map[string]string) map[string]string {
	out := make(map[string]string, len(states))
	for name, state := range states {
		out[name], _, _ = strings.Cut(state, ":")
	}
	return out
}

// The service compares and tells, each once, and says when the next limit passes.
func TestTheServiceCarriesOutNodes(t *testing.T) {
	t.Parallel()
	b := setup(t, `{}`)
	c := b.register("c1")
	require.Equal(t, bench.Success, b.released("1.0.0", c, 1).Outcome)
	require.Equal(t, bench.Success, b.released("1.1.0", c, 1).Outcome)
	ref := b.ask([]graph.Node{
		templateNode(t, "compare", graph.Compare{Tag: "1.1.0"}), templateNode(t, "nothing", graph.Compare{Tag: "1.0.0"}), templateNode(t, "gone", graph.Compare{Tag: "1.1.0", Baseline: "0.1.0"}),
		templateNode(t, "agree", graph.SignOff{Question: "Publish?", LimitSeconds: 3600}), templateNode(t, "tell", graph.Notify{Tag: "1.1.0", Text: "ready"}),
	}, graph.Edge{From: "compare", To: "agree", Condition: graph.OnSuccess}, graph.Edge{From: "agree", To: "tell", Condition: graph.OnSuccess})
	out, err := b.Activities.Expand(t.Context(), own(ref))
	require.NoError(t, err)
	require.InDelta(t, 3600, out.RecheckSeconds, 60)
	states := b.nodeStates(ref)
	require.Contains(t, states["compare"], "success: 1.1.0 compared with 1.0.0: ")
	require.Equal(t, "success: there is nothing to compare 1.0.0 with: no baseline of it has results", states["nothing"])
	require.Equal(t, "ready", states["agree"])
	require.Equal(t, "blocked", states["tell"])
	require.Equal(t, 2, out.Counts.Open)

	_, _, err = b.store.SignOff(t.Context(), ref.ID, b.keyOf(ref, "agree"), true, store.Act{Who: "grace"})
	require.NoError(t, err)
	p, err := b.Progress(t.Context(), protocol.ProgressInput{Request: ref, Stage: bench.StageOwn})
	require.NoError(t, err)
	require.Zero(t, p.Counts.Open)
	require.Zero(t, p.RecheckSeconds)
	require.Contains(t, b.nodeStates(ref)["tell"], "success: ready (1.1.0 compared with 1.0.0: ")
	done := b.complete(ref, "")
	require.Equal(t, bench.Success, done.Outcome, done.Message)
	require.Equal(t, "5 of 5 nodes succeeded", done.Message)
}

// keyOf is the key of the node that counts by now.
func (b *bundle) keyOf(ref protocol.RequestRef, name string) bench.JobKey {
	b.t.Helper()
	for _, n := range b.graphOf(ref).Nodes {
		if n.Name == name && !n.Replaced && !n.Input {
			return n.Job
		}
	}
	b.t.Fatalf("no node %s", name)
	return ""
}

// randomGraph has some nodes that each need some of those before.
func randomGraph(t testing.TB, random *mathrand.Rand) ([]graph.Node, []graph.Edge) {
	t.Helper()
	var nodes []graph.Node
	var edges []graph.Edge
	conditions := []graph.Condition{graph.OnSuccess, graph.OnSuccess, graph.OnResolved, graph.OnAny}
	for i := range 2 + random.IntN(6) {
		name := fmt.Sprintf("n%d", i)
		var n graph.Node
		switch random.IntN(6) {
		case 0:
			n = templateNode(t, name, graph.SignOff{Question: "Well?", LimitSeconds: 3600})
		case 1:
			n = templateNode(t, name, graph.Notify{Tag: "1.0.0", Text: name})
		default:
			n = commandNode(t, name)
		}
		n.LimitSeconds = 3600
		nodes = append(nodes, n)
		for before := range i {
			if random.IntN(3) == 0 {
				edges = append(edges, graph.Edge{From: fmt.Sprintf("n%d", before), To: name, Condition: conditions[random.IntN(len(conditions))]})
			}
		}
	}
	return nodes, edges
}

// graphPlay carries a graph out with random events, and with steps that do not happen as if
// the process had died before them.
type graphPlay struct {
	*bundle
	ref       protocol.RequestRef
	collector bench.Collector
	random    *mathrand.Rand
	told      []string
	// runs and asked count runs and calls, so that each has another ID.
	runs  int32
	asked int
}

func (p *graphPlay) note(format string, args ...any) {
	p.told = append(p.told, fmt.Sprintf(format, args...))
}

// check compares the rows with the rule: nothing runs before what it needs.
func (p *graphPlay) check() {
	p.t.Helper()
	set := p.graphOf(p.ref)
	states := set.States(time.Now())
	for _, n := range set.Nodes {
		if n.Input || n.Replaced {
			continue
		}
		state := states[n.Job]
		if n.Status == bench.JobHandedOut {
			require.Equal(p.t, graph.Ready, state.Status, "%s is handed out and is %s: %s\n%v", n.Name, state.Status, state.Reason, p.told)
		}
		if n.Status == bench.JobQueued {
			require.Contains(p.t, []graph.Status{graph.Ready, graph.Blocked, graph.Skipped}, state.Status)
		}
	}
}

// run ends a job that is handed out; a process may die before it has told anybody.
func (p *graphPlay) run(good bool) bool {
	p.t.Helper()
	jobs := p.jobs(p.ref)
	jobs = slices.DeleteFunc(jobs, func(j bench.Job) bool { return j.Status != bench.JobHandedOut })
	if len(jobs) == 0 {
		return false
	}
	j := jobs[p.random.IntN(len(jobs))]
	why := ""
	if good {
		p.measure(j, p.collector, 1)
	} else {
		why = "it broke"
	}
	p.note("%s ends: good %t", j.Name, good)
	if p.random.IntN(4) == 0 {
		p.note("nobody hears of it")
		_, err := p.store.FinishJob(p.t.Context(), j.Key, j.Rerun, why)
		require.NoError(p.t, err)
		return true
	}
	p.recordEnd(j.Key, why)
	return true
}

func (p *graphPlay) count() protocol.ProgressResult {
	p.t.Helper()
	out, err := p.Progress(p.t.Context(), protocol.ProgressInput{Request: p.ref, Stage: bench.StageOwn})
	require.NoError(p.t, err)
	return out
}

func (p *graphPlay) sweep() {
	p.t.Helper()
	dispatcher := p.dispatcher()
	require.NoError(p.t, dispatcher.Sweep(p.t.Context()))
}

// answer answers a sign-off that waits.
func (p *graphPlay) answer(agree bool) bool {
	p.t.Helper()
	set := p.graphOf(p.ref)
	states := set.States(time.Now())
	for _, n := range set.Nodes {
		if n.NodeKind() == graph.KindSignOff && states[n.Job].Status == graph.Ready && !n.Replaced && !n.Input {
			p.note("%s is answered: %t", n.Name, agree)
			_, _, err := p.store.SignOff(p.t.Context(), p.ref.ID, n.Job, agree, store.Act{Who: "ada"})
			require.NoError(p.t, err)
			return true
		}
	}
	return false
}

// lose ends a run with its machine; the job's workflow asks what to do.
func (p *graphPlay) lose() {
	p.t.Helper()
	for _, j := range p.jobs(p.ref) {
		if j.Status != bench.JobHandedOut {
			continue
		}
		p.runs++
		p.note("%s is lost", j.Name)
		p.start(j.Key, p.collector, p.runs)
		in := protocol.AssessInput{Project: project, Key: j.Key, Rerun: j.Rerun, Kind: bench.FailInfrastructure, Message: "the collector died"}
		answer, err := p.AssessJob(p.t.Context(), in)
		require.NoError(p.t, err)
		require.True(p.t, answer.Again, "%v", p.told)
		p.runs++
		p.measureAs(p.start(j.Key, p.collector, p.runs), j)
		p.recordEnd(j.Key, "")
		return
	}
}

// cancel ends a job that is handed out as a person may, twice.
func (p *graphPlay) cancel() {
	p.t.Helper()
	for _, j := range p.jobs(p.ref) {
		if j.Status == bench.JobHandedOut {
			p.note("%s is cancelled", j.Name)
			for range 2 {
				_, err := p.RecordJobEnd(p.t.Context(), protocol.JobEndInput{Project: project, Key: j.Key, Rerun: j.Rerun, TaskQueue: pool.TaskQueue(), Cancelled: true, GaveUp: "cancelled"})
				require.NoError(p.t, err)
			}
			return
		}
	}
}

// stale repeats the end of a job that was asked for again since, which changes nothing.
func (p *graphPlay) stale() {
	p.t.Helper()
	for _, j := range p.jobs(p.ref) {
		if j.Rerun == 0 {
			continue
		}
		p.note("an end of %s comes late", j.Name)
		in := protocol.JobEndInput{Project: project, Key: j.Key, Rerun: j.Rerun - 1, TaskQueue: pool.TaskQueue(), GaveUp: "late"}
		_, err := p.RecordJobEnd(p.t.Context(), in)
		require.NoError(p.t, err)
		answer, err := p.AssessJob(p.t.Context(), protocol.AssessInput{Project: project, Key: j.Key, Rerun: j.Rerun - 1, Kind: bench.FailInfrastructure})
		require.NoError(p.t, err)
		require.False(p.t, answer.Again)
		now := p.job(j.Key)
		require.Equal(p.t, []any{j.Status.Open(), j.Message, j.Rerun}, []any{now.Status.Open(), now.Message, now.Rerun}, "a hand-out may go on, but nothing has ended")
	}
}

// again retriggers a node that has ended, or runs it again as itself, twice with one key.
func (p *graphPlay) again() {
	p.t.Helper()
	set := p.graphOf(p.ref)
	states := set.States(time.Now())
	var ended []graphset.Node
	for _, n := range set.Nodes {
		if !n.Replaced && !n.Input && states[n.Job].Status.Ended() && n.Status != bench.JobQueued {
			ended = append(ended, n)
		}
	}
	if len(ended) == 0 {
		return
	}
	n := ended[p.random.IntN(len(ended))]
	downstream := []graphset.Downstream{graphset.DownstreamAll, graphset.DownstreamNone}[p.random.IntN(2)]
	rerun := p.random.IntN(2) == 0
	p.note("%s again, downstream %s, as itself: %t", n.Name, downstream, rerun)
	p.asked++
	for repeated := range 2 {
		done, err := p.store.Reopen(p.t.Context(), p.ref.ID, store.ReopenOptions{Retrigger: &graphset.Choice{Jobs: []bench.JobKey{n.Job}, Downstream: downstream, Rerun: rerun}},
			store.Act{Who: "ada", Key: fmt.Sprintf("%s %d", n.Job, p.asked)})
		if refused := (*graphset.ChoiceError)(nil); rerun && errors.As(err, &refused) && refused.TooLate {
			p.note("too late")
			return
		}
		require.NoError(p.t, err, "%v", p.told)
		require.Equal(p.t, repeated == 1, done.Repeated)
	}
}

// later lets six days pass.
func (p *graphPlay) later() {
	p.t.Helper()
	p.note("six days pass")
	for _, change := range []string{
		`update job_queue set created_at = created_at - interval '6 days', completed_at = completed_at - interval '6 days' where id in (select job_id from request_job where request_id = '%s')`,
		`update node_end set asked_at = asked_at - interval '6 days', ended_at = ended_at - interval '6 days' where node_id in (select n.job_id from graph_node n join graph g on g.id = n.graph_id where g.request_id = '%s')`,
		`update service_node set created_at = created_at - interval '6 days', ended_at = ended_at - interval '6 days' where request_id = '%s'`,
		`update graph set created_at = created_at - interval '6 days' where request_id = '%s'`,
	} {
		p.execute(fmt.Sprintf(change, p.ref.ID))
	}
}

func (p *graphPlay) play() {
	p.t.Helper()
	for range 2 {
		_, err := p.Expand(p.t.Context(), own(p.ref))
		require.NoError(p.t, err)
	}
	p.check()
	for range 6 + p.random.IntN(10) {
		switch p.random.IntN(14) {
		case 10, 11:
			p.lose()
		case 12:
			p.cancel()
		case 13:
			p.stale()
		case 0, 1, 2, 3:
			p.run(p.random.IntN(3) > 0)
		case 4, 5:
			p.count()
		case 6:
			p.answer(p.random.IntN(3) > 0)
		case 7:
			p.sweep()
		case 8:
			p.again()
		case 9:
			if p.random.IntN(3) == 0 {
				p.later()
			}
		}
		p.check()
	}
	// From here on all goes well, and what can end does.
	p.drain()
	set := p.graphOf(p.ref)
	for key, state := range set.States(time.Now()) {
		at := slices.IndexFunc(set.Nodes, func(n graphset.Node) bool { return n.Job == key && !n.Input })
		if n := set.Nodes[at]; !n.Replaced && !state.Status.Ended() {
			require.Equal(p.t, graph.Blocked, state.Status, "%s is stuck\n%v", n.Name, p.told)
			require.NotEqual(p.t, graph.ReasonCode(""), state.Reason.Code)
		}
	}
	p.later()
	p.drain() // what a skipped node released
	p.later()
	out := p.count()
	require.Zero(p.t, out.Counts.Open, "after all limits nothing is open: %v\n%v", p.nodeStates(p.ref), p.told)
	p.complete(p.ref, "")
}

// drain lets everything that can end do so.
func (p *graphPlay) drain() {
	p.t.Helper()
	for range 100 {
		p.sweep()
		p.count()
		p.check()
		if !p.run(true) && !p.answer(true) {
			return
		}
	}
}

func playGraphs(t *testing.T, first, graphs int) {
	t.Helper()
	b := setup(t, `{}`)
	c := b.register("c1")
	for seed := first; seed < first+graphs; seed++ {
		random := mathrand.New(mathrand.NewPCG(uint64(seed), 7))
		nodes, edges := randomGraph(t, random)
		p := &graphPlay{bundle: b, ref: b.ask(nodes, edges...), collector: c, random: random, told: []string{fmt.Sprintf("seed %d", seed)}, runs: 1000}
		p.play()
	}
}

// Random graphs, events and killed processes: nothing runs before what it needs, nothing is
// stuck, and one call with a key acts once.
func TestRandomGraphsRunAsTheirEdgesDemand(t *testing.T) {
	t.Parallel()
	playGraphs(t, 0, 4)
}

func TestLongRandomGraphsRunAsTheirEdgesDemand(t *testing.T) {
	t.Parallel()
	graphs := 300
	if more, err := strconv.Atoi(os.Getenv("BENCHLOOM_GRAPHS")); err == nil {
		graphs = more
	}
	const parts = 10
	for part := range parts {
		t.Run(fmt.Sprint(part), func(t *testing.T) { t.Parallel(); playGraphs(t, part*(graphs/parts), graphs/parts) })
	}
}
