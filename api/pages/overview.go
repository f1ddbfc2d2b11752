package pages

import (
	"context"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
)

// overviewAPI backs the overview.
type overviewAPI interface {
	Overview(ctx context.Context) (apiclient.Overview, error)
	Projects(ctx context.Context) ([]apiclient.Project, error)
	Requests(ctx context.Context, q apiclient.RequestQuery) (apiclient.RequestList, error)
}

func (p *Pages) overviewPages() []page {
	return []page{{pattern: "/", show: p.overview}}
}

const (
	// shownInProgress bounds the requests in progress on the overview.
	shownInProgress = 25
	// shownLatest bounds its newest requests.
	shownLatest = 15
)

type overviewView struct {
	apiclient.Overview
	Projects           []apiclient.Project
	InProgress, Latest []apiclient.Request
	// More is set when more requests are in progress than are shown.
	More bool
}

// overview shows what needs attention, what runs, and what was found last.
func (p *Pages) overview(v *visit) (*view, error) {
	out := &view{template: "overview", Title: "Overview", Area: "/", Live: apiclient.SubjectService, APIPath: "/api/v1/overview", Command: "benchloom status"}
	now, err := v.api.Revision(v.Context(), out.Live)
	if err != nil {
		return nil, err
	}
	out.Revision = now.Revision
	var shown overviewView
	if shown.Overview, err = v.api.Overview(v.Context()); err != nil {
		return nil, err
	}
	if shown.Projects, err = v.api.Projects(v.Context()); err != nil {
		return nil, err
	}
	running, err := v.api.Requests(v.Context(), apiclient.RequestQuery{Status: bench.InProgress, Limit: shownInProgress})
	if err != nil {
		return nil, err
	}
	latest, err := v.api.Requests(v.Context(), apiclient.RequestQuery{Limit: shownLatest})
	shown.InProgress, shown.More, shown.Latest = running.Requests, running.Next != "", latest.Requests
	out.Content = shown
	return out, err
}
