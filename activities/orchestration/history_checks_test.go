package orchestration_test

import (
	"github.com/jackc/pgx/v5"

	"github.com/benchloom/benchloom/internal/admission"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
	"github.com/benchloom/benchloom/internal/store/storetest"
)

// uncomparable selects what of a job $1 that measures a request's own artifact
// could not be compared with the request's parent: neither has the parent a result
// there, nor is it recorded why it has none. Reasons are: a job of the parent that
// failed with a message, one that somebody cancelled under this request ($2), and, for
// merged commits whose parent nobody has asked for, the request's own note.
// Optional targets are left out.
const uncomparable = `
	select r.id || ' ' || r.tag || ' (parent ' || r.parent || '): ' || tc.benchmark || ' ' || tc.profile
	from job_queue j
	join request_job w on w.job_id = j.id and w.stage = 'own' and not w.optional
	join benchmark_request r on r.id = w.request_id and r.status = 'in_progress' and r.type in ('master', 'try') and r.parent is not null
	join job_test_case jt on jt.job_id = j.id
	join test_case tc on tc.id = jt.test_case_id
	where j.key = $1
		and not (r.type = 'master' and r.waits_for is distinct from r.parent and r.parent_note <> '')
		and not exists (
			select from test_result t join artifact a on a.id = t.artifact_id
			where a.project = j.project and a.tag = r.parent and t.test_case_id = jt.test_case_id and t.size_class = j.size_class)
		and not exists (
			select from job_queue p join job_test_case pt on pt.job_id = p.id
			where p.project = j.project and p.tag = r.parent and pt.test_case_id = jt.test_case_id and p.message <> ''
				and (p.status = 'failure' or p.key || ' ' || r.id = any($2)))`

// checkStart checks a run at the moment at which it starts.
func (h *chronicle) checkStart(plan store.RunPlan) {
	h.t.Helper()
	if plan.Job.Versus != "" {
		return // a look measures both sides again
	}
	found := h.column(uncomparable, plan.Job.Key, append([]string{}, h.waived...))
	h.equal([]string{}, append([]string{}, found...), "a job starts whose parent's test cases are neither stored nor recorded as impossible")
	for _, tc := range plan.Missing {
		h.equal(false, h.measured[plan.Job.Tag+" "+tc.String()], plan.Job.Tag+" "+tc.String()+" is measured twice")
	}
}

func (h *chronicle) column(sql string, args ...any) []string {
	h.t.Helper()
	rows, err := h.db.Query(h.ctx, sql, args...)
	h.ok(err)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	h.ok(err)
	return found
}

// checkSlots checks that no more requests have jobs under way than may.
func (h *chronicle) checkSlots() {
	h.t.Helper()
	running := h.count(`
		select count(*) from benchmark_request
		where project = $1 and type <> 'adhoc' and status = 'in_progress' and jobs_done_at is null`, h.project)
	if running > h.config.Slots() {
		h.t.Fatalf("%d requests are in progress, %d may be", running, h.config.Slots())
	}
}

// checkEnd checks the record of a history that has ended.
func (h *chronicle) checkEnd() {
	h.t.Helper()
	open := h.count(`select count(*) from benchmark_request where project = $1 and status <> 'completed'`, h.project)
	h.equal(0, open, "every request ends")
	blocked := h.count(`
		select count(*) from job_queue j join request_job w on w.job_id = j.id and not w.optional
		where j.project = $1 and j.status in ('queued', 'handed_out', 'in_progress')`, h.project)
	h.equal(0, blocked, "every job that somebody waits for ends")
	given := h.count(`
		select count(*) from job_queue j join request_job w on w.job_id = j.id and not w.optional and w.stage = 'own'
		join benchmark_request r on r.id = w.request_id and not (r.outcome = 'cancelled' and r.message like 'cancelled by %')
		where j.project = $1 and j.status = 'cancelled' and not j.key || ' ' || r.id = any($2)`, h.project, append([]string{}, h.waived...))
	h.equal(0, given, "what was cancelled for others is measured for those who still want it")
	twice := h.count(`
		select count(*) from (select from test_result t join artifact a on a.id = t.artifact_id where a.project = $1 and a.tag not like 'own-%' and not t.in_turns
			group by t.artifact_id, t.test_case_id, t.size_class having count(*) > 1) as twice`, h.project)
	h.equal(0, twice, "nothing is measured twice")
	h.equal([]string{}, append([]string{}, h.column(storetest.Untallied)...), "the tally counts the open jobs")
	mispacked, err := storetest.Mispacked(h.ctx, h.store, h.project)
	h.ok(err)
	h.equal([]string{}, append([]string{}, mispacked...), "what is packed are the results")
	h.checkVerdicts()
	h.checkAdmissions()
}

// checkVerdicts checks that each row of a comparison has one verdict, which rests on whole
// looks: no pair is lost, and none counts twice.
func (h *chronicle) checkVerdicts() {
	h.t.Helper()
	open := h.count(`
		select count(*) from comparison c join artifact a on a.id = c.artifact_id left join comparison_verdict v on v.comparison_id = c.id and v.verdict is null
		where a.project = $1 and (c.state = 'deciding' or v.verdict is not null)`, h.project)
	h.equal(0, open, "every comparison is decided")
	odd := h.column(`
		select a.tag || ': ' || v.pairs || ' pairs, ' || v.sessions || ' sessions, ' || v.verdict || ', ' || v.reason
		from comparison c join artifact a on a.id = c.artifact_id join comparison_verdict v on v.comparison_id = c.id and v.measured
		where a.project = $1 and (v.pairs, v.sessions) not in ((0, 0), (6, 1), (14, 2), (22, 3), (34, 4), (46, 5))`, h.project)
	h.equal([]string{}, append([]string{}, odd...), "verdicts rest on whole looks")
	mixed := h.count(`
		select count(*) from (
			select from comparison_look l join job_run n on n.job_id = l.job_id join test_result t on t.run_id = n.id
			join job_queue j on j.id = l.job_id where j.project = $1
			group by l.comparison_id, l.look, j.versus, t.test_case_id, t.artifact_id having count(*) > 1) as mixed`, h.project)
	h.equal(0, mixed, "a look has one session of each test case")
}

// checkAdmissions orders the recorded state of every admission again.
func (h *chronicle) checkAdmissions() {
	h.t.Helper()
	admissions, err := h.store.Admissions(h.ctx, h.project)
	h.ok(err)
	for _, a := range admissions {
		requests, done, err := admission.DecodeState(a.State)
		h.ok(err)
		var first bench.RequestID
		for _, p := range admission.Order(requests, done, admission.Policy(a.Policy)) {
			if p.Admissible {
				first = p.Request.ID
				break
			}
		}
		h.equal(a.RequestID, first, "the first admissible one was admitted")
	}
}
