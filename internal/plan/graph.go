package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
)

// GraphJob is a job of a request as its graphs see it.
type GraphJob struct {
	ID     int64
	Stage  bench.Stage
	Target bench.Target
	// Tag and Versus name what it measures; Builds lists the tags that it builds.
	Tag, Versus string
	Builds      []string
	// TestCases are the IDs of those that it measures.
	TestCases []int64
	// Known reports that an earlier graph of the request was written for it.
	Known bool
	// Replaced reports that it no longer counts for the request.
	Replaced bool
}

// GraphEdge says that job To needs job From.
type GraphEdge struct {
	From, To  int64
	Condition graph.Condition
}

// JobGraph holds the additions of one graph of a request to those before.
type JobGraph struct {
	// Jobs are the jobs for which it is written, Inputs the jobs of earlier graphs that they need.
	Jobs, Inputs []int64
	Edges        []GraphEdge
}

// NextGraph returns the graph for the jobs of a request that were written now. Jobs that an
// earlier graph was written for are left out, possibly all of them. The error is a
// [graph.SizeError].
//
// A job needs
//
//   - the builds of what it measures. A job that measures a parent runs even if a build
//     failed, since that costs only the comparison;
//   - for each of its test cases, the end, of any kind, of the preceding job that measures
//     it: for the request's own job a job of the parent, and for a look the look before,
//     else the request's own job.
func NextGraph(jobs []GraphJob, written []int64) (JobGraph, error) {
	var out JobGraph
	now := make(map[int64]bool)
	for _, id := range written {
		now[id] = true
	}
	before := newEarlier()
	for _, j := range jobs {
		if now[j.ID] = now[j.ID] && !j.Known; !j.Replaced {
			before.add(j)
		}
	}
	inputs := make(map[int64]bool)
	for _, j := range jobs {
		if !now[j.ID] {
			continue
		}
		out.Jobs = append(out.Jobs, j.ID)
		for _, e := range before.edges(j, now) {
			out.Edges = append(out.Edges, e)
			if !now[e.From] {
				inputs[e.From] = true
			}
		}
	}
	for id := range inputs {
		out.Inputs = append(out.Inputs, id)
	}
	slices.Sort(out.Inputs)
	switch nodes := len(out.Jobs) + len(out.Inputs); {
	case nodes > graph.MaxNodes:
		return JobGraph{}, &graph.SizeError{What: "nodes", Got: nodes, Most: graph.MaxNodes}
	case len(out.Edges) > graph.MaxEdges:
		return JobGraph{}, &graph.SizeError{What: "edges", Got: len(out.Edges), Most: graph.MaxEdges}
	}
	return out, nil
}

// stageOrder is the order in which jobs of one request need each other.
var stageOrder = map[bench.Stage]int{bench.StageBuild: 0, bench.StageParent: 1, bench.StageOwn: 2, bench.StageVerify: 3}

// earlier finds the jobs of a request that others may need.
type earlier struct {
	// builds are the jobs that build a tag for a target, measured those that measure a test case.
	builds   map[string][]GraphJob
	measured map[int64][]GraphJob
}

func newEarlier() earlier {
	return earlier{make(map[string][]GraphJob), make(map[int64][]GraphJob)}
}

func built(tag string, target bench.Target) string { return fmt.Sprintf("%q %s", tag, target) }

func (e earlier) add(j GraphJob) {
	for _, tag := range j.Builds {
		e.builds[built(tag, j.Target)] = append(e.builds[built(tag, j.Target)], j)
	}
	for _, tc := range j.TestCases {
		e.measured[tc] = append(e.measured[tc], j)
	}
}

// edges returns what a job needs, by the IDs of the jobs. Of the jobs that are written now,
// it needs only those of earlier stages.
func (e earlier) edges(j GraphJob, now map[int64]bool) []GraphEdge {
	if len(j.Builds) > 0 {
		return nil
	}
	needs := make(map[int64]graph.Condition)
	for _, tag := range []string{j.Tag, j.Versus} {
		for _, b := range e.builds[built(tag, j.Target)] {
			if needs[b.ID] = graph.OnSuccess; j.Stage == bench.StageParent {
				needs[b.ID] = graph.OnAny
			}
		}
	}
	for _, tc := range j.TestCases {
		var last *GraphJob
		for i, c := range e.measured[tc] {
			if len(c.Builds) > 0 || !before(c, j, now) {
				continue
			}
			if last == nil || cmp.Or(cmp.Compare(stageOrder[last.Stage], stageOrder[c.Stage]), cmp.Compare(last.ID, c.ID)) < 0 {
				last = &e.measured[tc][i]
			}
		}
		if last != nil {
			needs[last.ID] = graph.OnAny
		}
	}
	var edges []GraphEdge
	for from, condition := range needs {
		edges = append(edges, GraphEdge{from, j.ID, condition})
	}
	slices.SortFunc(edges, func(a, b GraphEdge) int { return cmp.Compare(a.From, b.From) })
	return edges
}

// before reports whether job c stands before job j: in an earlier stage or, among looks,
// in an earlier one.
func before(c, j GraphJob, now map[int64]bool) bool {
	if order := cmp.Compare(stageOrder[c.Stage], stageOrder[j.Stage]); order != 0 {
		return order < 0
	}
	return j.Stage == bench.StageVerify && !now[c.ID] && c.ID < j.ID
}
