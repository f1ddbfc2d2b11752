package orchestration

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
	"github.com/benchloom/benchloom/internal/graphset"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/results"
	"github.com/benchloom/benchloom/internal/store"
)

// Graphs that are made from templates: writing their jobs, and carrying out the nodes that
// need no machine.

// writeTemplate writes the graph that a request runs. Artifacts that its nodes measure but
// do not build are built first, as their project says.
func (a *Activities) writeTemplate(ctx context.Context, r bench.Request) error {
	g, err := a.Store.GraphDefinition(ctx, r.ID)
	if err != nil {
		return found(err, "reading the graph")
	}
	base, err := a.facts(ctx, r, bench.StageOwn)
	if err != nil {
		return err
	}
	w := templateWriter{Activities: a, request: r, base: base, measured: make(map[string]plan.Facts), builds: make(map[bench.JobKey]string)}
	w.graph.Edges = slices.Clone(g.Edges())
	for _, n := range g.Nodes() { // so that the nodes that measure find what others build
		if n.Job.Kind() == graph.KindBuild {
			if err := w.build(ctx, n); err != nil {
				return ofNode(n, err)
			}
		}
	}
	for _, n := range g.Nodes() {
		if n.Job.Kind() != graph.KindBuild {
			if err := w.node(ctx, n); err != nil {
				return ofNode(n, err)
			}
		}
	}
	return a.Store.ExpandRequest(ctx, r.ID, store.Expansion{Stage: bench.StageOwn, Jobs: w.jobs, Template: &w.graph})
}

// ofNode names the node in an error, and keeps a permanent error permanent: Temporal looks
// only at the outermost error.
func ofNode(n graph.Node, err error) error {
	if application, is := errors.AsType[*temporal.ApplicationError](err); is && application.NonRetryable() {
		return permanent(fmt.Errorf("node %s: %s", n.Name, application.Message()))
	}
	return fmt.Errorf("node %s: %w", n.Name, err)
}

// templateWriter collects the jobs of a graph.
type templateWriter struct {
	*Activities
	request bench.Request
	// base holds the facts of all nodes; measured holds the facts about measured artifacts,
	// by what these facts depend on.
	base     plan.Facts
	measured map[string]plan.Facts
	graph    store.TemplateGraph
	jobs     []bench.PlannedJob
	// builds maps the jobs that build to the names of their nodes.
	builds map[bench.JobKey]string
}

// factsOf reads the facts for planning a node.
func (w *templateWriter) factsOf(ctx context.Context, n graph.Node) (plan.Facts, error) {
	f := w.base
	if f.Request = plan.NodeRequest(w.request, n); f.Request.Tag == "" {
		return f, nil
	}
	hash := plan.NodeSuite(n)
	if hash == "" {
		project, err := w.Store.Project(ctx, f.Request.Project)
		if err != nil {
			return f, found(err, "reading project "+f.Request.Project)
		}
		hash = project.SuiteHash
	}
	of := fmt.Sprintf("%s %+v", hash, f.Request)
	known, is := w.measured[of]
	if is {
		return known, nil
	}
	f, err := w.measuring(ctx, f, bench.StageOwn, hash)
	w.measured[of] = f
	return f, err
}

func (w *templateWriter) node(ctx context.Context, n graph.Node) error {
	f, err := w.factsOf(ctx, n)
	if err != nil {
		return err
	}
	jobs, err := f.NodeJobs(n)
	if err != nil {
		return planned(err)
	}
	for _, j := range jobs {
		if err := w.findTrees(ctx, j.Command); err != nil {
			return err
		}
	}
	builds, err := w.buildJobs(ctx, f, jobs)
	if err != nil {
		return err
	}
	for _, b := range builds {
		if w.builds[b.Key] == "" {
			w.builds[b.Key] = "build " + b.Tag + " " + string(b.Target)
			w.jobs = append(w.jobs, b)
			w.graph.Nodes = append(w.graph.Nodes, store.TemplateNode{Node: graph.Node{Name: w.builds[b.Key]}, Jobs: []bench.JobKey{b.Key}})
		}
		edge := graph.Edge{From: w.builds[b.Key], To: n.Name, Condition: graph.OnSuccess}
		if !slices.ContainsFunc(w.graph.Edges, func(e graph.Edge) bool { return e.From == edge.From && e.To == edge.To }) {
			w.graph.Edges = append(w.graph.Edges, edge)
		}
	}
	w.add(n, "", jobs...)
	return nil
}

// findTrees looks up the revisions of a command's checkouts in their repositories.
func (w *templateWriter) findTrees(ctx context.Context, c *bench.Command) error {
	if c == nil || c.Script == nil {
		return nil
	}
	for i, checkout := range c.Script.Checkouts {
		rev, err := w.revision(ctx, checkout.Repository, checkout.Revision)
		if err != nil {
			return err
		}
		c.Script.Checkouts[i].Commit, c.Script.Checkouts[i].Tree = rev.Commit, rev.Tree
	}
	return nil
}

func (w *templateWriter) build(ctx context.Context, n graph.Node) error {
	d, is := n.Job.Definition().(graph.Build)
	if !is {
		return permanent(errors.New("it does not say what is built"))
	}
	f, err := w.factsOf(ctx, n)
	if err != nil {
		return err
	}
	job, needed, err := w.buildJob(ctx, f, plan.Artifact{Tag: d.Tag, Target: d.Target, Recipe: d.BuildRecipe})
	if err != nil {
		return err
	}
	if !needed {
		w.add(n, "it is built and stored already")
		return nil
	}
	if other := w.builds[job.Key]; other != "" {
		return permanent(fmt.Errorf("it builds the same as node %s; make one node of them", other))
	}
	w.builds[job.Key] = n.Name
	w.add(n, "", job)
	return nil
}

func (w *templateWriter) add(n graph.Node, done string, jobs ...bench.PlannedJob) {
	node := store.TemplateNode{Node: n, Done: done, Key: plan.ServiceKey(w.request.ID, n, 0)}
	for _, j := range jobs {
		node.Jobs = append(node.Jobs, j.Key)
	}
	w.jobs, w.graph.Nodes = append(w.jobs, jobs...), append(w.graph.Nodes, node)
}

// walk carries out the nodes of a request's graph that need no machine and whose inputs are
// met, and skips those that the rule of states skips. It returns the seconds after which
// another node is skipped unless something happens; 0: none is.
func (a *Activities) walk(ctx context.Context, r bench.Request) (recheck int, err error) {
	if r.Template == nil || r.Status == bench.Completed {
		return 0, nil
	}
	if asks, err := a.Store.AsksOfService(ctx, r.ID); err != nil || !asks {
		return 0, err
	}
	var fill []string
	for {
		set, err := a.Store.GraphSet(ctx, r.ID)
		if errors.Is(err, store.ErrNotFound) {
			return 0, nil // not written yet
		} else if err != nil {
			return 0, err
		}
		now := time.Now()
		due := set.Due(now)
		ends, err := a.ends(ctx, r, due)
		if err != nil {
			return 0, err
		}
		ended := 0
		if len(ends) > 0 {
			var queues []string
			if ended, queues, err = a.Store.EndNodes(ctx, r.ID, ends); err != nil {
				return 0, err
			}
			fill = append(fill, queues...)
		}
		if ended > 0 {
			continue
		}
		slices.Sort(fill)
		for _, q := range slices.Compact(fill) {
			if err := a.dispatcher().Fill(ctx, q); err != nil {
				return 0, err
			}
		}
		if due.Until.IsZero() {
			return 0, nil
		}
		return max(1, int(math.Ceil(due.Until.Sub(now).Seconds()))), nil
	}
}

// ends carries out what is due.
func (a *Activities) ends(ctx context.Context, r bench.Request, due graphset.Due) ([]store.NodeEnd, error) {
	var ends []store.NodeEnd
	for _, s := range due.Skipped {
		ends = append(ends, store.SkippedNode(s))
	}
	for _, n := range due.Ready {
		end := store.NodeEnd{Key: n.Job, Status: graph.Success}
		var err error
		switch d := n.Service.Definition().(type) {
		case graph.Compare:
			end.Status, end.Message, err = a.compareNode(ctx, r.Project, d)
		case graph.Notify:
			end.Message, err = a.notifyNode(ctx, r.Project, d)
		default:
			err = permanent(fmt.Errorf("node %s: the service does not carry out a %s", n.Name, n.NodeKind()))
		}
		if err != nil {
			return nil, err
		}
		ends = append(ends, end)
	}
	return ends, nil
}

// compareNode compares an artifact with its baseline, as the end of a request does.
func (a *Activities) compareNode(ctx context.Context, project string, d graph.Compare) (graph.Status, string, error) {
	baseline := d.Baseline
	if baseline == "" {
		r, err := a.Store.RequestByTag(ctx, project, d.Tag)
		if errors.Is(err, store.ErrNotFound) {
			r, err = bench.Request{Project: project, Type: bench.Release, Tag: d.Tag}, nil
		}
		if err != nil {
			return "", "", err
		}
		if baseline, err = a.baseline(ctx, r); err != nil {
			return "", "", err
		}
	}
	if baseline == "" {
		return graph.Success, "there is nothing to compare " + d.Tag + " with: no baseline of it has results", nil
	}
	compared, err := results.Compare(ctx, a.Store, a.Suites, results.Pair{Project: project, A: baseline, B: d.Tag})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return graph.Failure, fmt.Sprintf("%s and %s cannot be compared: %s", baseline, d.Tag, err), nil
	case err != nil:
		return "", "", err
	}
	summary := compared.Summary()
	status, message := graph.Success, fmt.Sprintf("%s compared with %s: %s", d.Tag, baseline, summary.Line)
	if d.FailOnRegression && summary.Regressions > 0 {
		status = graph.Failure
	}
	return status, message, nil
}

// notifyNode words what people are told about an artifact.
func (a *Activities) notifyNode(ctx context.Context, project string, d graph.Notify) (string, error) {
	_, message, err := a.compareNode(ctx, project, graph.Compare{Tag: d.Tag})
	if err == nil && d.Text != "" {
		message = d.Text + " (" + message + ")"
	}
	return message, err
}
