package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/bench"
)

// liveWithin bounds the age of a live collector's last heartbeat at hand-out: ten
// heartbeats of 3 s.
const liveWithin = 30 * time.Second

// firstWaiter selects the request that has waited longest for job j.
const firstWaiter = `
	select w.request_id from request_job w join benchmark_request wr on wr.id = w.request_id
	where w.job_id = j.id and ` + inItsTurn + `
	order by wr.created_at, wr.id limit 1`

// inItsTurn narrows [stillWaits] to requests whose jobs may run: a reopened request has
// jobs before its admission.
const inItsTurn = `wr.status in ('in_progress', 'completed') and ` + stillWaits

// activeWaiter selects the requests that wait for job j and whose jobs may run.
const activeWaiter = `
	select from request_job w join benchmark_request wr on wr.id = w.request_id
	where w.job_id = j.id and ` + inItsTurn

// readyWaiter narrows [activeWaiter] to requests in which every job that job j needs has
// ended and, if their graph is made from a template, has ended as its edge demands; one that
// runs again may have done so before. Optional ones of the request do not keep others
// waiting. The status is a subquery of its own, so that no plan reads the whole table of
// jobs first, and the offset keeps it a lookup for each job: as a join, a plan made while
// few jobs waited compares each job with all jobs of its request.
var readyWaiter = activeWaiter + ` and not exists (
	select from graph_edge e join graph g on g.id = e.graph_id join request_job fw on fw.request_id = g.request_id and fw.job_id = e.from_job
	where e.to_job = j.id and g.request_id = w.request_id and not fw.optional and not fw.superseded
		and (select f.status from job_queue f where f.id = e.from_job) in ('queued', 'handed_out', 'in_progress') and not (` + succeededBefore + `))
	and not exists (
	select from graph_edge e join graph g on g.id = e.graph_id join graph_set gs on gs.request_id = g.request_id
	where e.to_job = j.id and g.request_id = w.request_id and gs.definition is not null and not (` + inputMet + `)) offset 0`

// inputMet matches an edge e of a graph g whose input has ended as it demands, or has been
// replaced: another edge leads from its replacement. It is [graph.Condition.Given] in the
// database.
var inputMet = `
	coalesce(
		(select fw.superseded from request_job fw where fw.request_id = g.request_id and fw.job_id = e.from_job),
		(select n.superseded from service_node n where n.id = e.from_job), true)
	or ` + endedAsDemanded + ` or ` + succeededBefore

// endedAsDemanded matches an edge e whose input has ended as it demands.
const endedAsDemanded = `
	coalesce((select f.status from job_queue f where f.id = e.from_job), (select n.status from service_node n where n.id = e.from_job))
		= any (case e.condition when 'success' then array['success'] when 'resolved' then array['success', 'failure']
			else array['success', 'failure', 'cancelled', 'skipped'] end)`

// handOutColumns selects the columns of a [handOutRow] from job j; request is the
// expression for the request that receives the job.
func handOutColumns(request string) string {
	return request + ` as request, j.project, j.key as job, coalesce(j.tag, '') as tag, j.target, j.task_queue,
	j.queue, j.rerun, j.turn, j.weight, j.priority, j.size_class, j.dispatch::text as dispatch, '' as summary, coalesce(j.versus, '') as versus, j.kind, j.backend, j.profile, j.command, j.name,
	coalesce(j.test_cases->0->>'benchmark', '') as benchmark, jsonb_array_length(j.test_cases) as test_cases, j.chunk, j.profiler`
}

type handOutRow struct {
	bench.HandOut
	Versus    string
	Backend   string
	Profile   string
	Command   *bench.Command
	Name      string
	Benchmark string
	TestCases int
	Chunk     int
	Profiler  string
}

// liveCollectors counts the live collectors, heard of within $2 seconds, that take jobs from task
// queue $1.
var liveCollectors = `
	select count(*) from collector_config c where c.active and c.` + heardOf("$2") + ` and ` + serves("$1::text")

// HandedOutTo lists the jobs that were handed out to a request and have not begun, in
// case its workflow missed the message to start them.
func (s *Store) HandedOutTo(ctx context.Context, request bench.RequestID) ([]bench.HandOut, error) {
	rows, err := all[handOutRow](ctx, s.pool, `
		select `+handOutColumns("j.handed_out_to")+` from job_queue j where j.handed_out_to = $1 and j.status = 'handed_out'
		order by j.request_created, j.id`, request)
	return summaries(rows), wrap("listing the jobs handed out to request "+string(request), err)
}

// SharedJobs lists the jobs of a request that were handed out to another request, which
// has started them: the first limit of them, with their total number.
func (s *Store) SharedJobs(ctx context.Context, request bench.RequestID, limit int) (jobs []bench.JobRef, total int, err error) {
	type row struct {
		bench.JobRef
		Total int
	}
	rows, err := all[row](ctx, s.pool, `
		select `+jobRefColumns+`, count(*) over () as total from request_job rj join job_queue j on j.id = rj.job_id
		where rj.request_id = $1 and j.handed_out_to <> $1 order by rj.job_id limit $2`, request, limit)
	for _, r := range rows {
		jobs, total = append(jobs, r.JobRef), r.Total
	}
	return jobs, total, wrap("listing the shared jobs of request "+string(request), err)
}

func summaries(rows []handOutRow) []bench.HandOut {
	out := make([]bench.HandOut, len(rows))
	for i, r := range rows {
		out[i] = r.described()
	}
	return out
}

func (r handOutRow) described() bench.HandOut {
	h := r.HandOut
	h.Summary = r.summary()
	h.Ref = bench.JobRef{
		Project: h.Project, Key: h.Job, Rerun: h.Rerun, Kind: h.Kind, Tag: h.Tag, Versus: r.Versus, Backend: r.Backend, Profile: r.Profile,
		Name: r.Name, Benchmark: r.Benchmark, TestCases: r.TestCases, Chunk: r.Chunk, Profiler: r.Profiler,
	}
	if r.Command != nil && len(r.Command.Argv) > 0 {
		h.Ref.Program = r.Command.Argv[0]
	}
	return h
}

// jobRefColumns selects the columns of a [bench.JobRef] from job j.
const jobRefColumns = `j.project, j.key, j.rerun, j.kind, coalesce(j.tag, '') as tag, coalesce(j.versus, '') as versus, j.backend, j.profile, j.name,
	coalesce(j.command->'argv'->>0, '') as program, coalesce(j.test_cases->0->>'benchmark', '') as benchmark, jsonb_array_length(j.test_cases) as test_cases, j.chunk, j.profiler`

// requestRefColumns selects the columns of a [bench.RequestRef] from the request with
// this alias.
func requestRefColumns(r string) string {
	return strings.ReplaceAll(`r.project, r.id, r.type, coalesce(r.tag, '') as tag, coalesce(r.pr, 0) as pr, r.command is not null as command, r.batch`, "r.", r+".")
}

// maxSummary bounds a summary in bytes: Temporal keeps at most 400.
const maxSummary = 200

// summary describes the job in a few words.
func (r handOutRow) summary() string {
	if r.Command != nil {
		text := strings.ToValidUTF8(strings.Join(r.Command.Argv, " "), "")
		if r.Name != "" {
			text = r.Name + ": " + text
		}
		if len(text) > maxSummary {
			text = strings.ToValidUTF8(text[:maxSummary-len("…")], "") + "…"
		}
		return text
	}
	if r.Kind == bench.KindBuild {
		return fmt.Sprintf("%s: build for %s", r.Tag, r.Target)
	}
	parts := []string{r.Tag, string(r.Kind)}
	if r.Versus != "" {
		parts[0] += " in turns with " + r.Versus
	}
	for _, p := range []string{r.Profile, r.Backend, r.Profiler} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	cases := "test cases"
	if r.TestCases == 1 {
		cases = "test case"
	}
	if r.Chunk > 0 {
		return fmt.Sprintf("%s: chunk %d on %s", strings.Join(parts, " "), r.Chunk, r.Target)
	}
	return fmt.Sprintf("%s: %d %s on %s", strings.Join(parts, " "), r.TestCases, cases, r.Target)
}
