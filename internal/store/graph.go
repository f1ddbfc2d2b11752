package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/graph"
	"github.com/benchloom/benchloom/internal/graphset"
)

// Graphs of requests, read with the state of their jobs.

// GraphFilter narrows a list of graphs; zero values do not narrow.
type GraphFilter struct {
	Project string
	Request bench.RequestID
	// Ran selects graphs of which a run has begun, Customised those that differ from their
	// templates.
	Ran, Customised bool
	// Before continues a list after the graph of that row.
	Before int64
	Limit  int
}

// inGraph is the status of job j in a graph of request r, and inGraphEnd when it ended: a
// request that was ended early has cancelled what had not ended by then, including what
// others still wait for.
const (
	endedEarly = `r.status = 'completed' and r.outcome in ('cancelled', 'expired') and (j.completed_at is null or j.completed_at > r.completed_at)`
	inGraph    = `case when ` + endedEarly + ` then 'cancelled' else j.status end`
	inGraphEnd = `case when ` + endedEarly + ` then r.completed_at else j.completed_at end`
)

const graphColumns = `g.id as row, g.request_id as request, g.project, coalesce(r.tag, '') as tag, g.number, g.reason, coalesce(g.follows, 0) as follows, g.created_at,
	coalesce(r.template ->> 'name', '') as template, coalesce(r.template ? 'customised', false) as customised`

// Graphs lists graphs, the newest first, together with the sets to which they belong: the
// state of a node may follow from those of other graphs.
func (s *Store) Graphs(ctx context.Context, f GraphFilter) (graphs []graphset.Graph, sets map[bench.RequestID]graphset.Set, err error) {
	err = s.snapshot(ctx, "listing graphs", func(tx pgx.Tx) error {
		graphs, err = all[graphset.Graph](ctx, tx, `
			select `+graphColumns+` from graph g join benchmark_request r on r.id = g.request_id
			where (@project = '' or g.project = @project) and (@request = '' or g.request_id = @request) and (@before = 0 or g.id < @before)
				and (not @customised or r.template ? 'customised')
				and (not @ran or exists (
					select from graph_node n join job_queue j on j.id = n.job_id where n.graph_id = g.id and not n.input
						and (j.started_at is not null or exists (select from node_end e where e.node_id = j.id and e.started_at is not null))))
			order by g.id desc limit @limit`,
			pgx.NamedArgs{"project": f.Project, "request": string(f.Request), "ran": f.Ran, "customised": f.Customised, "before": f.Before, "limit": f.Limit})
		if err != nil {
			return err
		}
		var requests []bench.RequestID
		for _, g := range graphs {
			requests = append(requests, g.Request)
		}
		sets, err = graphSets(ctx, tx, requests)
		return err
	})
	return graphs, sets, err
}

// GraphSet reads all graphs of a request. It returns ErrNotFound if there are none. Nodes
// whose jobs were purged are left out.
func (s *Store) GraphSet(ctx context.Context, id bench.RequestID) (set graphset.Set, err error) {
	err = s.snapshot(ctx, "reading the graphs of request "+string(id), func(tx pgx.Tx) error {
		sets, err := graphSets(ctx, tx, []bench.RequestID{id})
		if err != nil {
			return err
		}
		var there bool
		if set, there = sets[id]; !there {
			return ErrNotFound
		}
		return nil
	})
	return set, err
}

// CountGraphs returns the number of graphs of a request.
func (s *Store) CountGraphs(ctx context.Context, id bench.RequestID) (int, error) {
	n, err := value[int](ctx, s.pool, `select count(*) from graph where request_id = $1`, id)
	return n, wrap("counting the graphs of request "+string(id), err)
}

// snapshot runs f in a transaction that sees one state of the database.
func (s *Store) snapshot(ctx context.Context, doing string, f func(tx pgx.Tx) error) error {
	return wrap(doing, pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, f))
}

func graphSets(ctx context.Context, tx pgx.Tx, requests []bench.RequestID) (map[bench.RequestID]graphset.Set, error) {
	sets := make(map[bench.RequestID]graphset.Set)
	graphs, err := all[graphset.Graph](ctx, tx, `
		select `+graphColumns+` from graph g join benchmark_request r on r.id = g.request_id where g.request_id = any($1) order by g.request_id, g.number`, requests)
	if err != nil {
		return nil, err
	}
	for _, g := range graphs {
		set := sets[g.Request]
		set.Graphs = append(set.Graphs, g)
		sets[g.Request] = set
	}
	type node struct {
		Request    bench.RequestID
		Graph      int64
		Place      int64 // of a job, or of what the service carries out: in the order in which they were written
		Definition string
		FormerEnds bool
		graphset.Node
	}
	nodes, err := all[node](ctx, tx, `
		select g.request_id as request, g.id as graph, n.job_id as place, '' as definition, g.number, n.input, j.key as job, n.name, n.limit_seconds, n.latest, n.skipped, coalesce(rj.stage, 'own') as stage, j.kind, j.target, coalesce(j.tag, '') as tag,
			coalesce(j.versus, '') as versus, j.backend, j.profile, case when jsonb_array_length(j.test_cases) = 1 then j.test_cases -> 0 end as only,
			jsonb_array_length(j.test_cases) as test_cases, j.chunk, j.size_class, coalesce(rj.optional, false) as optional, `+inGraph+` as status, j.rerun, j.asked_in, j.rerun > 0 as former_ends,
			case when j.status = 'queued' then j.held else '' end as held, j.message, greatest(j.created_at, g.created_at) as created_at, j.started_at,
			`+inGraphEnd+` as ended_at, coalesce(former.key, '') as replaces, coalesce(rj.superseded, true) as replaced
		from graph g join benchmark_request r on r.id = g.request_id join graph_node n on n.graph_id = g.id join job_queue j on j.id = n.job_id
		left join request_job rj on rj.request_id = g.request_id and rj.job_id = n.job_id left join job_queue former on former.id = n.replaces
		where g.request_id = any($1)
		union all
		select g.request_id, g.id, n.job_id, v.definition, g.number, n.input, v.key, n.name, n.limit_seconds, n.latest, n.skipped, 'own',
			'', '', '', '', '', '', null, 0, 0, 0, false,
			case when v.status = 'waiting' then 'queued' when v.status = 'skipped' then 'cancelled' else v.status end, v.rerun, v.asked_in, v.rerun > 0, '', v.message, greatest(v.created_at, g.created_at), v.ended_at,
			v.ended_at, coalesce(former.key, ''), v.superseded
		from graph g join graph_node n on n.graph_id = g.id join service_node v on v.id = n.job_id left join service_node former on former.id = n.replaces
		where g.request_id = any($1)
		order by graph, place`, requests)
	if err != nil {
		return nil, err
	}
	keys := make(map[int64]bench.JobKey, len(nodes))
	var again []int64 // those with former ends
	for _, n := range nodes {
		keys[n.Place] = n.Job
		if n.Definition != "" {
			if n.Service, err = graph.ParseJob([]byte(n.Definition)); err != nil {
				return nil, fmt.Errorf("reading node %s of request %s: %w", n.Name, n.Request, err)
			}
		}
		if n.FormerEnds {
			again = append(again, n.Place)
		}
		set := sets[n.Request]
		if set.Nodes == nil && len(requests) == 1 {
			set.Nodes = make([]graphset.Node, 0, len(nodes))
		}
		set.Nodes = append(set.Nodes, n.Node)
		sets[n.Request] = set
	}
	if err := formerEnds(ctx, tx, again, keys, sets); err != nil {
		return nil, err
	}
	// One row a graph: tens of thousands would take longer to send than to find.
	type edges struct {
		Request    bench.RequestID
		Number     int
		FromJobs   []int64
		ToJobs     []int64
		Conditions []graph.Condition
	}
	list, err := all[edges](ctx, tx, `
		select g.request_id as request, g.number, e.* from graph g cross join lateral (
			select array_agg(o.from_job) as from_jobs, array_agg(o.to_job) as to_jobs, array_agg(o.condition) as conditions
			from (select from_job, to_job, condition from graph_edge where graph_id = g.id order by to_job, from_job) o) e
		where g.request_id = any($1) and e.from_jobs is not null order by g.id`, requests)
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		set := sets[e.Request]
		set.Edges = slices.Grow(set.Edges, len(e.FromJobs))
		for i := range e.FromJobs {
			if from, to := keys[e.FromJobs[i]], keys[e.ToJobs[i]]; from != "" && to != "" { // else its job was purged
				set.Edges = append(set.Edges, graphset.Edge{Number: e.Number, From: from, To: to, Condition: e.Conditions[i]})
			}
		}
		sets[e.Request] = set
	}
	return sets, nil
}

// formerEnds adds what had become of nodes before they were asked for again.
func formerEnds(ctx context.Context, tx pgx.Tx, nodes []int64, keys map[int64]bench.JobKey, sets map[bench.RequestID]graphset.Set) error {
	if len(nodes) == 0 {
		return nil
	}
	type row struct {
		NodeID int64
		graphset.End
	}
	rows, err := all[row](ctx, tx, `
		select node_id, asked_in, status, message, started_at, ended_at from node_end where node_id = any($1) order by node_id, rerun`, nodes)
	if err != nil {
		return err
	}
	ends := make(map[bench.JobKey][]graphset.End, len(nodes))
	for _, r := range rows {
		ends[keys[r.NodeID]] = append(ends[keys[r.NodeID]], r.End)
	}
	for _, set := range sets {
		for i, n := range set.Nodes {
			set.Nodes[i].Former = ends[n.Job]
		}
	}
	return nil
}
