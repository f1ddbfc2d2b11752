package pages

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// requestAPI backs the pages of requests and of the audit, and acts on requests.
type requestAPI interface {
	Request(ctx context.Context, ref string) (apiclient.RequestDetail, error)
	RequestJobs(ctx context.Context, ref string, q apiclient.JobQuery) (apiclient.JobList, error)
	ExplainRequest(ctx context.Context, ref string) (apiclient.RequestExplanation, error)
	Audit(ctx context.Context, q apiclient.AuditQuery) (apiclient.AuditList, error)
	CancelRequest(ctx context.Context, ref string, act apiclient.Act) (apiclient.RequestOperation, error)
	ExpireRequest(ctx context.Context, ref string, e apiclient.Expiry) (apiclient.RequestOperation, error)
	RetryRequest(ctx context.Context, ref string, act apiclient.Act) (apiclient.RequestOperation, error)
	RemeasureRequest(ctx context.Context, ref string, r apiclient.Remeasurement) (apiclient.RequestOperation, error)
	PreviewRemeasurement(ctx context.Context, ref string, r apiclient.Remeasurement) (apiclient.RequestOperation, error)
	UnstickRequest(ctx context.Context, ref string, u apiclient.Unstick) (apiclient.Unstuck, error)
}

// showParameter narrows a list.
const showParameter = "show"

func (p *Pages) requestPages() []page {
	return []page{
		{pattern: "/requests/{request}", parameters: []string{showParameter, sortParameter, pageParameter}, show: p.request},
		{pattern: "/requests/{request}/again", parameters: []string{"benchmark"}, show: p.again},
	}
}

// requestView is the content of the page of a request.
type requestView struct {
	apiclient.RequestDetail
	// Sentence says where the request stands.
	Sentence string
	// Why explains what the request waits for; nil for a request that has ended.
	Why *apiclient.RequestExplanation
	// Failures are the errors, each with the job that it concerns.
	Failures []failure
	Lanes    lanes
	// Listed are the jobs that are shown. Part is set when there are more.
	Listed []listedJob
	Part   bool
	// Show is the status to which the jobs are narrowed; empty: to those that matter most.
	Show string
	// Choices are the states to which the jobs can be narrowed.
	Choices []string
	Order   order
	// Next is the cursor of the next page of jobs.
	Next    string
	Audit   apiclient.AuditList
	Actions []act
	// Made lists the profiles of the request; nil: it makes none.
	Made *madeProfiles
	// Temporal is the address of its workflow, Commit and PullRequest are the addresses of what it
	// measures; empty: not known.
	Temporal, Commit, PullRequest string
}

// Compared is the artifact with which the artifact of the request is compared; empty: none, or none yet.
func (r requestView) Compared() string {
	if r.Verification != nil {
		return r.Verification.Baseline
	}
	return r.Baseline
}

// failure is an error of a run, with its job.
type failure struct {
	apiclient.RunError
	Job apiclient.Job
	// Anchor identifies it, however many come before it.
	Anchor string
}

// listedJob is a job with its runs.
type listedJob struct {
	apiclient.Job
	// Attempts counts its runs, Last is the last of them; nil: it has had none, or none is
	// known here.
	Attempts int
	Last     *apiclient.Run
}

// Title returns the name to show: the job's own name, its command, or its test cases.
func (j listedJob) Title() string { return jobTitle(j.Job) }

func jobTitle(j apiclient.Job) string {
	switch {
	case j.Name != "":
		return j.Name
	case len(j.Command) > 0:
		return quoted(j.Command...)
	case len(j.TestCases) == 1:
		return j.TestCases[0].String()
	}
	title := string(j.Kind)
	for _, part := range []string{j.Profile, j.Backend} {
		if part != "" {
			title += " " + part
		}
	}
	if n := len(j.TestCases); n > 0 {
		title += fmt.Sprintf(", %d test cases", n)
	}
	return title
}

// jobStatuses are the states by which jobs are listed.
var jobStatuses = []string{"in_progress", "failure", "handed_out", "queued", "success", "cancelled"}

const (
	// listedJobs bounds a page of jobs.
	listedJobs = 100
	// shownAudit bounds the operations on a request that are shown.
	shownAudit = 20
)

// request shows one request: why it is where it is, and what it has brought.
func (p *Pages) request(v *visit) (*view, error) {
	id, err := v.requestID()
	if err != nil {
		return nil, err
	}
	shown := &view{template: "request", Live: "request:" + id, APIPath: "/api/v1/requests/" + id, Command: "benchloom request show " + id}
	// Read before what is shown: a change in between is then told once more.
	revision, err := v.api.Revision(v.Context(), shown.Live)
	if err != nil {
		return nil, err
	}
	shown.Revision = revision.Revision
	detail, err := v.api.Request(v.Context(), id)
	if err != nil {
		return nil, err
	}
	shown.Title, shown.Crumbs = subjectOf(detail.Request), []link{projectLink(detail.Project)}
	out := requestView{RequestDetail: detail, Sentence: sentence(detail), Choices: append(slices.Clone(jobStatuses), "all"), Show: v.get(showParameter), Temporal: v.workflow(detail.WorkflowID)}
	if detail.Status != bench.Completed {
		why, err := v.api.ExplainRequest(v.Context(), id)
		if err != nil {
			return nil, err
		}
		out.Why = &why
	}
	if detail.Type.Tracked() {
		project, err := v.api.Project(v.Context(), detail.Project)
		if err != nil {
			return nil, err
		}
		out.Commit, out.PullRequest = sourceOf(project).commit(detail.Type, detail.Tag), sourceOf(project).PullRequestAddress(detail.PR)
	}
	if err := out.list(v); err != nil {
		return nil, err
	}
	if detail.Profiler != "" {
		made, err := v.madeBy(detail.Project, detail.Versus, apiclient.CodeProfileQuery{Request: detail.ID})
		if err != nil {
			return nil, err
		}
		out.Made = &made
	}
	out.Failures = failuresOf(detail)
	out.Lanes = lanesOf(detail, v.now)
	if out.Audit, err = v.api.Audit(v.Context(), apiclient.AuditQuery{Project: detail.Project, Subject: id, Limit: shownAudit}); err != nil {
		return nil, err
	}
	if out.Actions, err = p.requestActs(v, detail); err != nil {
		return nil, err
	}
	shown.Content = out
	return shown, nil
}

// requestID returns the ID of the request that the address names, by ID or by the tag of its
// artifact.
func (v *visit) requestID() (string, error) {
	ref := v.PathValue("request")
	if id, err := bench.ParseRequestID(ref); err == nil {
		return string(id), nil
	}
	r, err := v.api.Request(v.Context(), ref)
	return string(r.ID), err
}

// list chooses and sorts the jobs that are shown.
func (r *requestView) list(v *visit) error {
	jobs := r.Jobs
	r.Part = r.JobsTotal > len(jobs)
	switch cursor := v.get(pageParameter); {
	case r.Show == "" && cursor == "":
	case r.Show != "" && r.Show != "all" && !slices.Contains(jobStatuses, r.Show):
		return badParameter(showParameter, r.Show, "it may be all, "+joined(jobStatuses))
	default:
		query := apiclient.JobQuery{Limit: listedJobs, After: cursor}
		if r.Show != "all" {
			query.Status = bench.JobStatus(r.Show)
		}
		list, err := v.api.RequestJobs(v.Context(), string(r.ID), query)
		if err != nil {
			return err
		}
		jobs, r.Next, r.Part = list.Jobs, list.Next, list.Next != "" || cursor != ""
	}
	runs := make(map[bench.JobKey][]apiclient.Run)
	for _, run := range r.Runs {
		runs[run.Job] = append(runs[run.Job], run)
	}
	for _, j := range jobs {
		one := listedJob{Job: j, Attempts: len(runs[j.Key])}
		if n := len(runs[j.Key]); n > 0 {
			one.Last = &runs[j.Key][n-1]
		}
		r.Listed = append(r.Listed, one)
	}
	var err error
	r.Order, err = sorted(v, r.Listed,
		by("status", func(j listedJob) int { return slices.Index(jobStatuses, string(j.Status)) }),
		by("name", func(j listedJob) string { return j.Title() }),
		by("class", func(j listedJob) int { return int(j.SizeClass) }),
		by("attempts", func(j listedJob) int { return j.Attempts }),
		by("took", func(j listedJob) time.Duration { return j.duration(v.now) }),
	)
	return err
}

func (j listedJob) duration(now time.Time) time.Duration {
	switch {
	case j.StartedAt == nil:
		return 0
	case j.EndedAt != nil:
		return j.EndedAt.Sub(*j.StartedAt)
	}
	return now.Sub(*j.StartedAt)
}

// failuresOf lists the errors that keep a request from completing, the latest first.
func failuresOf(d apiclient.RequestDetail) []failure {
	jobs, of := make(map[bench.JobKey]apiclient.Job), make(map[bench.RunID]bench.JobKey)
	for _, j := range d.Jobs {
		jobs[j.Key] = j
	}
	for _, r := range d.Runs {
		of[r.ID] = r.Job
	}
	var all []failure
	told := make(map[bench.JobKey]bool)
	for _, e := range d.Errors {
		told[of[e.Run]] = true
		all = append(all, failure{RunError: e, Job: jobs[of[e.Run]]})
	}
	// A run that failed before anything was measured leaves no error but its own.
	last := make(map[bench.JobKey]apiclient.Run)
	for _, r := range d.Runs {
		last[r.Job] = r
	}
	for _, j := range d.Jobs {
		r, ran := last[j.Key]
		if j.Status != bench.JobFailure || told[j.Key] {
			continue
		}
		e := apiclient.RunError{Kind: bench.FailInfrastructure, Message: j.Message}
		if ran {
			e = apiclient.RunError{Run: r.ID, Kind: r.Outcome.FailureKind(), Message: cmp.Or(r.Message, j.Message), OutputTail: r.OutputTail, CreatedAt: r.StartedAt}
			if r.FinishedAt != nil {
				e.CreatedAt = *r.FinishedAt
			}
		}
		all = append(all, failure{RunError: e, Job: j})
	}
	known := make(map[string]int)
	for i, f := range all {
		of := cmp.Or(string(f.Run), string(f.Job.Key))
		all[i].Anchor = fmt.Sprintf("%s-%d", of, known[of])
		known[of]++
	}
	slices.SortStableFunc(all, func(a, b failure) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return all
}

// sentence says where a request stands.
func sentence(d apiclient.RequestDetail) string {
	switch {
	case d.Outcome == bench.Success && d.Verdicts != "": // the verdict follows
		return "It has ended successfully."
	case d.Outcome == bench.Success:
		return "It has ended successfully" + reasonAfter(d.Message) + "."
	case d.Outcome == bench.Failure: // the failures say the rest
		message, _, _ := strings.Cut(d.Message, ": ")
		return "It has ended with a failure" + reasonAfter(message) + "."
	case d.Outcome != "":
		return "It has ended: " + string(d.Outcome) + reasonAfter(d.Message) + "."
	case d.JobsDoneAt != nil:
		return "Its jobs are done; what they brought is being compared" + reasonAfter(d.Message) + "."
	case d.Status == bench.InProgress && d.Progress.JobsRunning > 0:
		return fmt.Sprintf("It is in progress: of %s, %d running and %d done.", plural(d.Progress.Jobs, "job"), d.Progress.JobsRunning, d.Progress.JobsDone)
	case d.Status == bench.InProgress && d.Progress.Jobs > 0:
		return fmt.Sprintf("It is in progress, but none of its jobs runs: of %s, %d done.", plural(d.Progress.Jobs, "job"), d.Progress.JobsDone)
	case d.Status == bench.InProgress:
		return "It is in progress; its jobs are being written" + reasonAfter(d.Message) + "."
	case d.Status == bench.WaitingForArtifacts:
		return "It waits for its artifacts" + reasonAfter(d.Message) + "."
	}
	return "It waits for its turn" + reasonAfter(d.Message) + "."
}

func reasonAfter(message string) string {
	if message == "" {
		return ""
	}
	return ": " + clip(message)
}

// workflow returns the address of a workflow in the Temporal Web UI; empty: not known.
func (v *visit) workflow(id string) string {
	if v.who.TemporalUI == "" || id == "" {
		return ""
	}
	return v.who.TemporalUI + "/namespaces/" + url.PathEscape(cmp.Or(v.who.Namespace, "default")) + "/workflows/" + url.PathEscape(id)
}
