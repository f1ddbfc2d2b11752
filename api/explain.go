package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/benchloom/benchloom/internal/admission"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diagnose"
	"github.com/benchloom/benchloom/internal/diagnose/inspect"
)

// Inspector explains why requests and jobs are where they are; an *inspect.Inspector
// is one.
type Inspector interface {
	Job(ctx context.Context, j bench.Job) (diagnose.JobExplanation, error)
	Request(ctx context.Context, r bench.Request) (inspect.RequestExplanation, error)
	// Waits says in a line what each open job without a run waits for; other jobs are
	// left out.
	Waits(ctx context.Context, jobs []bench.Job, running map[bench.JobKey]bool) (map[bench.JobKey]string, error)
	// Unstick returns an *inspect.TemporalError when Temporal does not answer.
	Unstick(ctx context.Context, r bench.Request, may inspect.Repairs) ([]inspect.Repaired, error)
	Shapes(ctx context.Context, project string) ([]diagnose.ShapeExplanation, error)
	// Shape returns an *inspect.ShapeError when nothing is known of it, and
	// bench.ErrInvalid when several projects have the shape.
	Shape(ctx context.Context, ref, project string) (diagnose.ShapeExplanation, error)
}

func (s *server) registerExplain() {
	handle(s, operation{id: "explain-job", method: http.MethodGet, path: "/jobs/{job}/explain", need: toRead, tag: "jobs",
		summary:     "Why a job is where it is",
		description: "What it waits for, its place in its queue, why each collector does not take it, why it has its size class, and what its runs cost."}, s.explainJob)
	handle(s, operation{id: "explain-request", method: http.MethodGet, path: "/requests/{request}/explain", need: toRead, tag: "requests",
		summary:     "Why a request is where it is",
		description: "What it waits for, its place in its project's queue, and the explanation of its next job."}, s.explainRequest)
}

func (s *server) explainJob(ctx context.Context, in *jobPath) (*body[diagnose.JobExplanation], error) {
	j, err := s.job(ctx, in.Job)
	if err != nil {
		return nil, err
	}
	e, err := s.Inspector.Job(ctx, j)
	return answer(e, err)
}

func (s *server) explainRequest(ctx context.Context, in *requestPath) (*body[apiclient.RequestExplanation], error) {
	r, err := s.request(ctx, in.Request)
	if err != nil {
		return nil, err
	}
	e, err := s.Inspector.Request(ctx, r)
	if err != nil {
		return nil, err
	}
	out := apiclient.RequestExplanation{Request: requestOf(r), Findings: []apiclient.Finding{}, Open: []apiclient.OpenJob{}, Next: e.Next}
	for _, f := range e.Findings {
		out.Findings = append(out.Findings, findingOf(f))
	}
	for _, j := range e.Open {
		out.Open = append(out.Open, apiclient.OpenJob(j))
	}
	if out.Place, err = s.placeOf(ctx, r); err != nil {
		return nil, err
	}
	progress, err := s.Store.JobProgress(ctx, r.ID)
	out.Progress = apiclient.Progress{
		Jobs: progress.Total, JobsDone: progress.Total - progress.Open(), JobsFailed: progress.Failure,
		TestCases: progress.TestCases, TestCasesDone: progress.TestCasesDone,
	}
	return answer(out, err)
}

// explainWaiting adds to each open job without a run what it waits for. The two lists
// are of the same jobs.
func (s *server) explainWaiting(ctx context.Context, stored []bench.Job, runs []apiclient.Run, jobs []apiclient.Job) error {
	running := make(map[bench.JobKey]bool)
	for _, r := range runs {
		running[r.Job] = running[r.Job] || r.Outcome == bench.RunRunning
	}
	waits, err := s.Inspector.Waits(ctx, stored, running)
	for i := range jobs {
		jobs[i].Waits = waits[jobs[i].Key]
	}
	return err
}

// placeOf is a request's place in its project's queue; nil when it is not in it.
func (s *server) placeOf(ctx context.Context, r bench.Request) (*apiclient.QueueEntry, error) {
	if !r.Type.Tracked() || r.Status == bench.Completed || r.JobsDoneAt != nil {
		return nil, nil //nolint:nilnil // no place is an answer
	}
	entries, _, err := s.queue(ctx, r.Project)
	if at := slices.IndexFunc(entries, func(e admission.Entry) bool { return e.Request.ID == r.ID }); at >= 0 {
		entry := queueEntryOf(entries[at])
		return &entry, err
	}
	return nil, err
}
