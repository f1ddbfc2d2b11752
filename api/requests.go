package api

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diagnose"
	"github.com/benchloom/benchloom/internal/store"
)

func (s *server) registerRequests() {
	handle(s, operation{id: "create-request", method: http.MethodPost, path: "/requests", need: toWrite, tag: "requests",
		summary: "Ask for an artifact to be benchmarked", description: fmt.Sprintf("Answers 201 for a new request and 200 for one that was asked for before: the same release, or the same idempotency key. With the field jobs it may have %d MB; all of them are taken, or none.\n\nThe body may have Content-Encoding gzip.", apiclient.MaxBatchBytes/1_000_000), before: s.spoolJobs,
		status: http.StatusCreated, answers: []documented{{status: http.StatusOK, json: reflect.TypeFor[apiclient.Request]()}}}, s.createRequest)
	handle(s, operation{id: "list-requests", method: http.MethodGet, path: "/requests", need: toRead, tag: "requests",
		summary: "Requests, newest first"}, s.listRequests)
	handle(s, operation{id: "get-request", method: http.MethodGet, path: "/requests/{request}", need: toRead, tag: "requests",
		summary: "One request with its jobs, runs and errors"}, s.getRequest)
	handle(s, operation{id: "list-request-jobs", method: http.MethodGet, path: "/requests/{request}/jobs", need: toRead, tag: "requests",
		summary: "The jobs of a request, in the order in which they were written"}, s.listRequestJobs)
	handle(s, operation{id: "unstick-request", method: http.MethodPost, path: "/requests/{request}/unstick", need: toWrite, tag: "requests",
		summary: "Find out why a request does not move, and mend it", description: "What is stuck comes first. What is safe is mended unless dry_run is set; with force a workflow that cannot decide is reset to its beginning."}, s.unstickRequest)
	handle(s, operation{id: "artifacts-ready", method: http.MethodPost, path: "/requests/{request}/artifacts-ready", need: toWrite, tag: "requests",
		summary: "Say that a request's artifacts are ready", description: "For the CI system that built them. Saying it again changes nothing; after the request's end it starts nothing."}, s.artifactsReady)
	handle(s, operation{id: "list-admissions", method: http.MethodGet, path: "/projects/{project}/admissions", need: toRead, tag: "requests",
		summary: "A project's latest admissions, with what each was decided from"}, s.listAdmissions)
}

type listRequests struct {
	Project string              `query:"project" doc:"Only those of this project."`
	Type    bench.RequestType   `query:"type" enum:"release,master,try,adhoc" doc:"Only those of this type."`
	Status  bench.RequestStatus `query:"status" enum:"waiting_for_artifacts,artifacts_ready,in_progress,completed" doc:"Only those with this status."`
	Tag     string              `query:"tag" doc:"Only those of this artifact."`
	Limit   int                 `query:"limit" minimum:"1" maximum:"500" default:"50"`
	Cursor  string              `query:"cursor" doc:"What the page before gave as next."`
}

func (s *server) listRequests(ctx context.Context, in *listRequests) (*body[apiclient.RequestList], error) {
	if in.Project != "" {
		if _, err := s.project(ctx, in.Project, http.StatusNotFound); err != nil {
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
	stored, err := s.Store.Requests(ctx, filter)
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
		return nil, "", invalid("the cursor %.80q is none: give what the page before named as next, or nothing for the first page", cursor)
	}
	at := time.Unix(0, n).UTC()
	return &at, parsed, nil
}

type requestPath struct {
	Request string `path:"request" doc:"ID of the request, or project:tag for one of an artifact." example:"go:1.26.0"`
}

// request reads a request by its ID or as project:tag.
func (s *server) request(ctx context.Context, ref string) (bench.Request, error) {
	if project, tag, ok := strings.Cut(ref, ":"); ok {
		if _, err := s.project(ctx, project, http.StatusNotFound); err != nil {
			return bench.Request{}, err
		}
		r, err := s.Store.RequestByTag(ctx, project, tag)
		if errors.Is(err, store.ErrNotFound) {
			return r, problemf(http.StatusNotFound, "unknown-request", "project %s has no request for %q; 'benchloom status --project %s' shows those it has", project, tag, project)
		}
		return r, err
	}
	id, err := bench.ParseRequestID(ref)
	if err != nil {
		return bench.Request{}, fmt.Errorf("%w; or name it as project:tag", err)
	}
	r, err := s.Store.Request(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return r, problemf(http.StatusNotFound, "unknown-request", "there is no request %s; 'benchloom status' lists the latest", id)
	}
	return r, err
}

// maxShownJobs is how many jobs are shown with their request.
const maxShownJobs = 100

func (s *server) getRequest(ctx context.Context, in *requestPath) (*body[apiclient.RequestDetail], error) {
	r, err := s.request(ctx, in.Request)
	if err != nil {
		return nil, err
	}
	out := apiclient.RequestDetail{Request: requestOf(r), Summary: r.Summary, Jobs: []apiclient.Job{}, Errors: []apiclient.RunError{}}
	jobs, total, err := s.Store.ShownJobs(ctx, r.ID, maxShownJobs)
	if err != nil {
		return nil, err
	}
	out.JobsTotal = total
	ids := make([]int64, len(jobs))
	for i, j := range jobs {
		out.Jobs, ids[i] = append(out.Jobs, jobOf(j)), j.ID
	}
	runs, err := s.Store.RunsOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	if out.Runs, err = runsOf(runs); err != nil {
		return nil, err
	}
	if err := s.explainWaiting(ctx, jobs, out.Runs, out.Jobs); err != nil {
		return nil, err
	}
	failed, err := s.Store.ErrorsOf(ctx, r.ID, ids)
	if err != nil {
		return nil, err
	}
	for _, e := range failed {
		out.Errors = append(out.Errors, runErrorOf(e))
	}
	p, err := s.Store.JobProgress(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	out.Progress = apiclient.Progress{
		Jobs: p.Total, JobsDone: p.Success + p.Failure + p.Cancelled, JobsRunning: p.InProgress, JobsFailed: p.Failure,
		TestCases: p.TestCases, TestCasesDone: p.TestCasesDone,
	}
	if r.Status == bench.InProgress {
		began, err := s.Store.FirstStart(ctx, r.ID)
		if err != nil {
			return nil, err
		}
		out.Progress.EstimateSeconds = estimate(began, p, s.Now())
	}
	if out.Estimate, err = s.estimateOf(ctx, r); err != nil {
		return nil, err
	}
	pause, err := s.Store.QueuePause(ctx, r.Project)
	if err != nil {
		return nil, err
	}
	if pause != nil && (p.Queued > 0 || p.Total == 0) && r.Status != bench.Completed {
		// Nobody can tell, until it is resumed.
		out.Progress.EstimateSeconds, out.EstimatedEnd, out.EstimateBasis = nil, nil, diagnose.Pause{Who: pause.By, Why: pause.Reason}.Words(r.Project)
		if r.Status != bench.InProgress {
			out.EstimatedStart = nil
		}
	}
	return answer(out, nil)
}

// estimate is how long the rest takes at the pace since the first job started:
// nil while nothing is done, or nothing is left.
func estimate(began *time.Time, p bench.JobProgress, now time.Time) *float64 {
	rest := p.TestCases - p.TestCasesDone
	if began == nil || p.TestCasesDone == 0 || rest <= 0 || p.Open() == 0 {
		return nil
	}
	seconds := max(0, now.Sub(*began).Seconds()) / float64(p.TestCasesDone) * float64(rest)
	return &seconds
}

// settleBound is how long the workflow of a request that has ended may take to end
// while somebody waits for an answer.
const settleBound = 5 * time.Second

// reachBound is how long a workflow may take to be reached while somebody waits
// for an answer.
const reachBound = 2 * time.Second

// reach tries once to reach workflows. The record has what is wanted, so a
// failure is only logged: the reconciliation repeats it.
func (s *server) reach(ctx context.Context, what, workflow string, f func(ctx context.Context) error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), reachBound)
	defer stop()
	if err := f(ctx); err != nil {
		s.Log.WarnContext(ctx, "could not "+what+" at once; it is repeated", "workflow", workflow, "error", err, "request_id", requestID(ctx))
	}
}
