package graph_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/graph"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(hours float64) time.Time { return start.Add(time.Duration(hours * float64(time.Hour))) }

// One row per cell: how each end of an input stands to each condition.
func TestHowAnEndStandsToACondition(t *testing.T) {
	t.Parallel()
	want := map[graph.Condition]map[graph.Status]graph.Fit{
		graph.OnSuccess:  {graph.Success: graph.Met, graph.Failure: graph.Unmet, graph.Cancelled: graph.Unmet, graph.Skipped: graph.Never},
		graph.OnResolved: {graph.Success: graph.Met, graph.Failure: graph.Met, graph.Cancelled: graph.Unmet, graph.Skipped: graph.Never},
		graph.OnAny:      {graph.Success: graph.Met, graph.Failure: graph.Met, graph.Cancelled: graph.Met, graph.Skipped: graph.Met},
	}
	for condition, row := range want {
		for _, s := range graph.Statuses() {
			if s.Ended() {
				require.Equal(t, row[s], condition.Given(s), "%s of %s", condition, s)
				continue
			}
			require.Equal(t, graph.Open, condition.Given(s), "%s of %s", condition, s)
		}
	}
}

// progress is a graph under way in a test.
type progress struct {
	*graph.Progress
	t     *testing.T
	facts map[string]graph.Facts
}

func begin(t *testing.T, g *graph.Graph) progress {
	t.Helper()
	facts := map[string]graph.Facts{}
	for _, n := range g.Nodes() {
		facts[n.Name] = graph.Facts{Since: start}
	}
	p, err := graph.NewProgress(g, facts, start)
	require.NoError(t, err)
	return progress{p, t, facts}
}

// ends records that a node ended, or with "" or running that it does not.
func (p progress) ends(name string, s graph.Status, when time.Time) []graph.Change {
	p.t.Helper()
	f := p.Facts(name)
	f.Status, f.Since, f.Reason = s, when, graph.Reason{}
	if s == graph.Success && f.Asked.FirstSuccess.IsZero() {
		f.Asked.FirstSuccess = when
	}
	changes, err := p.Set(map[string]graph.Facts{name: f}, when)
	require.NoError(p.t, err)
	return changes
}

// rerun asks for nodes in one call.
func (p progress) rerun(wave int, when time.Time, names ...string) {
	p.t.Helper()
	facts := map[string]graph.Facts{}
	for _, name := range names {
		f := p.Facts(name)
		facts[name] = graph.Facts{Since: when, Asked: graph.Ask{Wave: wave}, Earlier: append(f.Earlier[:len(f.Earlier):len(f.Earlier)], f.Asked)}
	}
	_, err := p.Set(facts, when)
	require.NoError(p.t, err)
}

func (p progress) is(name string, want graph.State) {
	p.t.Helper()
	require.Equal(p.t, want, p.State(name))
}

func chain(t *testing.T) *graph.Graph {
	t.Helper()
	list := nodes(t, "build", "measure", "compare", "notify")
	for i := range list {
		list[i].LimitSeconds = 24 * 3600
	}
	g, err := graph.New(list, []graph.Edge{
		needs("measure", "build"), {From: "measure", To: "compare", Condition: graph.OnResolved}, {From: "compare", To: "notify", Condition: graph.OnAny},
	})
	require.NoError(t, err)
	return g
}

// A failed build blocks what needs it, with the reason and the limit; a late success
// releases it.
func TestALateSuccessReleases(t *testing.T) {
	t.Parallel()
	p := begin(t, chain(t))
	p.is("build", graph.State{Status: graph.Ready, Since: start})
	p.is("measure", graph.State{Status: graph.Blocked, Since: start, Reason: graph.Reason{Code: graph.Waits, Node: "build"}})
	p.ends("build", graph.Failure, at(1))
	p.is("measure", graph.State{Status: graph.Blocked, Since: start, Until: at(25), Reason: graph.Reason{Code: graph.InputFailed, Node: "build"}})
	p.is("compare", graph.State{Status: graph.Blocked, Since: start, Reason: graph.Reason{Code: graph.Waits, Node: "measure"}})
	require.Equal(t, map[graph.Status]int{graph.Failure: 1, graph.Blocked: 3, graph.Ready: 0}, p.Counts())
	limit, waits := p.NextLimit()
	require.True(t, waits)
	require.Equal(t, at(25), limit)

	p.rerun(1, at(2), "build")
	p.is("measure", graph.State{Status: graph.Blocked, Since: start, Reason: graph.Reason{Code: graph.Waits, Node: "build"}})
	_, waits = p.NextLimit()
	require.False(t, waits, "no limit runs while the build may still succeed")
	changes := p.ends("build", graph.Success, at(30))
	require.Equal(t, []string{"build", "measure"}, names(changes))
	p.is("measure", graph.State{Status: graph.Ready, Since: at(30)})
}

func names(changes []graph.Change) []string {
	list := make([]string, len(changes))
	for i, c := range changes {
		list[i] = c.Node
	}
	return list
}

// When the limit has passed, everything that needs the build is skipped for that reason,
// for good; what runs in any case does.
func TestAPassedLimitSkips(t *testing.T) {
	t.Parallel()
	p := begin(t, chain(t))
	p.ends("build", graph.Cancelled, at(1))
	p.is("measure", graph.State{Status: graph.Blocked, Since: start, Until: at(25), Reason: graph.Reason{Code: graph.InputCancelled, Node: "build"}})
	require.Empty(t, p.Expire(at(24.9)))
	require.Equal(t, []string{"measure", "compare", "notify"}, names(p.Expire(at(26))))
	reason := graph.Reason{Code: graph.LimitPassed, Node: "build"}
	p.is("measure", graph.State{Status: graph.Skipped, Since: at(25), Reason: reason})
	p.is("compare", graph.State{Status: graph.Skipped, Since: at(25), Reason: reason})
	p.is("notify", graph.State{Status: graph.Ready, Since: at(25)})
	require.Equal(t, "build did not succeed within the time limit", reason.String())

	p.rerun(1, at(27), "build")
	p.ends("build", graph.Success, at(28))
	p.is("measure", graph.State{Status: graph.Skipped, Since: at(25), Reason: reason})
	require.Equal(t, graph.Skipped, p.Facts("measure").Status)
	p.rerun(2, at(29), "measure")
	p.is("measure", graph.State{Status: graph.Ready, Since: at(29)})
}

// A limit that passed before a late success counts, even if nobody looked in between.
func TestASuccessAfterTheLimitIsTooLate(t *testing.T) {
	t.Parallel()
	p := begin(t, chain(t))
	p.ends("build", graph.Failure, at(1))
	p.ends("build", graph.Success, at(26))
	p.is("measure", graph.State{Status: graph.Skipped, Since: at(25), Reason: graph.Reason{Code: graph.LimitPassed, Node: "build"}})
}

// A sign-off waits for a person; its children are skipped when nobody answers.
func TestASignOffHasATimeLimit(t *testing.T) {
	t.Parallel()
	j, err := graph.NewJob(graph.SignOff{Question: "Publish?", LimitSeconds: 3600})
	require.NoError(t, err)
	g, err := graph.New(append(nodes(t, "build", "publish"), graph.Node{Name: "ask", Job: j}), []graph.Edge{needs("ask", "build"), needs("publish", "ask")})
	require.NoError(t, err)
	p := begin(t, g)
	p.is("ask", graph.State{Status: graph.Blocked, Since: start, Reason: graph.Reason{Code: graph.Waits, Node: "build"}})
	p.ends("build", graph.Success, at(5))
	p.is("ask", graph.State{Status: graph.Ready, Since: at(5), Until: at(6)})
	p.is("publish", graph.State{Status: graph.Blocked, Since: start, Reason: graph.Reason{Code: graph.Waits, Node: "ask"}})
	p.Expire(at(7))
	reason := graph.Reason{Code: graph.NoSignOff, Node: "ask"}
	p.is("ask", graph.State{Status: graph.Skipped, Since: at(6), Reason: reason})
	p.is("publish", graph.State{Status: graph.Skipped, Since: at(6), Reason: reason})
	require.Equal(t, "nobody signed off ask within the time limit", reason.String())
	require.Equal(t, graph.Skipped, graph.RollUp(p.Counts()))

	p = begin(t, g)
	p.ends("build", graph.Success, at(5))
	p.ends("ask", graph.Success, at(5.5))
	p.is("publish", graph.State{Status: graph.Ready, Since: at(5.5)})
	p.Expire(at(100))
	p.is("publish", graph.State{Status: graph.Ready, Since: at(5.5)})
}

// Both rerun in one call: the second waits for the new run of the first. A rerun of the
// first alone leaves the second with the first success.
func TestWhatARerunWaitsFor(t *testing.T) {
	t.Parallel()
	p := begin(t, chain(t))
	p.ends("build", graph.Success, at(1))
	p.ends("measure", graph.Failure, at(2))
	p.rerun(1, at(3), "build", "measure")
	p.is("measure", graph.State{Status: graph.Blocked, Since: at(3), Reason: graph.Reason{Code: graph.Waits, Node: "build"}})
	p.ends("build", graph.Failure, at(4))
	p.is("measure", graph.State{Status: graph.Blocked, Since: at(3), Until: at(28), Reason: graph.Reason{Code: graph.InputFailed, Node: "build"}})
	p.rerun(2, at(5), "build")
	p.is("measure", graph.State{Status: graph.Blocked, Since: at(3), Reason: graph.Reason{Code: graph.Waits, Node: "build"}})
	p.ends("build", graph.Success, at(6))
	p.is("measure", graph.State{Status: graph.Ready, Since: at(6)})
	p.rerun(3, at(7), "build")
	p.is("measure", graph.State{Status: graph.Ready, Since: at(6)})
	p.ends("build", graph.Failure, at(8))
	p.is("measure", graph.State{Status: graph.Ready, Since: at(6)})
	p.rerun(4, at(9), "measure")
	p.is("measure", graph.State{Status: graph.Ready, Since: at(9)})
}

func TestANodeMayWantTheLatest(t *testing.T) {
	t.Parallel()
	list := nodes(t, "build", "measure")
	list[1].Latest = true
	g, err := graph.New(list, []graph.Edge{needs("measure", "build")})
	require.NoError(t, err)
	p := begin(t, g)
	p.ends("build", graph.Success, at(1))
	p.is("measure", graph.State{Status: graph.Ready, Since: at(1)})
	p.rerun(1, at(2), "build")
	p.is("measure", graph.State{Status: graph.Blocked, Since: start, Reason: graph.Reason{Code: graph.Waits, Node: "build"}})
	p.ends("build", graph.Failure, at(3))
	p.is("measure", graph.State{Status: graph.Blocked, Since: start, Until: at(3).Add(graph.DefaultLimit), Reason: graph.Reason{Code: graph.InputFailed, Node: "build"}})
}

// Two inputs ended badly: the limit that passes first counts, and both are counted.
func TestSeveralReasons(t *testing.T) {
	t.Parallel()
	g, err := graph.New(nodes(t, "a", "b", "c", "last"), []graph.Edge{needs("last", "a"), needs("last", "b"), needs("last", "c")})
	require.NoError(t, err)
	p := begin(t, g)
	p.is("last", graph.State{Status: graph.Blocked, Since: start, Reason: graph.Reason{Code: graph.Waits, Node: "a", More: 2}})
	require.Equal(t, "waits for a and 2 more", p.State("last").Reason.String())
	p.ends("c", graph.Failure, at(1))
	p.ends("b", graph.Cancelled, at(2))
	p.is("last", graph.State{Status: graph.Blocked, Since: start, Until: at(1).Add(graph.DefaultLimit), Reason: graph.Reason{Code: graph.InputFailed, Node: "c", More: 1}})
	require.Equal(t, "c failed and 1 more", p.State("last").Reason.String())
	require.Equal(t, "b was cancelled", graph.Reason{Code: graph.InputCancelled, Node: "b"}.String())
	require.Empty(t, graph.Reason{}.String())
}

func TestFactsThatAreRefused(t *testing.T) {
	t.Parallel()
	p := begin(t, chain(t))
	for says, f := range map[string]graph.Facts{
		"follows from the inputs": {Status: graph.Ready},
		"only then":               {Status: graph.Success, Reason: graph.Reason{Code: graph.LimitPassed}},
		"a node has one":          {Status: graph.Skipped},
		"ascend":                  {Asked: graph.Ask{Wave: 1}, Earlier: []graph.Ask{{Wave: 1}}},
		"waves count from 0":      {Asked: graph.Ask{Wave: -1}},
	} {
		_, err := p.Set(map[string]graph.Facts{"build": f}, at(1))
		require.ErrorContains(t, err, says)
		_, err = graph.NewProgress(chain(t), map[string]graph.Facts{"build": f}, start)
		require.ErrorContains(t, err, says)
	}
	_, err := p.Set(map[string]graph.Facts{"nobody": {}}, at(1))
	require.ErrorContains(t, err, `no node "nobody"`)
	_, err = graph.NewProgress(chain(t), map[string]graph.Facts{"nobody": {}}, start)
	require.ErrorContains(t, err, `no node "nobody"`)
	require.Zero(t, p.State("nobody"))
	p.is("build", graph.State{Status: graph.Ready, Since: start})
}

func TestTheStatusOfASet(t *testing.T) {
	t.Parallel()
	counts := map[graph.Status]int{}
	require.Empty(t, graph.RollUp(counts))
	for _, s := range []graph.Status{graph.Success, graph.Skipped, graph.Cancelled, graph.Failure, graph.Blocked, graph.Ready, graph.Running} {
		counts[s] = 1
		require.Equal(t, s, graph.RollUp(counts))
	}
}
