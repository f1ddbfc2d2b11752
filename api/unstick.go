package api

import (
	"context"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/diagnose"
	"github.com/benchloom/benchloom/internal/diagnose/inspect"
)

type unstickRequest struct {
	Request string `path:"request" doc:"ID of the request, or project:tag of its artifact." example:"go:1.26.0"`
	Body    apiclient.Unstick
}

func (s *requestHandlers) unstickRequest(ctx context.Context, in *unstickRequest) (*body[apiclient.Unstuck], error) {
	r, err := s.request(ctx, in.Request)
	if err != nil {
		return nil, err
	}
	repaired, err := s.inspector.Unstick(ctx, r, inspect.Repairs{By: caller(ctx).Owner, DryRun: in.Body.DryRun, Force: in.Body.Force})
	if err != nil {
		return nil, err
	}
	out := apiclient.Unstuck{Request: requestOf(r), Findings: make([]apiclient.Finding, len(repaired))}
	for i, one := range repaired {
		found := findingOf(one.Finding)
		found.Repaired = one.Tried && one.Err == nil
		if one.Err != nil {
			found.RepairError = one.Err.Error()
		}
		out.Findings[i] = found
	}
	return answer(out, nil)
}

func findingOf(f diagnose.Finding) apiclient.Finding {
	found := apiclient.Finding{Subject: f.Subject, What: f.What, Stuck: f.Stuck, Remedy: f.Remedy, Repair: string(f.Repair)}
	if !f.Since.IsZero() {
		found.Since = &f.Since
	}
	return found
}
