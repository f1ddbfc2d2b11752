package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
	"github.com/benchloom/benchloom/internal/graphset"
	"github.com/benchloom/benchloom/internal/store"
)

// GraphRecord reads graphs of requests.
type GraphRecord interface {
	// Graphs lists graphs, newest first, with the whole sets to which they belong.
	Graphs(ctx context.Context, filter store.GraphFilter) ([]graphset.Graph, map[bench.RequestID]graphset.Set, error)
	// GraphSet returns store.ErrNotFound for a request without graphs.
	GraphSet(ctx context.Context, id bench.RequestID) (graphset.Set, error)
}

type graphHandlers struct {
	*base
	record GraphRecord
}

func (s *graphHandlers) register() {
	handle(s.base, operation{id: "list-graphs", method: http.MethodGet, path: "/projects/{project}/graphs", need: toRead, tag: "graphs",
		summary: "List the graphs of a project, newest first", description: "Jobs that were written together are a graph; all graphs of a request are its set. Requests for commands have none, unless a template has made their graph, and so have those that were made before graphs were recorded."}, s.listGraphs)
	handle(s.base, operation{id: "get-graph", method: http.MethodGet, path: "/graphs/{graph}", need: toRead, tag: "graphs",
		summary: "Show a graph, or the graphs of a request, with nodes and edges"}, s.getGraph)
}

type listGraphs struct {
	Project    string `path:"project" doc:"Name of the project."`
	Request    string `query:"request" doc:"Only those of this request: its ID, or project:tag of its artifact."`
	Ran        bool   `query:"ran" doc:"Only those of which a run has begun."`
	Customised bool   `query:"customised" doc:"Only those that differ from what their templates made."`
	Limit      int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
	Cursor     string `query:"cursor" doc:"The value of next from the page before."`
}

func (s *graphHandlers) listGraphs(ctx context.Context, in *listGraphs) (*body[apiclient.GraphList], error) {
	if _, err := s.project(ctx, in.Project, http.StatusNotFound); err != nil {
		return nil, err
	}
	filter := store.GraphFilter{Project: in.Project, Ran: in.Ran, Customised: in.Customised, Limit: in.Limit}
	if in.Request != "" {
		r, err := s.request(ctx, in.Request)
		if err != nil {
			return nil, err
		}
		filter.Request = r.ID
	}
	var err error
	if filter.Before, err = rowCursor(in.Cursor); err != nil {
		return nil, err
	}
	graphs, sets, err := s.record.Graphs(ctx, filter)
	if err != nil {
		return nil, err
	}
	now, sums := s.Now(), make(map[bench.RequestID]map[int]graphset.Sum)
	list := apiclient.GraphList{Graphs: make([]apiclient.Graph, 0, len(graphs))}
	for _, g := range graphs {
		of, known := sums[g.Request]
		if !known {
			_, of = sets[g.Request].Sums(sets[g.Request].States(now))
			sums[g.Request] = of
		}
		list.Graphs = append(list.Graphs, graphOf(g, of[g.Number]))
	}
	if len(graphs) == in.Limit {
		list.Next = strconv.FormatInt(graphs[len(graphs)-1].Row, 10)
	}
	return answer(list, nil)
}

type getGraph struct {
	Graph string `path:"graph" doc:"ID of the graph; or ID of a request, or project:tag of its artifact: all of its graphs." example:"r7k2m4q9xt2-1"`
}

func (s *graphHandlers) getGraph(ctx context.Context, in *getGraph) (*body[apiclient.GraphDetail], error) {
	ref, number := graphRef(in.Graph)
	r, err := s.request(ctx, ref)
	if err != nil {
		return nil, err
	}
	set, err := s.record.GraphSet(ctx, r.ID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, noGraph(r, 0)
	case err != nil:
		return nil, err
	case number > 0 && !slices.ContainsFunc(set.Graphs, func(g graphset.Graph) bool { return g.Number == number }):
		return nil, noGraph(r, number)
	}
	return answer(graphDetail(r, set, number, s.Now()), nil)
}

// graphRef splits the ID of a graph into the ID of its request and its number. Anything else
// names a request; the number is 0.
func graphRef(s string) (request string, number int) {
	if id, err := bench.ParseGraphID(s); err == nil {
		return string(id.Request), id.Number
	}
	return s, 0
}

// noGraph reports that a request has no graph with a number, or none at all if it is 0.
func noGraph(r bench.Request, number int) error {
	if number > 0 {
		return problemf(http.StatusNotFound, "unknown-graph", "request %s has no graph with the number %d; 'benchloom graph list %s --request %s' lists those that it has", r.ID, number, r.Project, r.ID)
	}
	return problemf(http.StatusNotFound, "unknown-graph", "request %s has no graph: it has no jobs yet, runs commands, or was made before graphs were recorded; 'benchloom request jobs %s' lists its jobs", r.ID, r.ID)
}

func graphOf(g graphset.Graph, sum graphset.Sum) apiclient.Graph {
	out := apiclient.Graph{
		ID: g.ID().String(), Request: g.Request, Project: g.Project, Tag: g.Tag, Reason: g.Reason, GraphSum: sumOf(sum), CreatedAt: g.CreatedAt,
		Template: g.Template, Customised: g.Customised,
	}
	if g.Follows > 0 {
		out.Follows = bench.GraphID{Request: g.Request, Number: g.Follows}.String()
	}
	return out
}

func sumOf(s graphset.Sum) apiclient.GraphSum {
	out := apiclient.GraphSum{State: s.Status, Jobs: s.Jobs, States: s.States, Ran: s.Ran, Replaced: s.Replaced, StartedAt: s.StartedAt, EndedAt: s.EndedAt}
	if out.States == nil {
		out.States = map[graph.Status]int{}
	}
	return out
}

// graphDetail shows one graph of a set; all of them if number is 0.
func graphDetail(r bench.Request, set graphset.Set, number int, now time.Time) apiclient.GraphDetail {
	states, outdated := set.States(now), set.Outdated()
	all, of := set.Sums(states)
	shown, out := set.Whole(), apiclient.GraphDetail{ID: string(r.ID), Request: r.ID, Project: r.Project, Tag: r.Tag, Template: templateOf(r), GraphSum: sumOf(all)}
	if number > 0 {
		shown, out.GraphSum = set.Only(number), sumOf(of[number])
		out.ID = bench.GraphID{Request: r.ID, Number: number}.String()
	}
	for _, g := range set.Graphs {
		out.Graphs = append(out.Graphs, graphOf(g, of[g.Number]))
	}
	out.Nodes, out.Edges = make([]apiclient.GraphNode, 0, len(shown.Nodes)), make([]apiclient.GraphEdge, 0, len(shown.Edges))
	there := make(map[bench.JobKey]bool)
	for _, n := range shown.Nodes {
		there[n.Job] = true
		node := graphNodeOf(r.ID, n, states[n.Job])
		node.Outdated = outdated[n.Job]
		out.Nodes = append(out.Nodes, node)
	}
	for _, e := range shown.Edges {
		if there[e.From] && there[e.To] {
			out.Edges = append(out.Edges, apiclient.GraphEdge{From: e.From, To: e.To, Condition: e.Condition})
		}
	}
	return out
}

func graphNodeOf(request bench.RequestID, n graphset.Node, state graph.State) apiclient.GraphNode {
	out := apiclient.GraphNode{
		Job: n.Job, Name: n.Name, Service: n.Service.Kind() != "", Graph: bench.GraphID{Request: request, Number: n.Number}.String(), Input: n.Input, Kind: n.NodeKind(), Stage: n.Stage, Title: n.Title(), Target: n.Target,
		Tag: n.Tag, Versus: n.Versus, TestCases: n.TestCases, SizeClass: n.SizeClass, Optional: n.Optional, State: state.Status, Since: known(state.Since), Until: known(state.Until),
		Message: n.Message, StartedAt: n.StartedAt, EndedAt: n.EndedAt, Replaces: n.Replaces, Replaced: n.Replaced, Reruns: n.Rerun, Passed: n.Passed(),
	}
	if state.Status == graph.Ready {
		out.Held = n.Held
	}
	if d, is := n.Service.Definition().(graph.SignOff); is {
		out.Question, out.Accounts = d.Question, d.Accounts
	}
	if r := state.Reason; r.Code != "" {
		out.Reason = &apiclient.GraphNodeReason{Code: r.Code, Job: bench.JobKey(r.Node), More: r.More, Words: r.String()}
	}
	return out
}

// known returns a time unless it is zero.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
