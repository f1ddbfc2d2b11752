package pages

import (
	"context"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

type overviewAPI interface {
	Projects(ctx context.Context) ([]apiclient.Project, error)
	Requests(ctx context.Context, q apiclient.RequestQuery) (apiclient.RequestList, error)
}

func (p *Pages) overviewPages() []page {
	return []page{{pattern: "/", show: p.overview}}
}

const (
	// shownRunning bounds the requests in progress on the overview.
	shownRunning = 25
	// shownLatest bounds its newest requests.
	shownLatest = 25
)

type overviewView struct {
	Projects        []apiclient.Project
	Running, Latest []apiclient.Request
}

// overview shows what happens in the whole service.
func (p *Pages) overview(v *visit) (*view, error) {
	out := &view{template: "overview", Title: "Overview", Area: "/", Live: apiclient.SubjectService, APIPath: "/api/v1/requests", Command: "benchloom status"}
	now, err := v.api.Revision(v.Context(), out.Live)
	if err != nil {
		return nil, err
	}
	out.Revision = now.Revision
	var shown overviewView
	if shown.Projects, err = v.api.Projects(v.Context()); err != nil {
		return nil, err
	}
	running, err := v.api.Requests(v.Context(), apiclient.RequestQuery{Status: bench.InProgress, Limit: shownRunning})
	if err != nil {
		return nil, err
	}
	latest, err := v.api.Requests(v.Context(), apiclient.RequestQuery{Limit: shownLatest})
	shown.Running, shown.Latest = running.Requests, latest.Requests
	out.Content = shown
	return out, err
}
