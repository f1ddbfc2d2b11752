package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/definitions"
	"github.com/benchloom/benchloom/internal/graph"
	"github.com/benchloom/benchloom/internal/graphset"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

// GraphRunRecord records graphs that are run, and answers to their sign-offs.
type GraphRunRecord interface {
	// CreateGraphRequest returns the earlier request for a repeated idempotency key, with
	// store.ErrConflict when that asks for something else.
	CreateGraphRequest(ctx context.Context, r bench.Request, g *graph.Graph) (stored bench.Request, created bool, err error)
	GraphSet(ctx context.Context, id bench.RequestID) (graphset.Set, error)
	GraphDefinition(ctx context.Context, id bench.RequestID) (*graph.Graph, error)
	// SignOff returns store.ErrAnswered if the sign-off has ended otherwise, and
	// store.ErrNotFound for an unknown one.
	SignOff(ctx context.Context, id bench.RequestID, key bench.JobKey, agree bool, act store.Act) (done store.Operation, taskQueues []string, err error)
}

// GraphRunWorkflows tells requests that a node has ended.
type GraphRunWorkflows interface {
	JobEnded(ctx context.Context, request bench.RequestRef, job protocol.JobEnded) error
}

// graphRunHandlers run graphs that stored templates make.
type graphRunHandlers struct {
	*base
	record      GraphRunRecord
	workflows   GraphRunWorkflows
	requests    *requestHandlers
	definitions *definitionHandlers
}

func (s *graphRunHandlers) register() {
	handle(s.base, operation{id: "run-graph", method: http.MethodPost, path: "/projects/{project}/graphs", need: toWrite, scope: ofProject, audit: "graph run", tag: "graphs", slots: suiteSlots, maxBody: namesBody,
		summary: "Run the graph that a stored template makes", description: "Answers 201 for a new request and 200 for a repeated idempotency key. The jobs are written by the request's workflow. With dry_run, nothing runs: the answer tells what would.",
		status: http.StatusCreated, answers: []documented{{status: http.StatusOK, json: reflect.TypeFor[apiclient.StartedGraph]()}}}, s.run)
	handle(s.base, operation{id: "clone-graph", method: http.MethodPost, path: "/graphs/{graph}/clone", need: toWrite, scope: ofProject, audit: "graph clone", tag: "graphs", slots: suiteSlots, maxBody: namesBody,
		summary: "Run a graph of a template once more", description: "As a request of its own: with the same definitions, branch and parameters, from what the template made or from the graph as it was customised. Nothing of what became of the other comes along.",
		status: http.StatusCreated, answers: []documented{{status: http.StatusOK, json: reflect.TypeFor[apiclient.StartedGraph]()}}}, s.clone)
	handle(s.base, operation{id: "sign-off", method: http.MethodPost, path: "/graphs/{graph}/sign-off", need: toWrite, scope: ofProject, tag: "graphs",
		summary: "Answer a sign-off of a graph", description: "A node that waits for a person ends in success if the answer is yes, else in failure. The same answer again changes nothing."}, s.signOff)
}

type runGraph struct {
	Project string `path:"project" doc:"Name of the project."`
	DryRun  bool   `query:"dry_run" doc:"Only tell what would run."`
	Body    apiclient.GraphCall
}

type startedGraph struct {
	Status int
	Body   apiclient.StartedGraph
}

func (s *graphRunHandlers) run(ctx context.Context, in *runGraph) (*startedGraph, error) {
	orDefault(&in.Body.Branch, "main")
	e, err := s.definitions.expand(ctx, in.Project, in.Body.Definitions, definitions.Call{Template: in.Body.Template, Branch: in.Body.Branch}, in.Body.Parameters)
	if err != nil {
		return nil, err
	}
	wanted := wantedGraph{project: in.Project, graph: e.Graph, call: callOf(e, in.Body.Parameters), by: submission(ctx, in.Body.Act, in.Body.Queue, in.Body.Branch), dryRun: in.DryRun}
	if len(in.Body.Changes) > 0 {
		if err := customisable(e.Rule, in.Body.Branch); err != nil {
			return nil, err
		}
		changes := make([]graph.NodeChange, len(in.Body.Changes))
		for i, c := range in.Body.Changes {
			changes[i] = graph.NodeChange(c)
		}
		if wanted.graph, wanted.call.Customised, err = e.Graph.Customise(changes); err != nil {
			return nil, fmt.Errorf("template %s: %w", in.Body.Template, err)
		}
		wanted.call.Graph = wanted.graph.Hash()
	}
	return s.start(ctx, wanted)
}

func callOf(e *definitions.Expansion, given []string) bench.TemplateCall {
	return bench.TemplateCall{Name: e.Template, Definitions: e.Definitions, Parameters: e.Parameters, Given: given, Graph: e.Hash}
}

func submission(ctx context.Context, act apiclient.Act, queue, branch string) bench.Submission {
	return bench.Submission{Submitter: caller(ctx).Owner, Queue: queue, Branch: branch, IdempotencyKey: act.IdempotencyKey}
}

// customisable refuses changes of a branch's graphs where its rule does not allow them.
func customisable(rule definitions.Branch, branch string) error {
	switch {
	case rule.Protected:
		return problemf(http.StatusForbidden, "protected", "the branch %s is protected: nobody changes its graphs; run the template as it is, or customise it on another branch", branch)
	case !rule.Customise:
		return problemf(http.StatusForbidden, "not-customisable", "the branch %s does not allow graphs that differ from their templates (customise: false); run the template as it is", branch)
	}
	return nil
}

// wantedGraph is a graph to be run.
type wantedGraph struct {
	project string
	graph   *graph.Graph
	call    bench.TemplateCall
	by      bench.Submission
	dryRun  bool
}

// start runs a graph, or tells what would run.
func (s *graphRunHandlers) start(ctx context.Context, w wantedGraph) (*startedGraph, error) {
	if err := checkKey(w.by.IdempotencyKey); err != nil {
		return nil, err
	}
	project, err := s.project(ctx, w.project, http.StatusNotFound)
	if err != nil {
		return nil, err
	}
	r, err := bench.NewGraphRequest(w.project, w.call, w.by)
	if err != nil {
		return nil, err
	}
	out := apiclient.StartedGraph{GraphHash: w.graph.Hash(), Nodes: w.graph.Len(), Edges: len(w.graph.Edges()), Customised: w.call.Customised, DryRun: w.dryRun}
	stored, err := s.requests.record.RequestLike(ctx, r)
	switch {
	case errors.Is(err, store.ErrConflict):
		return nil, differentGraph(r, stored)
	case errors.Is(err, store.ErrNotFound):
		if out.Warnings, err = s.acceptable(ctx, r, project, w.graph); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	}
	if w.dryRun {
		return &startedGraph{http.StatusOK, out}, nil
	}
	if r.ID, err = bench.NewRequestID(s.Random); err != nil {
		return nil, err
	}
	stored, created, err := s.record.CreateGraphRequest(ctx, r, w.graph)
	if errors.Is(err, store.ErrConflict) {
		return nil, differentGraph(r, stored)
	}
	if err != nil {
		return nil, err
	}
	s.requests.begin(ctx, []bench.Request{stored})
	shown := requestOf(stored)
	shown.Created = created
	out.Request, out.Graph = &shown, bench.GraphID{Request: stored.ID, Number: 1}.String()
	if !created {
		return &startedGraph{http.StatusOK, out}, nil
	}
	return &startedGraph{http.StatusCreated, out}, nil
}

type cloneGraph struct {
	Graph  string `path:"graph" doc:"ID of the graph, or of its request." example:"r7k2m4q9xt2-1"`
	DryRun bool   `query:"dry_run" doc:"Only tell what would run."`
	Body   apiclient.GraphClone
}

func (s *graphRunHandlers) clone(ctx context.Context, in *cloneGraph) (*startedGraph, error) {
	ref, _ := graphRef(in.Graph)
	r, err := s.request(ctx, ref)
	if err != nil {
		return nil, err
	}
	t := r.Template
	switch {
	case t == nil:
		return nil, problemf(http.StatusConflict, "no-template", "request %s runs no graph of a template; 'benchloom retrigger %s --select stage=own' measures it again", r.ID, r.ID)
	case in.Body.From == "" && len(t.Customised) > 0:
		return nil, problemf(http.StatusUnprocessableEntity, "which-source", "the graph of request %s was customised; say whether the clone is made from the template or from the graph", r.ID)
	}
	call := definitions.Call{Template: t.Name, Branch: r.Branch}
	e, err := s.definitions.expand(ctx, r.Project, t.Definitions, call, replaced(t.Given, in.Body.Parameters))
	if err != nil {
		return nil, err
	}
	wanted := wantedGraph{
		project: r.Project, graph: e.Graph, call: callOf(e, replaced(t.Given, in.Body.Parameters)), by: submission(ctx, in.Body.Act, in.Body.Queue, r.Branch), dryRun: in.DryRun,
	}
	if in.Body.From == apiclient.CloneGraph && len(t.Customised) > 0 {
		if len(in.Body.Parameters) > 0 {
			return nil, invalid("parameters belong to clones of a template; the graph of request %s is copied as it was customised", r.ID)
		}
		if err := customisable(e.Rule, r.Branch); err != nil {
			return nil, err
		}
		if wanted.graph, err = s.record.GraphDefinition(ctx, r.ID); err != nil {
			return nil, err
		}
		wanted.call.Graph, wanted.call.Customised = wanted.graph.Hash(), t.Customised
	}
	wanted.call.ClonedFrom = bench.GraphID{Request: r.ID, Number: 1}.String()
	return s.start(ctx, wanted)
}

// replaced returns parameters, written as name=value, in which others replace those of the
// same names.
func replaced(given, others []string) []string {
	name := func(value string) string {
		before, _, _ := strings.Cut(value, "=")
		return before
	}
	kept := slices.DeleteFunc(slices.Clone(given), func(value string) bool {
		return slices.ContainsFunc(others, func(other string) bool { return name(other) == name(value) })
	})
	return append(kept, others...)
}

func differentGraph(wanted, stored bench.Request) error {
	return problemf(http.StatusConflict, "conflict", "request %s for the idempotency key %q exists already with another graph, branch or queue; look at it with 'benchloom graph show %s', or use another key", stored.ID, wanted.IdempotencyKey, stored.ID)
}

// acceptable refuses a graph with a node that can never run, or whose queue the caller may not
// use. Warnings explain why other nodes have to wait.
func (s *graphRunHandlers) acceptable(ctx context.Context, r bench.Request, project store.Project, g *graph.Graph) ([]string, error) {
	base, err := s.requests.facts(ctx, r, project)
	if err != nil {
		return nil, err
	}
	warnings, err := plan.Checked(g, func(n graph.Node) (plan.Facts, error) {
		f := base
		if f.Request = plan.NodeRequest(r, n); f.Request.Tag == "" {
			return f, nil
		}
		if f.SuiteHash = plan.NodeSuite(n); f.SuiteHash == "" {
			f.SuiteHash = project.SuiteHash
		}
		if f.SuiteHash == "" {
			return f, problemf(http.StatusUnprocessableEntity, "no-suite", "node %s measures, and project %s has no suite; apply it with one ('benchloom project apply')", n.Name, project.Name)
		}
		f.Suite, err = s.suites.Suite(ctx, f.SuiteHash)
		if errors.Is(err, store.ErrNotFound) {
			err = problemf(http.StatusUnprocessableEntity, "unknown-suite", "node %s measures with the suite %s, which the service does not have; upload it with 'benchloom suite push'", n.Name, f.SuiteHash)
		}
		return f, err
	})
	if err != nil {
		return nil, fmt.Errorf("template %s: %w", r.Template.Name, err)
	}
	return warnings, s.requests.standing(ctx, apiclient.NewRequest{PlacementWish: apiclient.PlacementWish{Queue: r.Queue}, Branch: r.Branch})
}

type signOff struct {
	Graph string `path:"graph" doc:"ID of the graph, or of its request." example:"r7k2m4q9xt2-1"`
	Body  apiclient.SignOff
}

func (s *graphRunHandlers) signOff(ctx context.Context, in *signOff) (*body[apiclient.Operation], error) {
	who, err := act(ctx, in.Body.Act)
	if err != nil {
		return nil, err
	}
	ref, _ := graphRef(in.Graph)
	r, err := s.request(ctx, ref)
	if err != nil {
		return nil, err
	}
	set, err := s.record.GraphSet(ctx, r.ID)
	if errors.Is(err, store.ErrNotFound) {
		return nil, noGraph(r, 0)
	} else if err != nil {
		return nil, err
	}
	now := s.Now()
	node, err := signOffNode(set, in.Body.Node, now)
	if err != nil {
		return nil, err
	}
	d, _ := node.Service.Definition().(graph.SignOff)
	if len(d.Accounts) > 0 && !slices.Contains(d.Accounts, who.Who) {
		return nil, problemf(http.StatusForbidden, "not-asked", "the sign-off %s of request %s asks %s, not %s", node.Name, r.ID, strings.Join(d.Accounts, ", "), who.Who)
	}
	if state := set.States(now)[node.Job]; state.Status != graph.Ready && node.Status == bench.JobQueued {
		return nil, problemf(http.StatusConflict, "not-ready", "the sign-off %s of request %s does not wait for an answer: it is %s; 'benchloom graph show %s' says why", node.Name, r.ID, state.Status, r.ID)
	}
	done, queues, err := s.record.SignOff(ctx, r.ID, node.Job, in.Body.Agree, who)
	if errors.Is(err, store.ErrAnswered) {
		return nil, problemf(http.StatusConflict, "answered", "the sign-off %s of request %s has ended: %s", node.Name, r.ID, plain(err))
	}
	if err != nil {
		return nil, err
	}
	status := bench.JobSuccess
	if !in.Body.Agree {
		status = bench.JobFailure
	}
	fill := make(map[string]bool, len(queues))
	for _, q := range queues {
		fill[q] = true
	}
	s.requests.fill(ctx, fill)
	s.reach(ctx, "tell a request of an answer", r.Ref().WorkflowID(), func(ctx context.Context) error {
		return s.workflows.JobEnded(ctx, r.Ref(), protocol.JobEnded{Key: node.Job, Status: status})
	})
	return answer(operationOf(done), nil)
}

// signOffNode finds a sign-off by its name or key. Without one, it is the only one that waits.
func signOffNode(set graphset.Set, ref string, now time.Time) (graphset.Node, error) {
	var found, waiting []graphset.Node
	var names []string
	states := set.States(now)
	for _, n := range set.Nodes {
		if n.Input || n.Replaced || n.NodeKind() != graph.KindSignOff {
			continue
		}
		names = append(names, n.Name)
		if n.Name == ref || string(n.Job) == ref {
			found = append(found, n)
		}
		if states[n.Job].Status == graph.Ready {
			waiting = append(waiting, n)
		}
	}
	switch {
	case ref == "" && len(waiting) == 1:
		return waiting[0], nil
	case len(found) == 1:
		return found[0], nil
	case len(names) == 0:
		return graphset.Node{}, problemf(http.StatusNotFound, "unknown-node", "the graph has no sign-off")
	case ref == "":
		return graphset.Node{}, problemf(http.StatusUnprocessableEntity, "which-node", "%s of the graph wait for an answer; name one of %s", count(len(waiting), "sign-off"), strings.Join(names, ", "))
	}
	return graphset.Node{}, problemf(http.StatusNotFound, "unknown-node", "the graph has no sign-off %.80q; it has %s", ref, strings.Join(names, ", "))
}
