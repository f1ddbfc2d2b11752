package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/perf/benchfmt"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/e2e/livestack"
	"github.com/benchloom/benchloom/internal/up"
)

// graphsPlan sets the size of the graph of trivial commands, and how often it takes turns
// with the same commands without edges. Each node needs two of the layer before, and every
// tenth layer needs all of that.
type graphsPlan struct {
	layers, width int
	turns         int
	portion       int // jobs that are retriggered by one call
	crowd         int // collectors that are registered beside the one that takes jobs
}

func (p graphsPlan) nodes() int { return p.layers * p.width }

// flat is the number of commands without edges that take turns with the graph: as many, but
// no more than tell their rate within minutes.
func (p graphsPlan) flat() int { return min(p.nodes(), 2500) }

// Sizes for which there are limits.
const (
	checkNodes   = 5000
	checkPortion = 500
)

// barrier is the distance of layers that need the whole layer before.
const barrier = 10

// Units of graphs.
const (
	unitOfFlat = "of-flat-sec" // time of a graph's command as a multiple of one without edges
	unitEvents = "events"
)

func graphRateName(of string, nodes int) string {
	return fmt.Sprintf("Graph/of=%s/nodes=%d", of, nodes)
}
func retriggerName(jobs int) string     { return fmt.Sprintf("Retrigger/jobs=%d", jobs) }
func graphHistoryName(nodes int) string { return fmt.Sprintf("GraphHistory/nodes=%d", nodes) }

const (
	ofGraph = "graph"
	ofFlat  = "flat"
	ofBare  = "bare"
)

// needsOf lists the nodes of the layer before that a node needs.
func (p graphsPlan) needsOf(layer, i int) (needs []int) {
	switch {
	case layer == 0:
		return nil
	case layer%barrier == 0:
		for k := range p.width {
			needs = append(needs, k)
		}
		return needs
	}
	return []int{0, max(i, 1)}
}

// template writes the graph as a template for a target: its layers one after the other, as
// what each needs differs, and each by loops, as a file of all nodes would be too large.
func (p graphsPlan) template(target bench.Target) string {
	columns := make([]string, p.width)
	for i := range columns {
		columns[i] = strconv.Quote(strconv.Itoa(i))
	}
	var text strings.Builder
	text.WriteString("description: Many trivial commands.\nnodes:\n")
	nodes := func(layer int, columns []string, needs string) {
		fmt.Fprintf(&text, "  - name: n-%d-${i}\n    for: {i: [%s]}\n", layer, strings.Join(columns, ", "))
		if needs != "" {
			fmt.Fprintf(&text, "    needs: %s\n", needs)
		}
		fmt.Fprintf(&text, "    command: {target: %s, steps: [{run: [\"true\"]}]}\n", target)
	}
	for layer := range p.layers {
		switch before := layer - 1; {
		case layer == 0:
			nodes(layer, columns, "")
		case layer%barrier == 0:
			nodes(layer, columns, fmt.Sprintf("n-%d-*", before))
		default:
			nodes(layer, columns[:1], fmt.Sprintf("[n-%d-0, n-%[1]d-1]", before))
			nodes(layer, columns[1:], fmt.Sprintf("[n-%d-0, \"n-%[1]d-${i}\"]", before))
		}
	}
	return text.String()
}

// measureGraphs measures the rate of a graph's commands beside that of the same commands
// without edges, and of a bare workflow of the same shape, on one collector; and how long a
// portion of the graph takes to be retriggered.
func measureGraphs(ctx context.Context, o options, plan graphsPlan, report *report, progress func(string, ...any)) (err error) {
	s, err := livestack.Start(ctx, o.programs(), "--collectors", "1x1", "--share-cores")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop(err == nil)) }()
	record, err := pgx.Connect(ctx, s.Up.Addresses[up.AddressDatabase])
	if err != nil {
		return fmt.Errorf("connecting to the stack's Postgres: %w", err)
	}
	defer func() { err = errors.Join(err, record.Close(context.WithoutCancel(ctx))) }()
	temporal, err := s.Temporal(ctx)
	if err != nil {
		return fmt.Errorf("connecting to the stack's Temporal: %w", err)
	}
	defer temporal.Close()
	bare, err := startBareSlots(temporal, 1)
	if err != nil {
		return err
	}
	defer bare.stop()
	target, err := bench.HostTarget(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return fmt.Errorf("naming this machine's target: %w", err)
	}
	const project = "graphs"
	if _, err := s.API.ApplyProject(ctx, apiclient.Project{Name: project}, false); err != nil {
		return fmt.Errorf("applying the project: %w", err)
	}
	if _, err := s.API.PushDefinitions(ctx, project, apiclient.DefinitionsPush{Files: map[string]string{"graphs/layers.yaml": plan.template(target)}}, false); err != nil {
		return fmt.Errorf("pushing the template: %w", err)
	}
	crowd, err := startCrowd(ctx, s, plan.crowd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, crowd.stop()) }()
	m := rating{stack: s, record: record, bare: bare, slots: 1}
	if _, err := m.commands(ctx, 40); err != nil { // warm
		return err
	}
	n := plan.nodes()
	var last bench.RequestID
	for turn := range plan.turns {
		flat, err := m.commands(ctx, plan.flat())
		if err != nil {
			return err
		}
		started, err := s.API.RunGraph(ctx, project, apiclient.GraphCall{Template: "layers"}, false)
		if err != nil {
			return fmt.Errorf("running a graph of %d nodes: %w", n, err)
		}
		last = started.Request.ID
		graph, err := m.completed(ctx, last, n)
		if err != nil {
			return err
		}
		of, without := float64(n)/graph.Seconds(), float64(plan.flat())/flat.Seconds()
		progress("turn %d of %d: %.1f commands of a graph and %.1f without edges a second", turn+1, plan.turns, of, without)
		if err := report.add(figure{graphRateName(ofFlat, n), plan.flat(), []benchfmt.Value{{Value: rounded(without, 2), Unit: unitRate}}}); err != nil {
			return err
		}
		if err := report.add(figure{graphRateName(ofGraph, n), n, []benchfmt.Value{
			{Value: rounded(of, 2), Unit: unitRate}, {Value: rounded(without/of, 3), Unit: unitOfFlat},
		}}); err != nil {
			return err
		}
	}
	if err := m.historyOf(ctx, temporal, last, n, report); err != nil {
		return err
	}
	if err := m.retriggers(ctx, last, plan.portion, report); err != nil {
		return err
	}
	took, err := bare.graph(ctx, plan)
	if err != nil {
		return err
	}
	progress("a bare workflow of the same shape: %.1f activities a second", float64(n)/took.Seconds())
	return report.add(figure{graphRateName(ofBare, n), n, []benchfmt.Value{{Value: rounded(float64(n)/took.Seconds(), 2), Unit: unitRate}}})
}

// historyOf reports the length of the history of a request's workflow.
func (m *rating) historyOf(ctx context.Context, temporal client.Client, id bench.RequestID, nodes int, report *report) error {
	r, err := m.stack.API.Request(ctx, string(id))
	if err != nil {
		return fmt.Errorf("reading request %s: %w", id, err)
	}
	d, err := temporal.DescribeWorkflowExecution(ctx, r.WorkflowID, "")
	if err != nil {
		return fmt.Errorf("looking at the workflow of request %s: %w", id, err)
	}
	return report.add(figure{graphHistoryName(nodes), 1, []benchfmt.Value{{Value: float64(d.GetWorkflowExecutionInfo().GetHistoryLength()), Unit: unitEvents}}})
}

// retriggers measures how long a call takes that runs a portion of a graph again.
func (m *rating) retriggers(ctx context.Context, id bench.RequestID, portion int, report *report) error {
	set, err := m.stack.API.Graph(ctx, string(id))
	if err != nil {
		return fmt.Errorf("reading the graph of request %s: %w", id, err)
	}
	in := apiclient.Retrigger{Downstream: "none"}
	for _, n := range set.Nodes[:min(portion, len(set.Nodes))] {
		in.Jobs = append(in.Jobs, n.Job)
	}
	begun := time.Now()
	if _, err := m.stack.API.Retrigger(ctx, string(id), in, false); err != nil {
		return fmt.Errorf("retriggering %d jobs: %w", len(in.Jobs), err)
	}
	took := time.Since(begun)
	if _, err := m.stack.API.CancelRequest(ctx, string(id), apiclient.Act{Reason: "it was measured"}); err != nil {
		return fmt.Errorf("cancelling request %s: %w", id, err)
	}
	return report.add(figure{retriggerName(len(in.Jobs)), 1, []benchfmt.Value{{Value: rounded(took.Seconds(), 3), Unit: unitSeconds}}})
}

// bareGraph is the name of a workflow that runs an activity for each node of a graph.
const bareGraph = "BareGraph"

// shape is the input of that workflow.
type shape struct{ Layers, Width int }

// runShape runs an activity for each node, once those that it needs have ended.
func runShape(ctx workflow.Context, s shape) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: graphBound})
	plan := graphsPlan{layers: s.Layers, width: s.Width}
	ended := make([]workflow.Future, plan.nodes())
	for layer := range s.Layers {
		for i := range s.Width {
			future, settable := workflow.NewFuture(ctx)
			ended[layer*s.Width+i] = future
			workflow.Go(ctx, func(ctx workflow.Context) {
				for _, k := range plan.needsOf(layer, i) {
					if err := ended[(layer-1)*s.Width+k].Get(ctx, nil); err != nil {
						settable.SetError(err)
						return
					}
				}
				settable.Set(nil, workflow.ExecuteActivity(ctx, bareActivity).Get(ctx, nil))
			})
		}
	}
	for _, f := range ended {
		if err := f.Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// graphBound bounds the time of one graph.
const graphBound = time.Hour

// graph runs a bare workflow of a graph's shape.
func (b *bareWorker) graph(ctx context.Context, plan graphsPlan) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, graphBound)
	defer cancel()
	begun := time.Now()
	run, err := b.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "bare/graph", TaskQueue: bareTaskQueue}, bareGraph, shape{plan.layers, plan.width})
	if err == nil {
		err = run.Get(ctx, nil)
	}
	if err != nil {
		return 0, fmt.Errorf("running a bare workflow of %d activities: %w", plan.nodes(), err)
	}
	return time.Since(begun), nil
}
