package pages

import (
	"context"
	"slices"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// projectAPI backs the project page, and looks at its commits.
type projectAPI interface {
	Project(ctx context.Context, name string) (apiclient.Project, error)
	SyncProject(ctx context.Context, project string) (apiclient.SourceState, error)
}

func (p *Pages) projectPages() []page {
	return []page{
		{pattern: "/projects/{project}", parameters: []string{showParameter, "type", "tag", pageParameter}, show: p.project},
		{pattern: "/audit", parameters: []string{"project", "who", "subject", pageParameter}, show: p.audit},
	}
}

func projectLink(name string) link { return link{"/projects/" + segments(name), name} }

// listedRequests bounds a page of requests.
const listedRequests = 50

type projectView struct {
	apiclient.Project
	Queue    apiclient.Queue
	Requests apiclient.RequestList
	// Show and Type narrow the requests.
	Show, Type      string
	Statuses, Types []string
	Act             act
}

var (
	requestStatuses = []string{"waiting_for_artifacts", "artifacts_ready", "in_progress", "completed"}
	requestTypes    = []string{"release", "master", "try", "adhoc"}
)

// project shows one project: its source, its order, and its requests.
func (p *Pages) project(v *visit) (*view, error) {
	name := v.PathValue("project")
	revision, err := v.api.Revision(v.Context(), apiclient.SubjectService)
	if err != nil {
		return nil, err
	}
	shown := &view{
		template: "project", Title: name, Live: revision.Subject, Revision: revision.Revision,
		APIPath: "/api/v1/projects/" + segments(name), Command: quoted("benchloom", "status", "--project", name),
	}
	out := projectView{Show: v.get(showParameter), Type: v.get("type"), Statuses: requestStatuses, Types: requestTypes}
	switch {
	case out.Show != "" && !slices.Contains(requestStatuses, out.Show):
		return nil, badParameter(showParameter, out.Show, "it may be "+joined(requestStatuses))
	case out.Type != "" && !slices.Contains(requestTypes, out.Type):
		return nil, badParameter("type", out.Type, "it may be "+joined(requestTypes))
	}
	if out.Project, err = v.api.Project(v.Context(), name); err != nil {
		return nil, err
	}
	if out.Queue, err = v.api.Queue(v.Context(), name); err != nil {
		return nil, err
	}
	out.Requests, err = v.api.Requests(v.Context(), apiclient.RequestQuery{
		Project: name, Status: bench.RequestStatus(out.Show), Type: bench.RequestType(out.Type), Tag: v.get("tag"), Limit: listedRequests, Cursor: v.get(pageParameter),
	})
	if err != nil {
		return nil, err
	}
	if out.SourceState != nil {
		out.Act, err = p.offer(v, rightToWrite, name, act{
			Name: "sync", Title: "Look for commits now", About: "Reads the repository at once instead of at the next turn.",
			Address: "/projects/" + segments(name) + "/sync", Command: quoted("benchloom", "project", "sync", name),
		})
	}
	shown.Content = out
	return shown, err
}

func (p *Pages) projectActions() []action {
	return []action{{"/projects/{project}/sync", func(v *visit) (string, error) {
		name := v.PathValue("project")
		_, err := v.api.SyncProject(v.Context(), name)
		return "/projects/" + segments(name), err
	}}}
}

type auditView struct {
	apiclient.AuditList
	Project, Who, Subject string
}

// listedOperations bounds a page of the audit.
const listedOperations = 100

// audit lists who did what, and why.
func (p *Pages) audit(v *visit) (*view, error) {
	out := auditView{Project: v.get("project"), Who: v.get("who"), Subject: v.get("subject")}
	var err error
	out.AuditList, err = v.api.Audit(v.Context(), apiclient.AuditQuery{Project: out.Project, Who: out.Who, Subject: out.Subject, Limit: listedOperations, Cursor: v.get(pageParameter)})
	return &view{template: "audit", Title: "Audit", Area: "/audit", APIPath: "/api/v1/audit", Command: "benchloom audit", Content: out}, err
}
