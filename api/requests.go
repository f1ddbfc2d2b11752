package api

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/intake"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/results"
	"github.com/benchloom/benchloom/internal/store"
)

// RequestRecord creates requests and reads them with their jobs.
type RequestRecord interface {
	SubmitRecord
	// Requests lists requests, newest first.
	Requests(ctx context.Context, filter store.RequestFilter) ([]bench.Request, error)
	// ShownJobs lists at most limit jobs of a request in the order of their creation,
	// and counts all. It prefers jobs that run or failed, then those in Temporal.
	ShownJobs(ctx context.Context, id bench.RequestID, limit int) (jobs []bench.Job, total int, err error)
	RequestJobPage(ctx context.Context, id bench.RequestID, page store.JobPage) ([]bench.Job, error)
	JobProgress(ctx context.Context, id bench.RequestID) (bench.JobProgress, error)
	// StagesOf sums up the stages that have jobs, in no order.
	StagesOf(ctx context.Context, id bench.RequestID) ([]store.StageTimes, error)
	CountGraphs(ctx context.Context, id bench.RequestID) (int, error)
	// FirstStart returns nil before the first run of a request's jobs.
	FirstStart(ctx context.Context, id bench.RequestID) (*time.Time, error)
	// RunsOf and ErrorsOf list the runs and errors of jobs by their row IDs.
	RunsOf(ctx context.Context, jobs []int64) ([]bench.Run, error)
	ErrorsOf(ctx context.Context, id bench.RequestID, jobs []int64) ([]bench.RunError, error)
	TypicalRecord
	// ComparisonOf reads a request's comparison with its baseline; store.ErrNotFound if it has none.
	ComparisonOf(ctx context.Context, id bench.RequestID) (store.Comparison, error)
	// Admissions lists a project's latest admissions, newest first.
	Admissions(ctx context.Context, project string) ([]store.AdmissionRecord, error)
}

// SubmitRecord creates requests.
type SubmitRecord interface {
	intake.Record
	// RequestLike returns the existing request that creating r would return. The error
	// is store.ErrNotFound if there is none, and store.ErrConflict, with the request,
	// when it asks for something else.
	RequestLike(ctx context.Context, r bench.Request) (bench.Request, error)
	// CreateCommands writes a request with its jobs, all or none; jobs is read within
	// the transaction and must not call the store. For a repeated idempotency key it
	// returns the earlier request, with store.ErrConflict when that asks for something
	// else.
	CreateCommands(ctx context.Context, r bench.Request, jobs iter.Seq2[bench.PlannedJob, error]) (stored bench.Request, created bool, err error)
	// OpenTaskQueues lists the task queues with open jobs of a request's stage.
	OpenTaskQueues(ctx context.Context, id bench.RequestID, stage bench.Stage) ([]string, error)
	// MarkWorkflowStarted records that a request's workflow runs.
	MarkWorkflowStarted(ctx context.Context, id bench.RequestID) error
	Fleet(ctx context.Context, offlineAfter time.Duration) (plan.Fleet, error)
}

// RequestWorkflows calls the workflows of requests, after the record was written.
type RequestWorkflows interface {
	StartRequest(ctx context.Context, request bench.RequestRef) error
	ArtifactsReady(ctx context.Context, request bench.RequestRef, artifact protocol.ArtifactsReady) error
	CancelRequest(ctx context.Context, request bench.RequestRef, jobs []bench.JobRef) error
}

// requestHandlers submit, show and unstick requests.
type requestHandlers struct {
	*base
	queueAccess
	record    RequestRecord
	workflows RequestWorkflows
	inspector Inspector
	admission *admissionHandlers
}

func (s *requestHandlers) register() {
	handle(s.base, operation{id: "create-request", method: http.MethodPost, path: "/requests", need: toWrite, scope: ofProject, audit: "request create", tag: "requests", maxBody: s.MaxBody, slots: largeSlots,
		summary: "Submit a request", description: fmt.Sprintf("Answers 201 for a new request and 200 for an existing one: the same release, or the same idempotency key. With the field jobs the body may have %d MB; all jobs are accepted, or none.\n\nThe body may have Content-Encoding gzip.", apiclient.MaxBatchBytes/1_000_000), before: s.spoolJobs,
		status: http.StatusCreated, answers: []documented{{status: http.StatusOK, json: reflect.TypeFor[apiclient.Request]()}}}, s.createRequest)
	handle(s.base, operation{id: "list-requests", method: http.MethodGet, path: "/requests", need: toRead, tag: "requests",
		summary: "List requests, newest first"}, s.listRequests)
	handle(s.base, operation{id: "get-request", method: http.MethodGet, path: "/requests/{request}", need: toRead, tag: "requests",
		summary: "Show a request with its jobs, runs and errors"}, s.getRequest)
	handle(s.base, operation{id: "list-request-jobs", method: http.MethodGet, path: "/requests/{request}/jobs", need: toRead, tag: "requests",
		summary: "List the jobs of a request in the order of their creation"}, s.listRequestJobs)
	handle(s.base, operation{id: "unstick-request", method: http.MethodPost, path: "/requests/{request}/unstick", need: toWrite, scope: ofProject, audit: "request unstick", tag: "requests",
		summary: "Diagnose and repair a stuck request", description: "Stuck things are listed first. Safe repairs are carried out unless dry_run is set; with force a workflow that cannot decide is reset to its beginning."}, s.unstickRequest)
	handle(s.base, operation{id: "artifacts-ready", method: http.MethodPost, path: "/requests/{request}/artifacts-ready", need: toWrite, scope: ofProject, audit: "request artifacts-ready", tag: "requests",
		summary: "Report that a request's artifacts are ready", description: "For the CI system that built them. A repeated call changes nothing; after the request's end it starts nothing."}, s.artifactsReady)
	handle(s.base, operation{id: "list-admissions", method: http.MethodGet, path: "/projects/{project}/admissions", need: toRead, tag: "requests",
		summary: "List a project's latest admissions with their inputs"}, s.listAdmissions)
}

type listRequests struct {
	Project string              `query:"project" doc:"Only those of this project."`
	Type    bench.RequestType   `query:"type" enum:"release,master,try,adhoc" doc:"Only those of this type."`
	Status  bench.RequestStatus `query:"status" enum:"waiting_for_artifacts,artifacts_ready,in_progress,completed" doc:"Only those with this status."`
	Tag     string              `query:"tag" doc:"Only those of this artifact."`
	Limit   int                 `query:"limit" minimum:"1" maximum:"500" default:"50"`
	Cursor  string              `query:"cursor" doc:"The value of next from the page before."`
}

func (s *requestHandlers) listRequests(ctx context.Context, in *listRequests) (*body[apiclient.RequestList], error) {
	if in.Project != "" {
		if _, err := s.project(ctx, in.Project, http.StatusNotFound); err != nil {
			return nil, err
		}
		if err := s.tags(ctx, in.Project, &in.Tag); err != nil {
			return nil, err
		}
	}
	filter := store.RequestFilter{Project: in.Project, Type: in.Type, Status: in.Status, Tag: in.Tag, Limit: in.Limit}
	if in.Cursor != "" {
		var err error
		if filter.BeforeTime, filter.BeforeID, err = readCursor(in.Cursor); err != nil {
			return nil, err
		}
	}
	stored, err := s.record.Requests(ctx, filter)
	if err != nil {
		return nil, err
	}
	list := apiclient.RequestList{Requests: make([]apiclient.Request, 0, len(stored))}
	for _, r := range stored {
		list.Requests = append(list.Requests, requestOf(r))
	}
	if len(stored) == in.Limit {
		last := stored[len(stored)-1]
		list.Next = writeCursor(last.CreatedAt, last.ID)
	}
	return answer(list, nil)
}

func writeCursor(at time.Time, id bench.RequestID) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d.%s", at.UnixNano(), id))
}

func readCursor(cursor string) (*time.Time, bench.RequestID, error) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	nanos, id, _ := strings.Cut(string(text), ".")
	n, notNumber := strconv.ParseInt(nanos, 10, 64)
	parsed, notID := bench.ParseRequestID(id)
	if err := errors.Join(err, notNumber, notID); err != nil {
		return nil, "", invalid("the cursor %.80q is invalid: use the value of next from the page before, or none for the first page", cursor)
	}
	at := time.Unix(0, n).UTC()
	return &at, parsed, nil
}

type requestPath struct {
	Request string `path:"request" doc:"ID of the request, or project:tag of its artifact." example:"go:1.26.0"`
}

// maxShownJobs bounds the number of jobs shown with their request.
const maxShownJobs = 100

func (s *requestHandlers) getRequest(ctx context.Context, in *requestPath) (*body[apiclient.RequestDetail], error) {
	r, err := s.request(ctx, in.Request)
	if err != nil {
		return nil, err
	}
	out := apiclient.RequestDetail{Request: requestOf(r), Summary: r.Summary, Jobs: []apiclient.Job{}, Errors: []apiclient.RunError{}}
	jobs, total, err := s.record.ShownJobs(ctx, r.ID, maxShownJobs)
	if err != nil {
		return nil, err
	}
	out.JobsTotal = total
	ids := make([]int64, len(jobs))
	for i, j := range jobs {
		out.Jobs, ids[i] = append(out.Jobs, jobOf(j)), j.ID
	}
	if err := expect(ctx, s.record, jobs, out.Jobs); err != nil {
		return nil, err
	}
	runs, err := s.record.RunsOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	if out.Runs, err = runsOf(runs); err != nil {
		return nil, err
	}
	if err := explainWaiting(ctx, s.inspector, jobs, out.Runs, out.Jobs); err != nil {
		return nil, err
	}
	failed, err := s.record.ErrorsOf(ctx, r.ID, ids)
	if err != nil {
		return nil, err
	}
	for _, e := range failed {
		out.Errors = append(out.Errors, runErrorOf(e))
	}
	p, err := s.record.JobProgress(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	if err := s.verification(ctx, r.ID, &out); err != nil {
		return nil, err
	}
	stages, err := s.record.StagesOf(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	if out.Graphs, err = s.record.CountGraphs(ctx, r.ID); err != nil {
		return nil, err
	}
	out.Steps = course{r, stages, out.Verification}.steps()
	out.Progress = apiclient.Progress{
		Jobs: p.Total, JobsDone: p.Success + p.Failure + p.Cancelled, JobsRunning: p.InProgress, JobsFailed: p.Failure,
		TestCases: p.TestCases, TestCasesDone: p.TestCasesDone,
	}
	if r.Status == bench.InProgress {
		began, err := s.record.FirstStart(ctx, r.ID)
		if err != nil {
			return nil, err
		}
		out.Progress.EstimateSeconds = estimate(began, p, s.Now())
	}
	if out.Estimate, err = s.admission.estimateOf(ctx, r); err != nil {
		return nil, err
	}
	pause, err := s.admission.record.QueuePause(ctx, r.Project)
	if err != nil {
		return nil, err
	}
	if pause != nil && (p.Queued > 0 || p.Total == 0) && r.Status != bench.Completed {
		// Unknown until it is resumed.
		out.Progress.EstimateSeconds = nil
		pausedEstimate(&out.Estimate, r, *pause)
	}
	return answer(out, nil)
}

// verification adds how a request's comparison is decided.
func (s *requestHandlers) verification(ctx context.Context, id bench.RequestID, out *apiclient.RequestDetail) error {
	c, err := s.record.ComparisonOf(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	if out.Verdicts == "" { // not completed yet
		out.Verdicts = results.Tally(c).String()
	}
	out.Verification = &apiclient.Verification{
		Baseline: c.Baseline, Provisional: !c.Decided, Looks: c.Look,
		OwnSeconds: c.OwnSeconds, SpentSeconds: c.SpentSeconds, BudgetSeconds: c.BudgetSeconds,
	}
	return nil
}

// estimate returns the remaining time in seconds at the pace since the first job
// started; nil when no job is done, or none is left.
func estimate(began *time.Time, p bench.JobProgress, now time.Time) *float64 {
	rest := p.TestCases - p.TestCasesDone
	if began == nil || p.TestCasesDone == 0 || rest <= 0 || p.Open() == 0 {
		return nil
	}
	seconds := max(0, now.Sub(*began).Seconds()) / float64(p.TestCasesDone) * float64(rest)
	return &seconds
}
