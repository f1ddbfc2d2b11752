package graph_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/graph"
)

// randomGraph returns a graph of a few nodes with all conditions and short limits; some
// nodes are sign-offs.
func randomGraph(t testing.TB, random *rand.Rand) *graph.Graph {
	t.Helper()
	count := 1 + random.IntN(12)
	signOff, err := graph.NewJob(graph.SignOff{Question: "Go?", LimitSeconds: 7200})
	require.NoError(t, err)
	list := make([]graph.Node, 0, count)
	for i := range count {
		n := node(t, fmt.Sprintf("n%02d", (i*7+3)%count*10+i))
		n.LimitSeconds, n.Latest = 3600*(1+random.IntN(30)), random.IntN(5) == 0
		if random.IntN(6) == 0 {
			n.Job = signOff
		}
		list = append(list, n)
	}
	var edges []graph.Edge
	density := random.Float64()
	for to := range count {
		for from := range to {
			if random.Float64() < density {
				c := []graph.Condition{graph.OnSuccess, graph.OnSuccess, graph.OnResolved, graph.OnAny}[random.IntN(4)]
				edges = append(edges, graph.Edge{From: list[from].Name, To: list[to].Name, Condition: c})
			}
		}
	}
	g, err := graph.New(list, edges)
	require.NoError(t, err)
	return g
}

// world plays a graph: it starts what is ready, ends it somehow, loses machines, runs nodes
// again, cancels them and lets time pass.
type world struct {
	t      testing.TB
	random *rand.Rand
	g      *graph.Graph
	p      *graph.Progress
	now    time.Time
	wave   int
	// succeeded lists the waves in which each node succeeded.
	succeeded map[string][]int
	started   map[string]int
	seen      map[string]int // how often each kind of event happened, for the test of the test
}

func (w *world) set(facts map[string]graph.Facts) {
	w.t.Helper()
	before := map[string]graph.State{}
	for _, n := range w.g.Nodes() {
		before[n.Name] = w.p.State(n.Name)
	}
	changes, err := w.p.Set(facts, w.now)
	require.NoError(w.t, err)
	w.consistent(before, changes)
}

func (w *world) pass(d time.Duration) {
	w.t.Helper()
	w.now = w.now.Add(d)
	before := map[string]graph.State{}
	for _, n := range w.g.Nodes() {
		before[n.Name] = w.p.State(n.Name)
	}
	w.consistent(before, w.p.Expire(w.now))
}

// consistent compares the states, reached change by change, with the rule applied to all
// facts anew.
func (w *world) consistent(before map[string]graph.State, changes []graph.Change) {
	w.t.Helper()
	facts := map[string]graph.Facts{}
	counts := map[graph.Status]int{}
	for _, n := range w.g.Nodes() {
		facts[n.Name] = w.p.Facts(n.Name)
	}
	for _, c := range changes {
		require.Equal(w.t, before[c.Node], c.From)
		before[c.Node] = c.To
	}
	var next time.Time
	for name, s := range graph.States(w.g, facts, w.now) {
		// Comparing deeply takes most of the time of the test.
		if s != w.p.State(name) {
			require.Equal(w.t, s, w.p.State(name), "the rule says so of %s", name)
		}
		if s != before[name] {
			require.Equal(w.t, s, before[name], "changes of %s are told", name)
		}
		counts[s.Status]++
		if !s.Until.IsZero() && (next.IsZero() || s.Until.Before(next)) {
			next = s.Until
		}
		switch s.Status {
		case graph.Blocked, graph.Skipped:
			_, known := w.g.Node(s.Reason.Node)
			require.True(w.t, known, "a reason names a node")
		default:
			if s.Reason != (graph.Reason{}) {
				require.Zero(w.t, s.Reason)
			}
		}
	}
	for _, s := range graph.Statuses() {
		require.Equal(w.t, counts[s], w.p.Counts()[s], "nodes %s", s)
	}
	limit, waits := w.p.NextLimit()
	require.Equal(w.t, !next.IsZero(), waits)
	require.True(w.t, limit.Equal(next))
}

// step lets one thing happen to a random node, if it can.
func (w *world) step() {
	w.t.Helper()
	all := w.g.Nodes()
	name := all[w.random.IntN(len(all))].Name
	f, s := w.p.Facts(name), w.p.State(name)
	end := func(status graph.Status) {
		f.Status, f.Since = status, w.now
		if status == graph.Success {
			if f.Asked.FirstSuccess.IsZero() {
				f.Asked.FirstSuccess = w.now
			}
			w.succeeded[name] = append(w.succeeded[name], f.Asked.Wave)
		}
		w.seen[string(status)]++
		w.set(map[string]graph.Facts{name: f})
	}
	switch s.Status {
	case graph.Ready:
		w.mayStart(name)
		w.started[name]++
		f.Status, f.Since = graph.Running, w.now
		w.set(map[string]graph.Facts{name: f})
	case graph.Running:
		switch w.random.IntN(8) {
		case 0: // its machine is lost
			f.Status, f.Since = "", w.now
			w.seen["lost"]++
			w.set(map[string]graph.Facts{name: f})
		case 1:
			end(graph.Cancelled)
		case 2, 3, 4:
			end(graph.Failure)
		default:
			end(graph.Success)
		}
	case graph.Blocked:
		if w.random.IntN(20) == 0 {
			end(graph.Cancelled)
		}
	default:
		if w.random.IntN(10) == 0 {
			w.rerun(name)
		}
	}
}

// rerun asks again, in one call, for a node and some others that have ended.
func (w *world) rerun(name string) {
	w.t.Helper()
	w.wave++
	facts := map[string]graph.Facts{}
	for _, n := range w.g.Nodes() {
		if n.Name != name && (!w.p.State(n.Name).Status.Ended() || w.random.IntN(2) == 0) {
			continue
		}
		f := w.p.Facts(n.Name)
		facts[n.Name] = graph.Facts{Since: w.now, Asked: graph.Ask{Wave: w.wave}, Earlier: append(f.Earlier[:len(f.Earlier):len(f.Earlier)], f.Asked)}
	}
	w.seen["rerun"] += len(facts)
	w.set(facts)
}

// mayStart checks that nothing begins before what it needs, from what has happened alone.
func (w *world) mayStart(name string) {
	w.t.Helper()
	n, _ := w.g.Node(name)
	wave := w.p.Facts(name).Asked.Wave
	for _, e := range w.g.Inputs(name) {
		f := w.p.Facts(e.From)
		together := f.Asked.Wave == wave
		for _, a := range f.Earlier {
			together = together || a.Wave == wave
		}
		succeeded := false
		for _, at := range w.succeeded[e.From] {
			succeeded = succeeded || !together || at >= wave
		}
		if n.Latest {
			succeeded = f.Status == graph.Success
		}
		switch e.Condition {
		case graph.OnSuccess:
			require.True(w.t, succeeded, "%s begins without a success of %s", name, e.From)
		case graph.OnResolved:
			require.True(w.t, succeeded || f.Status == graph.Success || f.Status == graph.Failure, "%s begins before %s ran to its end", name, e.From)
		case graph.OnAny:
			require.True(w.t, succeeded || f.Status.Ended(), "%s begins before %s ended", name, e.From)
		}
	}
}

// Whatever happens, and in whatever order: each node's state follows from its inputs' by
// the rule, nothing runs before what it needs, and nothing is stuck.
func TestStatesOfRandomGraphsAndEvents(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(16, 1))
	seen, skipped := map[string]int{}, map[graph.ReasonCode]int{}
	for range 5000 {
		g := randomGraph(t, random)
		facts := map[string]graph.Facts{}
		for _, n := range g.Nodes() {
			facts[n.Name] = graph.Facts{Since: start}
		}
		p, err := graph.NewProgress(g, facts, start)
		require.NoError(t, err)
		w := &world{t: t, random: random, g: g, p: p, now: start, succeeded: map[string][]int{}, started: map[string]int{}, seen: seen}
		for range 10 + random.IntN(8*g.Len()) {
			w.pass(time.Duration(random.IntN(7200)) * time.Second)
			w.step()
		}
		// Whoever waits for an end gets one: what is ready starts, what runs ends, and limits pass.
		for round := 0; ; round++ {
			require.Less(t, round, 10*g.Len()+10, "the graph is stuck: %v", p.Counts())
			acted := false
			for _, name := range g.Order() {
				for s := p.State(name).Status; s == graph.Ready || s == graph.Running; s = p.State(name).Status {
					f := p.Facts(name)
					f.Status, f.Since = graph.Running, w.now
					if s == graph.Running {
						f.Status = []graph.Status{graph.Success, graph.Failure}[random.IntN(2)]
					} else {
						w.mayStart(name)
					}
					if f.Status == graph.Success && f.Asked.FirstSuccess.IsZero() {
						f.Asked.FirstSuccess = w.now
					}
					if f.Status == graph.Success {
						w.succeeded[name] = append(w.succeeded[name], f.Asked.Wave)
					}
					w.set(map[string]graph.Facts{name: f})
					acted = true
				}
			}
			if limit, waits := p.NextLimit(); waits && !acted {
				w.pass(limit.Sub(w.now))
				acted = true
			}
			if !acted {
				break
			}
		}
		for _, n := range g.Nodes() {
			s := p.State(n.Name)
			require.True(t, s.Status.Ended(), "%s is stuck: %+v", n.Name, s)
			if s.Status == graph.Skipped {
				skipped[s.Reason.Code]++
			}
		}
	}
	for _, event := range []string{"lost", "rerun", "success", "failure", "cancelled"} {
		require.Greater(t, seen[event], 1000, "%s happened", event)
	}
	require.Greater(t, skipped[graph.LimitPassed], 1000)
	require.Greater(t, skipped[graph.NoSignOff], 100)
}
