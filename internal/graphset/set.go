package graphset

import (
	"fmt"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
)

// Graph is a graph of a set, as it was written.
type Graph struct {
	// Row orders graphs of all sets by their age.
	Row     int64
	Request bench.RequestID
	Project string
	// Tag is the artifact that the request measures; empty: none yet.
	Tag string
	// Number ascends in the set from 1.
	Number int
	Reason bench.GraphReason
	// Template names the template that made the graph; empty: stages made it. Customised
	// reports that the graph differs from what the template made.
	Template   string
	Customised bool
	// Follows is the number of the latest graph of the set with jobs that this one needs
	// or replaces; 0: none.
	Follows   int
	CreatedAt time.Time
}

// ID returns the graph's ID.
func (g Graph) ID() bench.GraphID { return bench.GraphID{Request: g.Request, Number: g.Number} }

// Node is a job in a graph of the set.
type Node struct {
	// Number names the graph in its set, and Input reports that the job was written for an
	// earlier one.
	Number int
	Input  bool
	Job    bench.JobKey
	// Name names a template's node, which may have several jobs; empty: a stage made it.
	Name string
	// Service says what the service carries out itself, as no machine is needed; the zero
	// Job: it is a job of a collector.
	Service graph.Job `db:"-"`
	// LimitSeconds and Latest are those of the template's node.
	LimitSeconds int
	Latest       bool
	// Skipped says why it was skipped; nil: it was not.
	Skipped *graph.Reason
	Stage   bench.Stage
	Kind    bench.JobKind
	Target  bench.Target
	// Tag and Versus name what it measures or builds.
	Tag, Versus      string
	Backend, Profile string
	// Only is its test case, if it has one alone; TestCases counts them.
	Only      *bench.TestCase
	TestCases int
	// Chunk numbers the parts of a divided job, from 1; 0: it is none.
	Chunk     int
	SizeClass bench.SizeClass
	Optional  bool
	// Status describes the job for this request: a request that was ended early has cancelled
	// jobs that had not ended by then, also those that others wait for.
	Status bench.JobStatus
	// Rerun counts how often the node was asked for again, AskedIn is the call that did so
	// last; 0: its creation. Former says what had become of it before each, in order.
	Rerun, AskedIn int
	Former         []End `db:"-"`
	// Held says why it is put aside: turn, input, pause or cap; empty: it is not.
	Held      string
	Message   string
	CreatedAt time.Time
	StartedAt *time.Time
	// EndedAt is when it ended for this request.
	EndedAt *time.Time
	// Replaces is the job in whose place it was written; empty: none. Replaced reports that
	// it no longer counts: a later job has its place, or it was dropped.
	Replaces bench.JobKey
	Replaced bool
}

// NodeKind returns the kind of the node.
func (n Node) NodeKind() graph.Kind {
	if kind := n.Service.Kind(); kind != "" {
		return kind
	}
	switch n.Kind {
	case bench.KindBuild:
		return graph.KindBuild
	case bench.KindCommand:
		return graph.KindCommand
	case bench.KindProfile:
		return graph.KindProfile
	case bench.KindCompileTime, bench.KindRuntime:
	}
	return graph.KindBenchmark
}

// End says what had become of a node before it was asked for again.
type End struct {
	// AskedIn is the call that had asked for it.
	AskedIn int
	Status  bench.JobStatus
	Message string
	// StartedAt is when a run of it began; nil: none did.
	StartedAt *time.Time
	EndedAt   time.Time
}

// Title says in words what the job measures or builds, or names the template's node.
func (n Node) Title() string {
	switch {
	case n.Name != "" && n.Chunk > 0:
		return fmt.Sprintf("%s, chunk %d", n.Name, n.Chunk)
	case n.Name != "":
		return n.Name
	case n.Kind == bench.KindBuild:
		return "build " + n.Tag
	case n.Only != nil:
		return n.Only.String()
	}
	title := string(n.Kind)
	for _, part := range []string{n.Profile, n.Backend} {
		if part != "" {
			title += " " + part
		}
	}
	return fmt.Sprintf("%s, %d test cases", title, n.TestCases)
}

// Ran reports whether a run of the job has begun.
func (n Node) Ran() bool { return n.FirstStart() != nil }

// FirstStart returns when the first run of the job began; nil: none has.
func (n Node) FirstStart() *time.Time {
	for _, e := range n.Former {
		if e.StartedAt != nil {
			return e.StartedAt
		}
	}
	return n.StartedAt
}

// Passed counts how often the node has succeeded, of all times that it was asked for.
func (n Node) Passed() (times int) {
	for _, e := range n.Former {
		if e.Status == bench.JobSuccess {
			times++
		}
	}
	if n.Status == bench.JobSuccess {
		times++
	}
	return times
}

// facts returns what is recorded of the node itself.
func (n Node) facts() graph.Facts {
	f := graph.Facts{Since: n.CreatedAt, Asked: graph.Ask{Wave: n.AskedIn}}
	for _, e := range n.Former {
		ask := graph.Ask{Wave: e.AskedIn}
		if e.Status == bench.JobSuccess {
			ask.FirstSuccess = e.EndedAt
		}
		f.Earlier = append(f.Earlier, ask)
	}
	if n.Skipped != nil {
		f.Status, f.Reason = graph.Skipped, *n.Skipped
		if n.EndedAt != nil {
			f.Since = *n.EndedAt
		}
		return f
	}
	switch n.Status {
	case bench.JobQueued, bench.JobHandedOut:
		f.HandedOut = n.Status == bench.JobHandedOut
		return f
	case bench.JobInProgress:
		f.Status = graph.Running
		if n.StartedAt != nil {
			f.Since = *n.StartedAt
		}
		return f
	case bench.JobSuccess:
		f.Status = graph.Success
	case bench.JobFailure:
		f.Status = graph.Failure
	case bench.JobCancelled:
		f.Status = graph.Cancelled
	}
	if n.EndedAt != nil {
		f.Since = *n.EndedAt
	}
	return f
}

// Edge says that a job of a graph needs another one.
type Edge struct {
	Number    int
	From, To  bench.JobKey
	Condition graph.Condition
}

// Set is all graphs of a request.
type Set struct {
	// Graphs are ordered by their numbers, Nodes and Edges by those of their graphs.
	Graphs []Graph
	Nodes  []Node
	Edges  []Edge
}

// States returns the state of each job of the set.
func (s Set) States(now time.Time) map[bench.JobKey]graph.State {
	// By place: graphs have thousands of nodes and tens of thousands of edges.
	nodes, places := make([]*Node, 0, len(s.Nodes)), make(map[bench.JobKey]int, len(s.Nodes))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		at, is := places[n.Job]
		switch {
		case !is:
			places[n.Job] = len(nodes)
			nodes = append(nodes, n)
		case nodes[at].Input:
			nodes[at] = n
		}
	}
	facts := make([]graph.Facts, len(nodes))
	for i, n := range nodes {
		facts[i] = n.facts()
	}
	type input struct {
		edge Edge
		from int
	}
	waits, inputs, dependents, template := make([]int, len(nodes)), make([][]input, len(nodes)), make([][]int, len(nodes)), s.FromTemplate()
	for _, e := range s.Edges {
		to, is := places[e.To]
		if !is {
			continue
		}
		from, is := places[e.From]
		if is && nodes[from].Replaced && !nodes[to].Replaced && template {
			continue // what has its place counts instead
		}
		waits[to]++
		if is {
			inputs[to] = append(inputs[to], input{e, from})
			dependents[from] = append(dependents[from], to)
		}
	}
	var next []int
	for at := range nodes {
		if waits[at] == 0 {
			next = append(next, at)
		}
	}
	states, known := make(map[bench.JobKey]graph.State, len(nodes)), make([]graph.State, len(nodes))
	for i := 0; i < len(next); i++ { // next grows
		at := next[i]
		var of []graph.Input
		if facts[at].Status == "" { // else what has become of it is known
			of = make([]graph.Input, 0, len(inputs[at]))
			for _, in := range inputs[at] {
				of = append(of, graph.Input{
					Edge: graph.Edge{From: string(in.edge.From), To: string(in.edge.To), Condition: in.edge.Condition}, State: known[in.from], Facts: facts[in.from],
				})
			}
		}
		known[at] = graph.StateOf(nodes[at].rule(), facts[at], of, now)
		states[nodes[at].Job] = known[at]
		for _, to := range dependents[at] {
			if waits[to]--; waits[to] == 0 {
				next = append(next, to)
			}
		}
	}
	return states
}

// Outdated returns the jobs that began before one of their inputs succeeded again, as itself
// or by a job in its place.
func (s Set) Outdated() map[bench.JobKey]bool {
	nodes, next := make(map[bench.JobKey]Node, len(s.Nodes)), make(map[bench.JobKey]bench.JobKey)
	for _, n := range s.Nodes {
		if known, is := nodes[n.Job]; !is || known.Input {
			nodes[n.Job] = n
		}
		if n.Replaces != "" {
			next[n.Replaces] = n.Job
		}
	}
	out := make(map[bench.JobKey]bool)
	for _, e := range s.Edges {
		to, input := nodes[e.To], nodes[e.From]
		repeated := len(input.Former) > 0
		for job, is := next[input.Job]; is; job, is = next[job] {
			input, repeated = nodes[job], true
		}
		if repeated && !to.Replaced && to.began() != nil && input.Status == bench.JobSuccess && input.EndedAt != nil && input.EndedAt.After(*to.began()) {
			out[e.To] = true
		}
	}
	return out
}

// began returns when a job began; nil: it has not. A node that the service itself carries out
// waits for no machine, and counts from its end.
func (n Node) began() *time.Time {
	if n.Service.Kind() != "" {
		return n.EndedAt
	}
	return n.StartedAt
}

// rule returns what the rule of states reads of a node.
func (n Node) rule() graph.Node {
	return graph.Node{Name: string(n.Job), Job: n.Service, LimitSeconds: n.LimitSeconds, Latest: n.Latest}
}

// FromTemplate reports whether the graphs of the set are made from a template.
func (s Set) FromTemplate() bool {
	return len(s.Graphs) > 0 && s.Graphs[0].Reason == bench.GraphTemplate
}

// Sum counts the jobs of a graph, or of a set, by their states. Inputs count where they
// were written.
type Sum struct {
	// Status is the roll-up; empty: there are no jobs. For a set, it leaves out jobs that were
	// replaced; for a graph it does not: it tells what came of it.
	Status graph.Status
	Jobs   int
	// States counts the jobs of each state, Replaced those that were replaced, and Ran
	// those of which a run has begun.
	States        map[graph.Status]int
	Replaced, Ran int
	// StartedAt is when the first began, EndedAt when the last ended; nil: not yet.
	StartedAt, EndedAt *time.Time
}

func (s *Sum) add(n Node, state graph.Status) {
	if s.States == nil {
		s.States = make(map[graph.Status]int)
	}
	s.Jobs++
	s.States[state]++
	if n.Replaced {
		s.Replaced++
	}
	if n.Ran() {
		s.Ran++
		if began := n.FirstStart(); s.StartedAt == nil || began.Before(*s.StartedAt) {
			s.StartedAt = began
		}
	}
	if n.EndedAt != nil && (s.EndedAt == nil || n.EndedAt.After(*s.EndedAt)) {
		s.EndedAt = n.EndedAt
	}
}

// Sums returns the sums of the set, and of each graph by its number.
func (s Set) Sums(states map[bench.JobKey]graph.State) (all Sum, of map[int]Sum) {
	of = make(map[int]Sum)
	counting := make(map[graph.Status]int)
	for _, n := range s.Nodes {
		if n.Input {
			continue
		}
		status := states[n.Job].Status
		all.add(n, status)
		sum := of[n.Number]
		sum.add(n, status)
		of[n.Number] = sum
		if !n.Replaced {
			counting[status]++
		}
	}
	for number, sum := range of {
		sum.Status = graph.RollUp(sum.States)
		if !sum.Status.Ended() {
			sum.EndedAt = nil
		}
		of[number] = sum
	}
	if all.Status = graph.RollUp(counting); !all.Status.Ended() {
		all.EndedAt = nil
	}
	return all, of
}

// Only returns the part of the set that is one graph, with its inputs.
func (s Set) Only(number int) Set {
	return Set{
		Graphs: keep(s.Graphs, func(g Graph) bool { return g.Number == number }),
		Nodes:  keep(s.Nodes, func(n Node) bool { return n.Number == number }),
		Edges:  keep(s.Edges, func(e Edge) bool { return e.Number == number }),
	}
}

// Whole returns the set with each job once: as a node of the graph for which it was
// written.
func (s Set) Whole() Set {
	s.Nodes = keep(s.Nodes, func(n Node) bool { return !n.Input })
	return s
}

func keep[T any](list []T, wanted func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(v T) bool { return !wanted(v) })
}
