package apiclient

import (
	"context"
	"net/http"
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
	ID         string            `json:"id"`
	Request    bench.RequestID   `json:"request" doc:"ID of the request, and of its set of graphs."`
	Project    string            `json:"project"`
	Tag        string            `json:"tag,omitempty"`
	Reason     bench.GraphReason `json:"reason" doc:"Why it was written: the stages build, parent, own and verify; template; retry, remeasure, retrigger."`
	Follows    string            `json:"follows,omitempty" doc:"The latest graph with jobs that this one needs or replaces."`
	Template   string            `json:"template,omitempty" doc:"Name of the template that made the graph."`
	Customised bool              `json:"customised,omitempty" doc:"The graphs of its set differ from what the template made."`
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
	ID       string          `json:"id" doc:"ID of the graph, or of the request if it is the set."`
	Request  bench.RequestID `json:"request"`
	Project  string          `json:"project"`
	Tag      string          `json:"tag,omitempty"`
	Template *TemplateCall   `json:"template,omitempty" doc:"The template that made it."`
	GraphSum
	Graphs []Graph     `json:"graphs" doc:"All graphs of the set, in the order in which they were written."`
	Nodes  []GraphNode `json:"nodes"`
	Edges  []GraphEdge `json:"edges"`
}

// GraphNode is a job as a node of a graph.
type GraphNode struct {
	Job       bench.JobKey     `json:"job"`
	Name      string           `json:"name,omitempty" doc:"Name of the template's node, of which several jobs may be."`
	Service   bool             `json:"service,omitempty" doc:"The service carries it out, or it was done before: no collector runs it."`
	Question  string           `json:"question,omitempty" doc:"What a sign-off asks."`
	Accounts  []string         `json:"accounts,omitempty" doc:"Who may answer a sign-off; absent: all who may change the project."`
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
	Reruns    int              `json:"reruns,omitempty" doc:"How often it was asked for again as itself."`
	Passed    int              `json:"passed,omitempty" doc:"How often it has succeeded, of all times that it was asked for."`
	Outdated  bool             `json:"outdated,omitempty" doc:"Something that it needs has succeeded again since it began."`
}

// Times returns how often the node was asked for.
func (n GraphNode) Times() int { return n.Reruns + 1 }

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

// GraphCall says which graph is run.
type GraphCall struct {
	Act
	Template    string   `json:"template" example:"nightly" doc:"Name of the template."`
	Branch      string   `json:"branch,omitempty" example:"main" doc:"Branch for which the graph is made; main if left out."`
	Definitions string   `json:"definitions,omitempty" maxLength:"64" doc:"Content hash of definitions that the project was given, or its first seven digits or more; the newest if left out."`
	Parameters  []string `json:"parameters,omitempty" maxItems:"1000" example:"[\"tag=v1.2.3\"]" doc:"Values of parameters, as name=value. Entries of a list stand between commas."`
	Queue       string   `json:"queue,omitempty" doc:"Queue of its jobs; absent: the default one."`
	// Changes customise the graph, where the branch allows that.
	Changes []NodeChange `json:"changes,omitempty" maxItems:"1000" doc:"How the graph differs from the template's: refused for protected branches, and where the branch forbids it."`
}

// NodeChange customises a node of a graph.
type NodeChange struct {
	Node   string         `json:"node" maxLength:"128" doc:"Name of the node."`
	Set    map[string]any `json:"set,omitempty" doc:"New values of its job's definition by their paths, such as iterations or constraints.machines; null takes a value out."`
	Remove bool           `json:"remove,omitempty" doc:"Take the node out, with its edges."`
}

// Sources of a clone.
const (
	CloneTemplate = "template"
	CloneGraph    = "graph"
)

// GraphClone runs a graph once more, as a request of its own.
type GraphClone struct {
	Act
	From       string   `json:"from,omitempty" enum:"template,graph" doc:"What is copied: what the template made, or the graph as it was customised. Needed if it was customised."`
	Parameters []string `json:"parameters,omitempty" maxItems:"1000" doc:"Other values of parameters, as name=value; for clones of the template."`
	Queue      string   `json:"queue,omitempty" doc:"Queue of its jobs; absent: the default one."`
}

// TemplateCall describes how a graph was made.
type TemplateCall struct {
	Name        string         `json:"name"`
	Definitions string         `json:"definitions" doc:"Content hash of the definitions."`
	Parameters  map[string]any `json:"parameters,omitempty" doc:"Those that count, given or not."`
	Given       []string       `json:"given,omitempty" doc:"Those that were given, as name=value."`
	Graph       string         `json:"graph" doc:"Content hash of the graph."`
	Customised  []string       `json:"customised,omitempty" doc:"How the graph differs from the template's, in words."`
	ClonedFrom  string         `json:"cloned_from,omitempty" doc:"The graph of which it is a copy."`
}

// StartedGraph describes a graph that runs, or would.
type StartedGraph struct {
	Request    *Request `json:"request,omitempty" doc:"Absent if nothing runs."`
	Graph      string   `json:"graph,omitempty" doc:"ID of the graph."`
	GraphHash  string   `json:"graph_hash"`
	Nodes      int      `json:"nodes"`
	Edges      int      `json:"edges"`
	Customised []string `json:"customised,omitempty" doc:"How it differs from the template's, in words."`
	DryRun     bool     `json:"dry_run,omitempty"`
	Warnings   []string `json:"warnings,omitempty" doc:"Why some of its nodes may have to wait."`
}

// SignOff answers a sign-off.
type SignOff struct {
	Act
	Node  string `json:"node,omitempty" maxLength:"500" doc:"Name or key of the sign-off; absent: the only one that waits."`
	Agree bool   `json:"agree" doc:"Whether the answer is yes."`
}

// RunGraph runs the graph that a stored template makes, or only tells what would run.
func (c *Client) RunGraph(ctx context.Context, project string, in GraphCall, dryRun bool) (out StartedGraph, err error) {
	query := url.Values{}
	if dryRun {
		query.Set("dry_run", "true")
	}
	_, _, err = c.do(ctx, call{method: http.MethodPost, path: v1("projects", project, "graphs"), query: query, in: in, out: &out})
	return out, err
}

// CloneGraph runs a graph once more, or only tells what would run.
func (c *Client) CloneGraph(ctx context.Context, ref string, in GraphClone, dryRun bool) (out StartedGraph, err error) {
	query := url.Values{}
	if dryRun {
		query.Set("dry_run", "true")
	}
	_, _, err = c.do(ctx, call{method: http.MethodPost, path: v1("graphs", ref, "clone"), query: query, in: in, out: &out})
	return out, err
}

// SignOff answers a sign-off of a graph.
func (c *Client) SignOff(ctx context.Context, ref string, in SignOff) (out Operation, err error) {
	_, _, err = c.do(ctx, call{method: http.MethodPost, path: v1("graphs", ref, "sign-off"), in: in, out: &out})
	return out, err
}

// GraphQuery narrows a list of graphs. Zero values do not narrow.
type GraphQuery struct {
	// Request is its ID or project:tag.
	Request string
	// Ran selects graphs of which a run has begun, Customised those that differ from their
	// templates.
	Ran        bool
	Customised bool
	Limit      int
	Cursor     string
}

// Graphs lists graphs of a project, the newest first.
func (c *Client) Graphs(ctx context.Context, project string, q GraphQuery) (GraphList, error) {
	query := url.Values{}
	set(query, "request", q.Request)
	set(query, "cursor", q.Cursor)
	if q.Ran {
		query.Set("ran", "true")
	}
	if q.Customised {
		query.Set("customised", "true")
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
