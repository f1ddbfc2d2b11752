package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/benchloom/benchloom/internal/admission"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diagnose"
	"github.com/benchloom/benchloom/internal/store"
)

// AdmissionRecord reads the admission of projects.
type AdmissionRecord interface {
	AdmissionSnapshot(ctx context.Context, project string, offlineAfter time.Duration) (admission.Snapshot, error)
	// OpenJobCount counts the open jobs of all projects.
	OpenJobCount(ctx context.Context) (int, error)
	// AnyAdmission reports whether a project has requests that a snapshot tells of.
	AnyAdmission(ctx context.Context, project string) (bool, error)
	// QueuePause returns nil for a project whose queue is not paused.
	QueuePause(ctx context.Context, project string) (*store.Pause, error)
}

// admissionHandlers serve the order of a project's requests.
type admissionHandlers struct {
	*base
	record AdmissionRecord
}

func (s *admissionHandlers) register() {
	handle(s.base, operation{id: "get-queue", method: http.MethodGet, path: "/projects/{project}/queue", need: toRead, tag: "requests",
		summary: "List a project's requests in the order of admission", description: "Each position has its reason, and an estimate of start and end."}, s.getQueue)
}

type queuePath struct {
	Project string `path:"project" doc:"Name of the project." example:"go"`
}

func (s *admissionHandlers) getQueue(ctx context.Context, in *queuePath) (*body[apiclient.Queue], error) {
	entries, config, err := s.queue(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	out := apiclient.Queue{
		Project: in.Project, Policy: string(admission.PolicyOf(config)), MaxInProgress: config.Slots(),
		Requests: make([]apiclient.QueueEntry, len(entries)),
	}
	paused, err := s.record.QueuePause(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	if paused != nil {
		out.Paused = paused.String()
	}
	for i, e := range entries {
		out.Requests[i] = queueEntryOf(e)
		if paused != nil {
			pausedEstimate(&out.Requests[i].Estimate, e.Request, *paused)
		}
	}
	return answer(out, nil)
}

func queueEntryOf(e admission.Entry) apiclient.QueueEntry {
	r, p := e.Request, e.Position
	if r.Status == bench.InProgress {
		p.Blocked = "" // it has started
	}
	return apiclient.QueueEntry{
		Position: p.Index + 1, ID: r.ID, Tag: r.Tag, Type: r.Type, Status: r.Status, PR: r.PR, Parent: r.Parent, CreatedAt: r.CreatedAt,
		Level: p.Level, Reason: p.Reason, Admissible: p.Admissible, Blocked: p.Blocked, Estimate: estimateFrom(e.Expected),
	}
}

func (s *admissionHandlers) queue(ctx context.Context, project string) ([]admission.Entry, bench.ProjectConfig, error) {
	p, err := s.project(ctx, project, http.StatusNotFound)
	if err != nil {
		return nil, bench.ProjectConfig{}, err
	}
	config, err := bench.ReadProjectConfig(p.Config)
	if err != nil {
		return nil, config, err
	}
	if waits, err := s.record.AnyAdmission(ctx, project); err != nil || !waits {
		return nil, config, err
	}
	snapshot, err := s.record.AdmissionSnapshot(ctx, project, s.OfflineAfter)
	return admission.View(snapshot, config, s.Now()), config, err
}

// estimateOf estimates start and end of a request; empty for one whose jobs are done.
func (s *admissionHandlers) estimateOf(ctx context.Context, r bench.Request) (apiclient.Estimate, error) {
	switch {
	case r.Status == bench.Completed || r.JobsDoneAt != nil:
		return apiclient.Estimate{}, nil
	case r.Type == bench.AdHoc:
		open, err := s.record.OpenJobCount(ctx)
		if err != nil {
			return apiclient.Estimate{}, err
		}
		if e, found := admission.Unforeseen(r, open); found {
			return estimateFrom(e), nil
		}
		snapshot, err := s.record.AdmissionSnapshot(ctx, r.Project, s.OfflineAfter)
		return estimateFrom(admission.ExpectAdHoc(snapshot, r, s.Now())), err
	}
	entries, _, err := s.queue(ctx, r.Project)
	for _, e := range entries {
		if e.Request.ID == r.ID {
			return estimateFrom(e.Expected), err
		}
	}
	return apiclient.Estimate{}, err // it has ended since
}

func estimateFrom(e admission.Expected) apiclient.Estimate {
	out := apiclient.Estimate{EstimateBasis: e.Basis}
	if !e.Start.IsZero() {
		out.EstimatedStart = &e.Start
	}
	if !e.End.IsZero() {
		out.EstimatedEnd = &e.End
	}
	return out
}

// placeOf returns a request's position in its project's admission; nil without one.
func (s *admissionHandlers) placeOf(ctx context.Context, r bench.Request) (*apiclient.QueueEntry, error) {
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

// pausedEstimate removes what is not known of a request while its project is paused.
func pausedEstimate(e *apiclient.Estimate, r bench.Request, p store.Pause) {
	e.EstimatedEnd, e.EstimateBasis = nil, diagnose.Pause{Who: p.By, Why: p.Reason}.Words(r.Project)
	if r.Status != bench.InProgress {
		e.EstimatedStart = nil
	}
}
