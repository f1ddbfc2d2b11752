package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/bench"
)

// RequestFilter narrows a list of requests; zero values do not narrow.
type RequestFilter struct {
	Project string
	Type    bench.RequestType
	Status  bench.RequestStatus
	Tag     string
	// Before continues a list: only requests created before this one (time, ID) are
	// listed.
	BeforeTime *time.Time
	BeforeID   bench.RequestID
	Limit      int // 1 to 500
}

const requestColumns = `r.id, r.project, r.type, coalesce(r.tag, '') as tag, coalesce(r.parent, '') as parent,
	coalesce(r.waits_for, '') as waits_for, r.parent_note, coalesce(r.pr, 0) as pr, r.commit_date, r.status, coalesce(r.outcome, '') as outcome, r.completed_at, r.submitter,
	r.selection, r.selection -> 'profiling' as profiling, coalesce(r.selection ->> 'profiler', '') as profiler, coalesce(r.versus, '') as versus, r.size_class, r.queue, r.branch, r.constraints, r.deferred, r.command, r.template, r.batch, r.digest, coalesce(r.idempotency_key, '') as idempotency_key, r.created_at,
	r.workflow_started_at, r.reopened_at, r.admitted_at, r.expanded_at, r.jobs_done_at, coalesce(r.baseline, '') as baseline,
	r.summary, r.message`

// selected is the content of the column selection: the part of the suite to measure, and what is recorded meanwhile.
type selected struct {
	bench.Selection
	Profiling *bench.Profiling `json:"profiling,omitempty"`
	Profiler  string           `json:"profiler,omitempty"`
}

// maxListed bounds each list of requests.
const maxListed = 500

// CreateRequest records a request and the artifact named by its tag. If the submitter has
// used the idempotency key before, or a tracked request of the project has the tag, that
// request is returned and nothing is created; if it differs, the error is ErrConflict.
// ErrNotFound reports an unknown project. The database sets the time of creation.
func (s *Store) CreateRequest(ctx context.Context, r bench.Request) (stored bench.Request, created bool, err error) {
	err = s.inTx(ctx, "creating request "+string(r.ID), func(tx pgx.Tx) error {
		stored, created, err = createRequest(ctx, tx, r)
		return err
	})
	return stored, created && err == nil, err
}

func createRequest(ctx context.Context, tx pgx.Tx, r bench.Request) (bench.Request, bool, error) {
	if r.Status == "" {
		r.Status = bench.ArtifactsReady
	}
	if err := r.Validate(); err != nil {
		return bench.Request{}, false, err
	}
	stored, err := one[bench.Request](ctx, tx, `
		insert into benchmark_request as r (id, project, type, tag, parent, waits_for, parent_note, pr, commit_date, status,
			submitter, selection, versus, size_class, queue, branch, constraints, deferred, command, template, batch, digest, idempotency_key, message, created_at, expanded_at)
		values (@id, @project, @type, nullif(@tag, ''), nullif(@parent, ''), nullif(@waits_for, ''), @parent_note, nullif(@pr, 0), @commit_date,
			@status, @submitter, @selection, nullif(@versus, ''), @size_class, @queue, @branch, @constraints, @deferred, @command, @template, @batch, @digest, nullif(@idempotency_key, ''), @message, clock_timestamp(),
			case when @deferred then clock_timestamp() end)
		on conflict do nothing
		returning `+requestColumns,
		pgx.NamedArgs{
			"id": r.ID, "project": r.Project, "type": r.Type, "tag": r.Tag, "parent": r.Parent,
			"waits_for": r.WaitsFor, "parent_note": cleanText(r.ParentNote), "pr": r.PR,
			"commit_date": r.CommitDate, "status": r.Status, "submitter": r.Submitter, "selection": selected{r.Selection, r.Profiling, r.Profiler},
			"versus": r.Versus, "size_class": r.SizeClass, "queue": r.Queue, "branch": r.Branch, "constraints": r.Constraints,
			"deferred": r.Deferred, "command": r.Command, "template": r.Template, "batch": r.Batch, "digest": r.Digest, "idempotency_key": r.IdempotencyKey, "message": cleanText(r.Message),
		})
	if err == nil {
		if r.Tag == "" || r.Command != nil {
			return stored, true, nil
		}
		if r.Type.Tracked() { // other requests are locked before artifacts
			if err := announce(ctx, tx, r.Project, r.Tag); err != nil {
				return bench.Request{}, false, err
			}
		}
		if _, err := artifactID(ctx, tx, r.Project, r.Tag); err != nil {
			return bench.Request{}, false, err
		}
		return stored, true, nil
	}
	if !errors.Is(err, ErrNotFound) {
		return bench.Request{}, false, unknownReference(err)
	}
	// A concurrent request was first: it is committed and visible by now.
	stored, err = requestLike(ctx, tx, r)
	if errors.Is(err, ErrNotFound) {
		return bench.Request{}, false, fmt.Errorf("%w: another request has the ID %s", ErrConflict, r.ID)
	}
	return stored, false, err
}

// RequestLike reads the request that [Store.CreateRequest] would return instead of
// creating this one; ErrNotFound if it would create it.
func (s *Store) RequestLike(ctx context.Context, r bench.Request) (bench.Request, error) {
	stored, err := requestLike(ctx, s.pool, r)
	return stored, wrap("looking for the request", err)
}

func requestLike(ctx context.Context, q querier, r bench.Request) (bench.Request, error) {
	stored, err := one[bench.Request](ctx, q, `
		select `+requestColumns+` from benchmark_request r
		where (submitter = @submitter and idempotency_key = @key and @key <> '')
			or (project = @project and tag = @tag and type <> 'adhoc' and @type <> 'adhoc')
		order by (submitter = @submitter and idempotency_key = @key) desc nulls last
		limit 1`,
		pgx.NamedArgs{"submitter": r.Submitter, "key": r.IdempotencyKey, "project": r.Project, "tag": r.Tag, "type": string(r.Type)})
	if err != nil {
		return bench.Request{}, err
	}
	if different := difference(stored, r); different != "" {
		return stored, fmt.Errorf("%w: request %s, which is there already, has another %s", ErrConflict, stored.ID, different)
	}
	return stored, nil
}

// difference names the first field in which a stored request differs from the one asked
// for; empty if they are the same.
func difference(stored, asked bench.Request) string {
	switch {
	case stored.Project != asked.Project:
		return "project"
	case stored.Type != asked.Type:
		return "type"
	case stored.Tag != asked.Tag:
		return "tag"
	case stored.Profiler != asked.Profiler:
		return "profiler"
	case stored.Versus != asked.Versus:
		return "artifact to be measured in turns with"
	case stored.SizeClass != asked.SizeClass:
		return "size class"
	case stored.Queue != asked.Queue:
		return "queue"
	case stored.Branch != asked.Branch:
		return "branch"
	case !sameJSON(stored.Constraints, asked.Constraints):
		return "set of constraints"
	case !sameJSON(stored.Selection, asked.Selection):
		return "selection"
	case !sameJSON(stored.Profiling, asked.Profiling):
		return "profiling"
	case !sameJSON(stored.Command, asked.Command):
		return "command"
	case stored.Digest != asked.Digest:
		return "set of jobs"
	case !sameJSON(stored.Template, asked.Template):
		return "graph"
	}
	return ""
}

// sameJSON compares values in their stored form, in which an empty list equals none.
func sameJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// artifactID finds or creates an artifact.
func artifactID(ctx context.Context, tx pgx.Tx, project, tag string) (int64, error) {
	if _, err := tx.Exec(ctx, `insert into artifact (project, tag) values ($1, $2) on conflict (project, tag) do nothing`, project, tag); err != nil {
		return 0, wrap("recording artifact "+tag, unknownReference(err))
	}
	id, err := value[int64](ctx, tx, `select id from artifact where project = $1 and tag = $2`, project, tag)
	return id, wrap("reading artifact "+tag, err)
}

// Request reads a request.
func (s *Store) Request(ctx context.Context, id bench.RequestID) (bench.Request, error) {
	r, err := one[bench.Request](ctx, s.pool, `select `+requestColumns+` from benchmark_request r where r.id = $1`, id)
	return r, wrap("reading request "+string(id), err)
}

// RequestByTag reads the tracked request of an artifact. It ignores ad-hoc requests, of
// which an artifact may have several.
func (s *Store) RequestByTag(ctx context.Context, project, tag string) (bench.Request, error) {
	r, err := one[bench.Request](ctx, s.pool, `select `+requestColumns+` from benchmark_request r
		where r.project = $1 and r.tag = $2 and r.type <> 'adhoc'`, project, tag)
	return r, wrap("reading the request for "+tag, err)
}

// Requests lists requests, the newest first.
func (s *Store) Requests(ctx context.Context, filter RequestFilter) ([]bench.Request, error) {
	rs, err := all[bench.Request](ctx, s.pool, `
		select `+requestColumns+` from benchmark_request r
		where (@project = '' or r.project = @project)
			and (@type = '' or r.type = @type)
			and (@status = '' or r.status = @status)
			and (@tag = '' or r.tag = @tag)
			and (@before_time::timestamptz is null or (r.created_at, r.id) < (@before_time, @before_id))
		order by r.created_at desc, r.id desc
		limit @limit`,
		pgx.NamedArgs{
			"project": filter.Project, "type": string(filter.Type), "status": string(filter.Status), "tag": filter.Tag,
			"before_time": filter.BeforeTime, "before_id": string(filter.BeforeID), "limit": min(max(1, filter.Limit), maxListed),
		})
	return rs, wrap("listing requests", err)
}

// JobProgress counts a request's jobs and their test cases in all stages; all counts are
// zero before the jobs are written. The nodes of its graph that need no machine count as jobs.
func (s *Store) JobProgress(ctx context.Context, id bench.RequestID) (bench.JobProgress, error) {
	p, alone, err := s.countJobs(ctx, id, "", nil)
	if err != nil || alone {
		return p, err
	}
	p.TestCases, p.TestCasesDone, err = s.countCases(ctx, id, "", nil)
	return p, err
}

// StageProgress counts the jobs of a request's stage: the required ones, or the optional
// ones. It leaves out their test cases, which take ten times as long to count, as workflows
// ask whenever jobs end.
func (s *Store) StageProgress(ctx context.Context, id bench.RequestID, stage bench.Stage, optional bool) (bench.JobProgress, error) {
	p, _, err := s.countJobs(ctx, id, stage, &optional)
	p.TestCases, p.TestCasesDone = 0, 0
	return p, err
}

// StageTestCases counts the test cases of the required jobs of a request's stage.
func (s *Store) StageTestCases(ctx context.Context, id bench.RequestID, stage bench.Stage) (total, done int, err error) {
	required := false
	p, alone, err := s.countJobs(ctx, id, stage, &required)
	if err != nil || alone {
		return p.TestCases, p.TestCasesDone, err
	}
	return s.countCases(ctx, id, stage, &required)
}

// countJobs counts the jobs of a request, or of a stage of it. If alone is true, it has
// counted their test cases as well.
func (s *Store) countJobs(ctx context.Context, id bench.RequestID, stage bench.Stage, optional *bool) (p bench.JobProgress, alone bool, err error) {
	if alone, err = s.alone(ctx, id); err != nil {
		return bench.JobProgress{}, false, err
	}
	if alone {
		// All are the request's own commands: each has one test case, which is done when the command is.
		if (stage != "" && stage != bench.StageOwn) || (optional != nil && *optional) {
			return bench.JobProgress{}, true, nil
		}
		p, err := one[bench.JobProgress](ctx, s.pool, `
			select coalesce(sum(jobs), 0)::int as total,
				coalesce(sum(jobs) filter (where status = 'queued'), 0)::int as queued,
				coalesce(sum(jobs) filter (where status = 'handed_out'), 0)::int as handed_out,
				coalesce(sum(jobs) filter (where status = 'in_progress'), 0)::int as in_progress,
				coalesce(sum(jobs) filter (where status = 'success'), 0)::int as success,
				coalesce(sum(jobs) filter (where status = 'failure'), 0)::int as failure,
				coalesce(sum(jobs) filter (where status = 'cancelled'), 0)::int as cancelled,
				0 as test_cases, 0 as test_cases_done
			from `+jobsAlone+` c`, id)
		p.TestCases, p.TestCasesDone = p.Total, p.Success
		return p, true, wrap("counting the jobs of request "+string(id), err)
	}
	p, err = one[bench.JobProgress](ctx, s.pool, `
		select count(*) as total,
			count(*) filter (where status = 'queued') as queued,
			count(*) filter (where status = 'handed_out') as handed_out,
			count(*) filter (where status = 'in_progress') as in_progress,
			count(*) filter (where status = 'success') as success,
			count(*) filter (where status = 'failure') as failure,
			count(*) filter (where status = 'cancelled') as cancelled,
			0 as test_cases, 0 as test_cases_done
		from (
			select j.status from request_job rj join job_queue j on j.id = rj.job_id
			where rj.request_id = $1 and ($2 = '' or rj.stage = $2) and ($3::boolean is null or rj.optional = $3) and not rj.superseded
			union all
			select case n.status when 'waiting' then 'queued' when 'skipped' then 'cancelled' else n.status end
			from service_node n where n.request_id = $1 and $2 in ('', 'own') and $3::boolean is distinct from true and not n.superseded
		) as counted`,
		id, string(stage), optional)
	return p, false, wrap("counting the jobs of request "+string(id), err)
}

// countCases counts the test cases of a request's jobs, or of those of a stage.
func (s *Store) countCases(ctx context.Context, id bench.RequestID, stage bench.Stage, optional *bool) (total, done int, err error) {
	cases, err := one[caseProgress](ctx, s.pool, `
		with linked as (
			select j.id, j.generation, rj.superseded, rj.dropped
			from request_job rj join job_queue j on j.id = rj.job_id
			where rj.request_id = $1 and ($2 = '' or rj.stage = $2) and ($3::boolean is null or rj.optional = $3)
				and not (rj.superseded and j.kind in ('command', 'profile')) -- the next one has results of its own
		), newest as (
			-- a test case that is measured again counts once, as its newest job has it
			select distinct on (t.artifact_id, t.test_case_id) t.done
			from linked l join job_test_case_state t on t.job_id = l.id
			where t.done or not l.dropped
			order by t.artifact_id, t.test_case_id, l.superseded, l.generation desc, l.id desc
		)
		select count(*) as total, count(*) filter (where done) as done from newest`, id, string(stage), optional)
	return cases.Total, cases.Done, wrap("counting the test cases of request "+string(id), err)
}

// alone reports whether a request has only the jobs that were written with it.
func (s *Store) alone(ctx context.Context, id bench.RequestID) (bool, error) {
	alone, err := value[bool](ctx, s.pool, `select deferred and reopened_at is null from benchmark_request where id = $1`, id)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return alone, wrap("reading request "+string(id), err)
}

// caseProgress counts test cases.
type caseProgress struct{ Total, Done int }

// MarkWorkflowStarted records that the start of the request's workflow was confirmed.
func (s *Store) MarkWorkflowStarted(ctx context.Context, id bench.RequestID) error {
	err := affected(s.pool.Exec(ctx, `update benchmark_request set workflow_started_at = coalesce(workflow_started_at, now()) where id = $1`, id))
	return wrap("marking the workflow of request "+string(id)+" as started", err)
}

// SetRequestMessage records what a request waits for. A completed request keeps its final
// message; the note that its commit has left the branch stays, too.
func (s *Store) SetRequestMessage(ctx context.Context, id bench.RequestID, message string) error {
	err := affected(s.pool.Exec(ctx, `
		update benchmark_request r set message = case when status = 'completed' then message else ltrim($2 || `+leftBranch+`, '; ') end where id = $1`, id, cleanText(message)))
	return wrap("setting the message of request "+string(id), err)
}
