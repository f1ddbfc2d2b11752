package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

type artifactsReady struct {
	Request string `path:"request" doc:"ID of the request, or project:tag of its artifact." example:"r7k2m4q9xt2"`
	Body    apiclient.ArtifactsReady
}

func (s *requestHandlers) artifactsReady(ctx context.Context, in *artifactsReady) (*body[apiclient.Notified], error) {
	if err := bench.CheckTag(in.Body.Tag); err != nil {
		return nil, err
	}
	if in.Body.Parent != "" {
		if err := bench.CheckTag(in.Body.Parent); err != nil {
			return nil, fmt.Errorf("parent: %w", err)
		}
	}
	r, err := s.request(ctx, in.Request)
	if err != nil {
		return nil, err
	}
	if err := s.tags(ctx, r.Project, &in.Body.Parent); err != nil {
		return nil, err
	}
	if in.Body.Parent == in.Body.Tag {
		return nil, invalid("artifact %q cannot be its own parent; name the commit that it was made from", in.Body.Tag)
	}
	if r.Type == bench.AdHoc {
		return nil, invalid("request %s is ad hoc: it waits for no artifacts", r.ID)
	}
	project, err := s.project(ctx, r.Project, http.StatusNotFound)
	if err != nil {
		return nil, err
	}
	config, err := bench.ReadProjectConfig(project.Config)
	if err != nil {
		return nil, fmt.Errorf("project %s: %w; apply a corrected configuration", project.Name, err)
	}
	receipt, err := s.intake().ArtifactsReady(ctx, r, store.Notice{Tag: in.Body.Tag, Parent: in.Body.Parent}, config)
	if errors.Is(err, store.ErrConflict) {
		return nil, problemf(http.StatusConflict, "conflict", "request %s cannot have the artifact %s: %s; look at it with 'benchloom status %s'", r.ID, in.Body.Tag, plain(err), r.ID)
	}
	if err != nil {
		return nil, err
	}
	s.begin(ctx, receipt.Created)
	// Also for a repeated delivery: the first may not have reached the workflow.
	if now := receipt.Request; now.Status != bench.Completed && now.AdmittedAt == nil {
		s.reach(ctx, "tell a request that its artifacts are ready", now.Ref().WorkflowID(), func(ctx context.Context) error {
			return s.workflows.ArtifactsReady(ctx, now.Ref(), protocol.ArtifactsReady{Tag: now.Tag, Parent: now.Parent})
		})
	}
	return answer(apiclient.Notified{Request: requestOf(receipt.Request), Duplicate: receipt.Duplicate, Late: receipt.Late}, nil)
}

type listAdmissions struct {
	Project string `path:"project" example:"go"`
}

func (s *requestHandlers) listAdmissions(ctx context.Context, in *listAdmissions) (*body[apiclient.AdmissionList], error) {
	if _, err := s.project(ctx, in.Project, http.StatusNotFound); err != nil {
		return nil, err
	}
	stored, err := s.record.Admissions(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	list := apiclient.AdmissionList{Admissions: make([]apiclient.Admission, 0, len(stored))}
	for _, a := range stored {
		list.Admissions = append(list.Admissions, apiclient.Admission{Request: a.RequestID, Policy: a.Policy, At: a.At, State: a.State})
	}
	return answer(list, nil)
}
