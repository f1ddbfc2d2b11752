package apiclient

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
)

// GraphSum counts the jobs of a graph, or of a set, by their states.
type GraphSum struct {
	State     graph.Status         `json:"state,omitempty" doc:"Roll-up of its jobs: what still happens goes before what has ended, and the worst end before better ones. For a set, jobs that were replaced are left out."`
	Jobs      int                  `json:"jobs" doc:"Each counts in the graph for which it was written."`
	States    map[graph.Status]int `json:"states" doc:"Number of jobs by state."`
	Ran       int                  `json:"ran" doc:"Jobs of which a run has begun."`
	Replaced  int                  `json:"replaced,omitempty" doc:"Jobs that a later one has replaced."`
	StartedAt *time.Time           `json:"started_at,omitempty" doc:"When the first run began."`
	EndedAt   *time.Time           `json:"ended_at,omitempty" doc:"When the last job ended, if none is open."`
}

// Graph is a graph of a request: jobs that were written together, and what they need.
type Graph struct {
	ID      string            `json:"id"`
	Request bench.RequestID   `json:"request" doc:"ID of the request, and of its set of graphs."`
	Project string            `json:"project"`
	Tag     string            `json:"tag,omitempty"`
	Reason  bench.GraphReason `json:"reason" doc:"Why it was written: the stages build, parent, own and verify; retry, remeasure, retrigger."`
	Follows string            `json:"follows,omitempty" doc:"The latest graph with jobs that this one needs or replaces."`
	GraphSum
	CreatedAt time.Time `json:"created_at"`
}

// GraphList is a list of graphs, the newest first.
type GraphList struct {
	Graphs []Graph `json:"graphs"`
	Next   string  `json:"next,omitempty" doc:"Cursor of the next page."`
}

// GraphDetail is one graph, or the set of all graphs of a request, with its nodes.
type GraphDetail struct {
	ID      string          `json:"id" doc:"ID of the graph, or of the request if it is the set."`
	Request bench.RequestID `json:"request"`
	Project string          `json:"project"`
	Tag     string          `json:"tag,omitempty"`
	GraphSum
	Graphs []Graph     `json:"graphs" doc:"All graphs of the set, in the order in which they were written."`
	Nodes  []GraphNode `json:"nodes"`
	Edges  []GraphEdge `json:"edges"`
}

// GraphNode is a job as a node of a graph.
type GraphNode struct {
	Job       bench.JobKey     `json:"job"`
	Graph     string           `json:"graph" doc:"The graph for which the job was written, or in which it is an input."`
	Input     bool             `json:"input,omitempty" doc:"It was written for an earlier graph, and is needed here."`
	Kind      graph.Kind       `json:"kind"`
	Stage     bench.Stage      `json:"stage"`
	Title     string           `json:"title" doc:"What it measures or builds, in words."`
	Target    bench.Target     `json:"target"`
	Tag       string           `json:"tag,omitempty"`
	Versus    string           `json:"versus,omitempty"`
	TestCases int              `json:"test_cases,omitempty"`
	SizeClass bench.SizeClass  `json:"size_class"`
	Optional  bool             `json:"optional,omitempty"`
	State     graph.Status     `json:"state"`
	Since     *time.Time       `json:"since,omitempty"`
	Until     *time.Time       `json:"until,omitempty" doc:"When a blocked node is skipped unless its input succeeds."`
	Reason    *GraphNodeReason `json:"reason,omitempty" doc:"Of a blocked or skipped node."`
	Held      string           `json:"held,omitempty" doc:"Why a node that is ready is put aside: turn, input, pause, cap."`
	Message   string           `json:"message,omitempty"`
	StartedAt *time.Time       `json:"started_at,omitempty"`
	EndedAt   *time.Time       `json:"ended_at,omitempty"`
	Replaces  bench.JobKey     `json:"replaces,omitempty"`
	Replaced  bool             `json:"replaced,omitempty" doc:"A later job has its place, or it was dropped."`
}

// GraphNodeReason says why a node is blocked or was skipped.
type GraphNodeReason struct {
	Code  graph.ReasonCode `json:"code"`
	Job   bench.JobKey     `json:"job" doc:"The job at fault."`
	More  int              `json:"more,omitempty" doc:"Other inputs that are missing as well."`
	Words string           `json:"words"`
}

// GraphEdge says that the job To needs the job From.
type GraphEdge struct {
	From      bench.JobKey    `json:"from"`
	To        bench.JobKey    `json:"to"`
	Condition graph.Condition `json:"on" doc:"How From must have ended: success; resolved, in success or failure; any."`
}

// GraphQuery narrows a list of graphs. Zero values do not narrow.
type GraphQuery struct {
	// Request is its ID or project:tag.
	Request string
	// Ran selects graphs of which a run has begun.
	Ran    bool
	Limit  int
	Cursor string
}

// Graphs lists graphs of a project, the newest first.
func (c *Client) Graphs(ctx context.Context, project string, q GraphQuery) (GraphList, error) {
	query := url.Values{}
	set(query, "request", q.Request)
	set(query, "cursor", q.Cursor)
	if q.Ran {
		query.Set("ran", "true")
	}
	if q.Limit > 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	return get[GraphList](ctx, c, v1("projects", project, "graphs"), query)
}

// Graph returns a graph by its ID, or the whole set by a request's ID or project:tag.
func (c *Client) Graph(ctx context.Context, ref string) (GraphDetail, error) {
	return get[GraphDetail](ctx, c, v1("graphs", ref), nil)
}
