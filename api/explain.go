package api

import (
	"context"
	"net/http"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diagnose"
	"github.com/benchloom/benchloom/internal/diagnose/inspect"
)

// Inspector explains the state of requests and jobs; an *inspect.Inspector is one. Handlers
// call it under no lock, from many goroutines at once; it is never nil.
type Inspector interface {
	Job(ctx context.Context, j bench.Job) (diagnose.JobExplanation, error)
	Request(ctx context.Context, r bench.Request) (inspect.RequestExplanation, error)
	// Waits says in one line what each open job without a run waits for. Other jobs are
	// left out.
	Waits(ctx context.Context, jobs []bench.Job, running map[bench.JobKey]bool) (map[bench.JobKey]string, error)
	// Unstick returns an *inspect.TemporalError when Temporal does not answer.
	Unstick(ctx context.Context, r bench.Request, may inspect.Repairs) ([]inspect.Repaired, error)
	Shapes(ctx context.Context, project string) ([]diagnose.ShapeExplanation, error)
	// Shape returns an *inspect.ShapeError when nothing is known of the shape, and
	// bench.ErrInvalid when several projects have it.
	Shape(ctx context.Context, ref, project string) (diagnose.ShapeExplanation, error)
}

// ProgressRecord counts the finished jobs of requests.
type ProgressRecord interface {
	JobProgress(ctx context.Context, id bench.RequestID) (bench.JobProgress, error)
}

// explainHandlers serve the reasons of decisions.
type explainHandlers struct {
	*base
	record    ProgressRecord
	inspector Inspector
	admission *admissionHandlers
}

func (s *explainHandlers) register() {
	s.registerSizes()
	handle(s.base, operation{id: "explain-job", method: http.MethodGet, path: "/jobs/{job}/explain", need: toRead, tag: "jobs",
		summary:     "Explain the state of a job",
		description: "What it waits for, its position in its queue, why each collector does not take it, how its size class was chosen, and what its runs cost."}, s.explainJob)
	handle(s.base, operation{id: "explain-request", method: http.MethodGet, path: "/requests/{request}/explain", need: toRead, tag: "requests",
		summary:     "Explain the state of a request",
		description: "What it waits for, its position in its project's admission, and the explanation of its next job."}, s.explainRequest)
}

func (s *explainHandlers) explainJob(ctx context.Context, in *jobPath) (*body[diagnose.JobExplanation], error) {
	j, err := s.job(ctx, in.Job)
	if err != nil {
		return nil, err
	}
	e, err := s.inspector.Job(ctx, j)
	return answer(e, err)
}

func (s *explainHandlers) explainRequest(ctx context.Context, in *requestPath) (*body[apiclient.RequestExplanation], error) {
	r, err := s.request(ctx, in.Request)
	if err != nil {
		return nil, err
	}
	e, err := s.inspector.Request(ctx, r)
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
	if out.Place, err = s.admission.placeOf(ctx, r); err != nil {
		return nil, err
	}
	progress, err := s.record.JobProgress(ctx, r.ID)
	out.Progress = apiclient.Progress{
		Jobs: progress.Total, JobsDone: progress.Total - progress.Open(), JobsFailed: progress.Failure,
		TestCases: progress.TestCases, TestCasesDone: progress.TestCasesDone,
	}
	return answer(out, err)
}

// explainWaiting adds to each open job without a run what it waits for. jobs and stored
// are the same jobs.
func explainWaiting(ctx context.Context, inspector Inspector, stored []bench.Job, runs []apiclient.Run, jobs []apiclient.Job) error {
	running := make(map[bench.JobKey]bool)
	for _, r := range runs {
		running[r.Job] = running[r.Job] || r.Outcome == bench.RunRunning
	}
	waits, err := inspector.Waits(ctx, stored, running)
	for i := range jobs {
		jobs[i].Waits = waits[jobs[i].Key]
	}
	return err
}
