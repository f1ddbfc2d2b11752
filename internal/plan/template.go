package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
)

// NodeRequest returns the request that would measure the same as a node of a request's graph;
// for a command, the request itself. The node is planned from the facts of that request, see
// [Facts.NodeJobs].
func NodeRequest(r bench.Request, n graph.Node) bench.Request {
	r.Template = nil
	scope := bench.Scope{Profiling: r.Profiling}
	switch d := n.Job.Definition().(type) {
	case graph.Benchmark:
		r.Tag = d.Tag
		scope.Selection, scope.Versus, scope.Constraints = d.Selection, d.Versus, d.Constraints
		scope.Selection.Targets, scope.Selection.Iterations = []bench.Target{d.Target}, d.Iterations
		if len(d.TestCases) > 0 {
			scope.Selection = chosen(scope.Selection, d.TestCases)
		}
	case graph.Profile:
		r.Tag = d.Tag
		scope.Profiler, scope.Constraints = d.Profiler, d.Constraints
		scope.Selection = chosen(bench.Selection{Targets: []bench.Target{d.Target}}, []bench.TestCase{d.TestCase})
	case graph.Command:
		scope.Constraints = d.Constraints
	}
	r.Scope = scope
	return r
}

// chosen narrows a selection to the dimensions of test cases.
func chosen(s bench.Selection, cases []bench.TestCase) bench.Selection {
	add := func(list []string, value string) []string {
		if value == "" || slices.Contains(list, value) {
			return list
		}
		return append(list, value)
	}
	for _, tc := range cases {
		s.Benchmarks, s.Profiles = add(s.Benchmarks, tc.Benchmark), add(s.Profiles, tc.Profile)
		s.Scenarios, s.Backends = add(s.Scenarios, tc.Scenario), add(s.Backends, tc.Backend)
	}
	return s
}

// NodeSuite returns the content hash of the suite that a node names itself; empty: it names
// none.
func NodeSuite(n graph.Node) string {
	switch d := n.Job.Definition().(type) {
	case graph.Benchmark:
		return d.Suite
	case graph.Profile:
		return d.Suite
	}
	return ""
}

// Checked refuses a graph with a node that can never run; its error is one of
// [Facts.NodeJobs]. Warnings explain why other nodes have to wait. factsOf returns the facts
// of a node.
func Checked(g *graph.Graph, factsOf func(graph.Node) (Facts, error)) (warned []string, err error) {
	var found warnings
	for _, n := range g.Nodes() {
		f, err := factsOf(n)
		if err != nil {
			return nil, err
		}
		_, err = f.NodeJobs(n)
		if d, is := n.Job.Definition().(graph.Build); is {
			_, err = f.Build(bench.BuildSpec{Tag: d.Tag, Target: d.Target}, 0)
		}
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", n.Name, err)
		}
		if f.Suite == nil || f.Request.Profiler != "" {
			continue
		}
		more, err := f.Check()
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", n.Name, err)
		}
		for _, text := range more {
			found.add(text)
		}
	}
	return found, nil
}

// NodeJobs plans the jobs of a graph's node: none for one that the service carries out itself
// and for a build, whose revision has to be found first, see [Facts.Build]. The facts are
// those of its [NodeRequest]. The error is a [placement.Unplaceable] when no registered
// collector can ever run it, and wraps [bench.ErrInvalid] for what no collector runs yet.
func (f Facts) NodeJobs(n graph.Node) ([]bench.PlannedJob, error) {
	f.Node = n.Name
	switch d := n.Job.Definition().(type) {
	case graph.Benchmark:
		jobs, err := f.Own()
		if err == nil && len(d.TestCases) > 0 {
			jobs, err = f.onlyCases(jobs, d.TestCases)
		}
		if err != nil || d.Chunks == nil {
			return jobs, err
		}
		return f.chunks(jobs, *d.Chunks), nil
	case graph.Profile:
		return f.Own()
	case graph.Command:
		return f.nodeCommand(n, d)
	}
	return nil, nil
}

// onlyCases narrows jobs to test cases that a node lists.
func (f Facts) onlyCases(jobs []bench.PlannedJob, cases []bench.TestCase) ([]bench.PlannedJob, error) {
	var out []bench.PlannedJob
	left := slices.Clone(cases)
	for _, j := range jobs {
		var some []bench.TestCase
		for _, tc := range j.TestCases {
			if slices.Contains(cases, tc) {
				some = append(some, tc)
				left = slices.DeleteFunc(left, func(c bench.TestCase) bool { return c == tc })
			}
		}
		if len(some) > 0 {
			out = append(out, f.of(j, some))
		}
	}
	if len(left) > 0 {
		return nil, fmt.Errorf("%w: the suite does not measure %s", bench.ErrInvalid, left[0])
	}
	return out, nil
}

// nodeCommand plans a node that runs programs. The revisions of its checkouts have to be found
// before the job is written.
func (f Facts) nodeCommand(n graph.Node, d graph.Command) ([]bench.PlannedJob, error) {
	timeouts, err := NewTimeouts(f.Config.Size)
	if err != nil {
		return nil, err
	}
	var steps []bench.ScriptStep
	for _, s := range d.Steps {
		limited, err := timeouts.Limit(bench.Command{TimeoutSeconds: s.TimeoutSeconds})
		if err != nil {
			return nil, err
		}
		steps = append(steps, bench.ScriptStep{Argv: s.Argv, Env: s.Env, Dir: s.Dir, TimeoutSeconds: limited.TimeoutSeconds})
	}
	last := steps[len(steps)-1]
	command := bench.Command{Argv: last.Argv, Env: last.Env, TimeoutSeconds: last.TimeoutSeconds, Iterations: 1}
	script := bench.Script{
		Before: steps[:len(steps)-1], Dir: last.Dir,
		Success: d.Rules.Success, Failure: d.Rules.Failure, RetryCodes: d.Rules.RetryCodes, RetryPatterns: d.Rules.RetryPatterns, Retries: d.Rules.Retries,
		Uploads: d.Uploads,
	}
	for _, c := range d.Checkouts {
		script.Checkouts = append(script.Checkouts, bench.ScriptCheckout{Repository: c.Repository, Revision: c.Revision, Path: c.Path})
	}
	if len(script.Before)+len(script.Checkouts)+len(script.Success)+len(script.Failure)+len(script.Uploads)+script.Retries > 0 || script.Dir != "" {
		command.Script = &script
	}
	line := Line{Name: n.Name, Command: command, Target: d.Target}
	if command.Script != nil {
		line.Shape = n.Name // the last program alone says little
	}
	j, err := NewCommands(f).Job(line)
	if err != nil {
		return nil, err
	}
	return []bench.PlannedJob{j}, nil
}

// Repeated returns the graph of jobs that were written in place of others: next maps jobs to
// their replacements. edges are those to and from the replaced jobs.
func Repeated(edges []GraphEdge, written []int64, next map[int64]int64) JobGraph {
	out := JobGraph{Jobs: slices.Clone(written)}
	slices.Sort(out.Jobs)
	latest := func(job int64) int64 {
		for range len(next) {
			later, replaced := next[job]
			if !replaced {
				break
			}
			job = later
		}
		return job
	}
	type ends struct{ from, to int64 }
	seen, inputs := make(map[ends]bool), make(map[int64]bool)
	for _, e := range edges {
		e.From, e.To = latest(e.From), latest(e.To)
		at := ends{e.From, e.To}
		if e.From == e.To || seen[at] {
			continue
		}
		seen[at] = true
		out.Edges = append(out.Edges, e)
		for _, job := range []int64{e.From, e.To} {
			if _, now := slices.BinarySearch(out.Jobs, job); !now {
				inputs[job] = true
			}
		}
	}
	out.Inputs = slices.Sorted(maps.Keys(inputs))
	return out
}
