package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
	"github.com/benchloom/benchloom/internal/graphset"
	"github.com/benchloom/benchloom/internal/plan"
)

// Graphs made from templates, and their nodes that need no machine.

// CreateGraphRequest records a request to run a graph. Its jobs are written by its workflow,
// see [Store.ExpandRequest]. If the submitter has used the idempotency key before, that
// request is returned; if it differs, the error is ErrConflict. ErrNotFound reports an
// unknown project, and a [fairshare.TooManyWaiting] that it has more nodes than the account
// may have waiting.
func (s *Store) CreateGraphRequest(ctx context.Context, r bench.Request, g *graph.Graph) (stored bench.Request, created bool, err error) {
	r.Status = bench.InProgress
	err = s.inTx(ctx, "creating request "+string(r.ID), func(tx pgx.Tx) error {
		if stored, created, err = createRequest(ctx, tx, r); err != nil || !created {
			return err
		}
		if _, err := tx.Exec(ctx, `insert into graph_set (request_id, definition) values ($1, $2)`, stored.ID, string(g.Canonical())); err != nil {
			return err
		}
		machines := 0
		for _, n := range g.Nodes() {
			if n.Job.Target() != "" {
				machines++
			}
		}
		return mayWaitLater(ctx, tx, r.Submitter, 1, max(0, machines-1)) // until its jobs are written, the request counts as one
	})
	return stored, created && err == nil, err
}

// GraphDefinition returns the graph that a request runs. It returns ErrNotFound for a request
// whose graphs are made of stages.
func (s *Store) GraphDefinition(ctx context.Context, id bench.RequestID) (*graph.Graph, error) {
	text, err := value[string](ctx, s.pool, `select definition from graph_set where request_id = $1 and definition is not null`, id)
	if err != nil {
		return nil, wrap("reading the graph of request "+string(id), err)
	}
	g, err := graph.Parse([]byte(text))
	return g, wrap("reading the graph of request "+string(id), err)
}

// TemplateGraph holds the nodes and edges of a graph that is made from a template.
type TemplateGraph struct {
	Nodes []TemplateNode
	Edges []graph.Edge
}

// TemplateNode is a node with the jobs that were planned for it. A node without jobs is
// carried out by the service, or was done before.
type TemplateNode struct {
	Node graph.Node
	// Jobs are the keys of its jobs as planned.
	Jobs []bench.JobKey
	// Key identifies a node without jobs.
	Key bench.JobKey
	// Done says why nothing is left to do; empty: something is.
	Done string
}

// templateWritten reports whether the graph of a locked request was written before. Until
// then no other request can add one to its set.
func templateWritten(ctx context.Context, tx pgx.Tx, request bench.RequestID) (bool, error) {
	return value[bool](ctx, tx, `select exists (select from graph where request_id = $1)`, request)
}

// writeCommands writes the commands of a graph, many per statement, and returns the other jobs.
// Their keys are new, as they contain the request's ID.
func writeCommands(ctx context.Context, tx pgx.Tx, r bench.Request, jobs []bench.PlannedJob) ([]bench.PlannedJob, error) {
	w := commandWriter{tx: tx, request: r, cases: make(map[bench.TestCase]bool)}
	var others []bench.PlannedJob
	for _, j := range jobs {
		if j.Kind != bench.KindCommand {
			others = append(others, j)
			continue
		}
		if err := w.add(ctx, j); err != nil {
			return nil, err
		}
	}
	if err := w.flush(ctx); err != nil {
		return nil, err
	}
	if err := w.sets.record(ctx, tx); err != nil {
		return nil, err
	}
	return others, countWaiting(ctx, tx, w.written)
}

// writeTemplate writes the first graph of a set. jobID returns the ID of a planned job.
func writeTemplate(ctx context.Context, tx pgx.Tx, request bench.RequestID, t TemplateGraph, jobID func(bench.JobKey) int64) error {
	ids, err := templateNodes(ctx, tx, request, t, jobID)
	if err != nil {
		return err
	}
	added := plan.JobGraph{}
	for _, n := range t.Nodes {
		added.Jobs = append(added.Jobs, ids[n.Node.Name]...)
	}
	for _, e := range t.Edges {
		for _, from := range ids[e.From] {
			for _, to := range ids[e.To] {
				added.Edges = append(added.Edges, plan.GraphEdge{From: from, To: to, Condition: e.Condition})
			}
		}
	}
	switch {
	case len(added.Jobs) > graph.MaxNodes:
		return &graph.SizeError{What: "nodes", Got: len(added.Jobs), Most: graph.MaxNodes}
	case len(added.Edges) > graph.MaxEdges:
		return &graph.SizeError{What: "edges", Got: len(added.Edges), Most: graph.MaxEdges}
	}
	id, err := newGraph(ctx, tx, request, bench.GraphTemplate)
	if err != nil {
		return err
	}
	if err := insertGraph(ctx, tx, id, added, nil); err != nil {
		return err
	}
	var jobs []int64
	var names []string
	var limits []int
	var latest []bool
	for _, n := range t.Nodes {
		for _, job := range ids[n.Node.Name] {
			jobs, names, limits, latest = append(jobs, job), append(names, n.Node.Name), append(limits, n.Node.LimitSeconds), append(latest, n.Node.Latest)
		}
	}
	_, err = tx.Exec(ctx, `
		update graph_node n set name = t.name, limit_seconds = t.seconds, latest = t.latest
		from unnest($2::bigint[], $3::text[], $4::integer[], $5::boolean[]) as t (job, name, seconds, latest)
		where n.graph_id = $1 and n.job_id = t.job`, id, jobs, names, limits, latest)
	return err
}

// templateNodes writes the nodes without jobs, and returns the IDs of the jobs, or of what
// stands for them, by the names of nodes.
func templateNodes(ctx context.Context, tx pgx.Tx, request bench.RequestID, t TemplateGraph, jobID func(bench.JobKey) int64) (map[string][]int64, error) {
	ids, of := make(map[string][]int64, len(t.Nodes)), make(map[int64]string)
	var keys, names, definitions, done []string
	for _, n := range t.Nodes {
		for _, key := range n.Jobs {
			id := jobID(key)
			if other, twice := of[id]; twice && other != n.Node.Name {
				return nil, fmt.Errorf("%w: the nodes %s and %s are one job, %s; make one node of them", ErrConflict, other, n.Node.Name, key)
			}
			of[id] = n.Node.Name
			ids[n.Node.Name] = append(ids[n.Node.Name], id)
		}
		if len(n.Jobs) == 0 {
			keys, names = append(keys, string(n.Key)), append(names, n.Node.Name)
			definitions, done = append(definitions, string(n.Node.Job.Canonical())), append(done, n.Done)
		}
	}
	type row struct {
		ID   int64
		Name string
	}
	rows, err := all[row](ctx, tx, `
		insert into service_node (id, request_id, key, name, definition, status, message, ended_at)
		select nextval(pg_get_serial_sequence('job_queue', 'id')), $1, t.key, t.name, t.definition,
			case when t.done = '' then 'waiting' else 'success' end, t.done, case when t.done <> '' then now() end
		from unnest($2::text[], $3::text[], $4::text[], $5::text[]) as t (key, name, definition, done)
		returning id, name`, request, keys, names, definitions, done)
	for _, r := range rows {
		ids[r.Name] = []int64{r.ID}
	}
	return ids, err
}

// writeRepeated adds a graph of replacement nodes to a set made from a template. A
// replacement needs what the former node needed, or the present replacement of that.
// Waiting nodes need it instead of the former node, unless that had ended as demanded: an
// input that succeeded once has succeeded.
func writeRepeated(ctx context.Context, tx pgx.Tx, request bench.RequestID, w writtenGraph) error {
	if _, err := tx.Exec(ctx, `select from graph_set where request_id = $1 for update`, request); err != nil {
		return err
	}
	type replacement struct{ Job, Replaces int64 }
	before, err := all[replacement](ctx, tx, `
		select n.job_id as job, n.replaces from graph_node n join graph g on g.id = n.graph_id
		where g.request_id = $1 and n.replaces is not null order by g.number`, request)
	if err != nil {
		return err
	}
	next := make(map[int64]int64, len(before)+len(w.jobs))
	for _, r := range before {
		next[r.Replaces] = r.Job
	}
	former := make([]int64, len(w.jobs))
	for i, job := range w.jobs {
		former[i] = w.replaced[job]
		next[w.replaced[job]] = job
	}
	edges, err := all[plan.GraphEdge](ctx, tx, `
		select e.from_job as "from", e.to_job as "to", e.condition from graph_edge e join graph g on g.id = e.graph_id
		where g.request_id = $1 and (e.to_job = any($2) or e.from_job = any($2)
			and (exists (select from job_queue j join request_job w on w.job_id = j.id and w.request_id = $1 where j.id = e.to_job and j.status = 'queued' and not w.superseded)
				or exists (select from service_node n where n.id = e.to_job and n.status = 'waiting' and not n.superseded))
			and (not (`+endedAsDemanded+` or `+succeededBefore+`) or (select n.latest from graph_node n where n.graph_id = g.id and n.job_id = e.to_job)))
		order by g.number, e.to_job, e.from_job`, request, former)
	if err != nil {
		return err
	}
	added := plan.Repeated(edges, w.jobs, next)
	id, err := newGraph(ctx, tx, request, w.reason)
	if err != nil {
		return err
	}
	if err := insertGraph(ctx, tx, id, added, w.replaced); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		update graph_node n set name = f.name, limit_seconds = f.limit_seconds, latest = f.latest
		from graph_node f join graph g on g.id = f.graph_id
		where n.graph_id = $1 and g.request_id = $2 and f.job_id = coalesce(n.replaces, n.job_id) and not f.input`, id, request)
	return err
}

// replaceServices writes replacements for nodes that no machine runs and that are carried
// out again.
func (o reopening) replaceServices(ctx context.Context) (int, error) {
	type row struct {
		ID         int64
		Name       string
		Definition string
		Former     int
	}
	chosen, err := all[row](ctx, o.tx, `
		select n.id, n.name, n.definition, (select count(*) from service_node f where f.request_id = n.request_id and f.name = n.name) as former
		from service_node n where n.request_id = $1 and n.key = any($2) and not n.superseded and n.status <> 'waiting' order by n.id for update`, o.request.ID, o.only())
	if err != nil || o.again == nil {
		return 0, err
	}
	for _, c := range chosen {
		job, err := graph.ParseJob([]byte(c.Definition))
		if err != nil {
			return 0, fmt.Errorf("reading node %s: %w", c.Name, err)
		}
		written, err := value[int64](ctx, o.tx, `
			with old as (update service_node set superseded = true where id = $1)
			insert into service_node (id, request_id, key, name, definition, status)
			values (nextval(pg_get_serial_sequence('job_queue', 'id')), $2, $3, $4, $5, 'waiting') returning id`,
			c.ID, o.request.ID, plan.ServiceKey(o.request.ID, graph.Node{Name: c.Name, Job: job}, c.Former), c.Name, c.Definition)
		if err != nil {
			return 0, err
		}
		o.replaced[written] = c.ID
	}
	return len(chosen), nil
}

// AsksOfService reports, without reading a whole graph, whether it may ask anything of the
// service by now: a node that needs no machine waits, or a node has ended other than in success,
// which may skip others.
func (s *Store) AsksOfService(ctx context.Context, id bench.RequestID) (bool, error) {
	asks, err := value[bool](ctx, s.pool, `
		select exists (select from service_node where request_id = $1 and status <> 'success' and not superseded)
			or exists (select from request_job w join job_queue j on j.id = w.job_id where w.request_id = $1 and not w.superseded and j.status in ('failure', 'cancelled'))`, id)
	return asks, wrap("looking at the graph of request "+string(id), err)
}

// NodeEnd is the end of a node that no collector has run.
type NodeEnd struct {
	Key    bench.JobKey
	Status graph.Status
	// Reason says why it was skipped; the zero Reason: it was not.
	Reason  graph.Reason
	Message string
	// By is the account that answered a sign-off; empty: the service ended it.
	By string
}

// SkippedNode returns the end of a node that the rule of states skips.
func SkippedNode(s graphset.Skip) NodeEnd {
	return NodeEnd{Key: s.Node.Job, Status: graph.Skipped, Reason: s.Reason, Message: "skipped: " + s.Words}
}

// EndNodes records the ends of nodes of a request's graphs: those without a machine, and
// skipped jobs. Nodes that have ended, jobs that have begun, and builds that other
// requests wait for stay as they are. It returns the number of nodes that it ended, releases
// the jobs that wait for them, and lists the task queues in which these wait.
func (s *Store) EndNodes(ctx context.Context, id bench.RequestID, ends []NodeEnd) (ended int, taskQueues []string, err error) {
	err = s.inTx(ctx, "ending nodes of request "+string(id), func(tx pgx.Tx) error {
		if _, err := lockRequest(ctx, tx, id); err != nil {
			return err
		}
		ended, taskQueues, err = endNodes(ctx, tx, id, ends)
		return err
	})
	return ended, taskQueues, err
}

func endNodes(ctx context.Context, tx pgx.Tx, id bench.RequestID, ends []NodeEnd) (ended int, taskQueues []string, err error) {
	var keys, statuses, messages, by []string
	var reasons []*string
	for _, e := range ends {
		var reason *string
		if e.Status == graph.Skipped {
			text, err := json.Marshal(e.Reason)
			if err != nil {
				return 0, nil, fmt.Errorf("encoding a reason: %w", err)
			}
			encoded := string(text)
			reason = &encoded
		}
		keys, statuses, messages = append(keys, string(e.Key)), append(statuses, string(e.Status)), append(messages, cleanText(e.Message))
		by, reasons = append(by, e.By), append(reasons, reason)
	}
	// Jobs are locked in the order of their IDs, as everywhere.
	jobs, err := column[int64](ctx, tx, `
		select j.id from job_queue j join request_job w on w.job_id = j.id and w.request_id = $1
		where j.key = any($2) and j.status = 'queued' order by j.id for update of j`, id, keys)
	if err != nil {
		return 0, nil, err
	}
	nodes, err := column[int64](ctx, tx, `
		with ends as (
			select * from unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::jsonb[]) as t (key, status, message, by, reason)
		), jobs as ( -- but for a build that others wait for
			update job_queue j set status = 'cancelled', completed_at = now(), message = e.message from ends e
			where j.key = e.key and j.id = any($2) and not exists (`+openWaiter+` and w.request_id <> $1)
			returning j.id, j.key
		), services as (
			update service_node n set status = e.status, message = e.message, ended_at = now(), ended_by = e.by from ends e
			where n.key = e.key and n.request_id = $1 and n.status = 'waiting'
			returning n.id, n.key
		), skipped as (
			update graph_node g set skipped = e.reason from ends e
			where e.reason is not null and g.graph_id in (select graph.id from graph where graph.request_id = $1)
				and g.job_id in (select id from jobs where jobs.key = e.key union all select id from services where services.key = e.key)
		)
		select id from jobs union all select id from services`, id, jobs, keys, statuses, messages, by, reasons)
	if err != nil || len(nodes) == 0 {
		return 0, nil, err
	}
	taskQueues, err = releaseAfter(ctx, tx, nodes)
	return len(nodes), taskQueues, err
}

// ErrAnswered reports that a sign-off has another answer, or has ended.
var ErrAnswered = errors.New("the sign-off has ended")

// SignOff records a person's answer to a sign-off. The caller has made sure that the sign-off waits
// for an answer and that the person may give it. The same answer again changes nothing; after any
// other end the error is ErrAnswered. ErrNotFound reports that the request has no such node.
func (s *Store) SignOff(ctx context.Context, id bench.RequestID, key bench.JobKey, agree bool, act Act) (done Operation, taskQueues []string, err error) {
	what, err := s.onRequest(ctx, "graph sign-off", id)
	if err != nil {
		return Operation{}, nil, err
	}
	what.Subject, what.Detail = string(key), detail(map[string]any{"request": id, "agree": agree})
	end := NodeEnd{Key: key, Status: graph.Success, Message: "agreed by " + act.Who, By: act.Who}
	if !agree {
		end.Status, end.Message = graph.Failure, "refused by "+act.Who
	}
	if act.Reason != "" {
		end.Message += ": " + act.Reason
	}
	done, err = s.audited(ctx, what, act, func(tx pgx.Tx, _ int64) (OperationResult, error) {
		about := OperationResult{Requests: []bench.RequestID{id}, Message: end.Message}
		if _, err := lockRequest(ctx, tx, id); err != nil {
			return about, err
		}
		type row struct{ Status, Message, EndedBy string }
		now, err := one[row](ctx, tx, `select status, message, ended_by from service_node where request_id = $1 and key = $2 and not superseded for update`, id, key)
		switch {
		case err != nil:
			return about, err
		case now.Status == string(end.Status) && now.EndedBy != "":
			about.Message = "it was " + now.Message + " before"
			return about, nil
		case now.Status != "waiting":
			return about, fmt.Errorf("%w: %s", ErrAnswered, now.Message)
		}
		about.Changed = true
		_, taskQueues, err = endNodes(ctx, tx, id, []NodeEnd{end})
		return about, err
	})
	return done, taskQueues, err
}
