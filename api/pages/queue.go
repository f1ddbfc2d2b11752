package pages

import (
	"cmp"
	"context"
	"net/http"

	"github.com/benchloom/benchloom/internal/apiclient"
)

// queueAPI backs the queue pages, and pauses and resumes projects.
type queueAPI interface {
	Queue(ctx context.Context, project string) (apiclient.Queue, error)
	Shares(ctx context.Context, by, name string) (apiclient.Shares, error)
	PauseQueue(ctx context.Context, project string, act apiclient.Act) (apiclient.Operation, error)
	ResumeQueue(ctx context.Context, project string, act apiclient.Act) (apiclient.Operation, error)
}

// byParameter says whose shares are shown.
const byParameter = "by"

var shareOwners = []string{"queue", "user", "host", "pool"}

func (p *Pages) queuePages() []page {
	return []page{
		{pattern: "/queues", parameters: []string{byParameter, sortParameter}, show: p.queues},
		{pattern: "/projects/{project}/queue", show: p.projectQueue},
	}
}

// shownRequests bounds the requests of one project's order that are shown.
const shownRequests = 200

// queueView is the order of one project's requests.
type queueView struct {
	apiclient.Queue
	// Left counts the requests that are not shown.
	Left int
	Act  act
}

type queuesView struct {
	// Orders of the projects whose requests wait or that are paused; Idle names
	// the others.
	Orders []queueView
	Idle   []string
	Shares apiclient.Shares
	By     string
	Owners []string
	Order  order
}

// queues shows whose turn it is: in each project, and among queues, users, hosts and pools.
func (p *Pages) queues(v *visit) (*view, error) {
	shown := &view{template: "queues", Title: "Queues", Area: "/queues", Live: apiclient.SubjectService, APIPath: "/api/v1/shares", Command: "benchloom queue show"}
	revision, err := v.api.Revision(v.Context(), shown.Live)
	if err != nil {
		return nil, err
	}
	shown.Revision = revision.Revision
	out := queuesView{By: cmp.Or(v.get(byParameter), shareOwners[0]), Owners: shareOwners}
	projects, err := v.api.Projects(v.Context())
	if err != nil {
		return nil, err
	}
	for _, project := range projects {
		if project.Name == apiclient.AdHocProject {
			continue // its requests need no admission
		}
		one, err := p.order(v, project.Name)
		if err != nil {
			return nil, err
		}
		if len(one.Requests) == 0 && one.Paused == "" {
			out.Idle = append(out.Idle, project.Name)
			continue
		}
		out.Orders = append(out.Orders, one)
	}
	out.Shares, err = v.api.Shares(v.Context(), out.By, "")
	if problem := problemIf(err, http.StatusUnprocessableEntity); problem != nil {
		return nil, badParameter(byParameter, out.By, "it may be "+joined(shareOwners))
	}
	if err != nil {
		return nil, err
	}
	out.Order, err = sorted(v, out.Shares.Shares,
		by("name", func(s apiclient.Share) string { return s.Name }),
		by("due", func(s apiclient.Share) float64 { return value(s.Share) }),
		by("received", func(s apiclient.Share) float64 { return value(s.Received) }),
		by("waiting", func(s apiclient.Share) int { return s.Queued + s.HandedOut }),
		by("running", func(s apiclient.Share) int { return s.Running }),
		by("wait", func(s apiclient.Share) float64 { return value(s.WaitMedian) }),
	)
	shown.Content = out
	return shown, err
}

func value(f *float64) float64 {
	if f == nil {
		return -1
	}
	return *f
}

// projectQueue shows the order of one project's requests.
func (p *Pages) projectQueue(v *visit) (*view, error) {
	project := v.PathValue("project")
	revision, err := v.api.Revision(v.Context(), apiclient.SubjectService)
	if err != nil {
		return nil, err
	}
	out, err := p.order(v, project)
	return &view{
		template: "queue", Title: "Order of requests of " + project, Crumbs: []link{projectLink(project)}, Live: revision.Subject, Revision: revision.Revision,
		APIPath: "/api/v1/projects/" + segments(project) + "/queue", Command: quoted("benchloom", "queue", "show", project), Content: out,
	}, err
}

// order reads the order of a project's requests.
func (p *Pages) order(v *visit, project string) (queueView, error) {
	queue, err := v.api.Queue(v.Context(), project)
	if err != nil {
		return queueView{}, err
	}
	out := queueView{Queue: queue}
	if n := len(queue.Requests); n > shownRequests {
		out.Requests, out.Left = queue.Requests[:shownRequests], n-shownRequests
	}
	base := "/projects/" + segments(project) + "/queue/"
	one := act{
		Name: "pause-" + project, Title: "Pause", About: "Nothing of the project is admitted or handed out any more; what was handed out goes on.", NeedsReason: true,
		Address: base + "pause", Command: quoted("benchloom", "queue", "pause", project, "--reason", "WHY"),
	}
	if queue.Paused != "" {
		one = act{
			Name: "resume-" + project, Title: "Resume", About: "Requests are admitted and jobs handed out again.",
			Address: base + "resume", Command: quoted("benchloom", "queue", "resume", project),
		}
	}
	out.Act, err = p.offer(v, rightToAdmin, project, one)
	return out, err
}

func (p *Pages) queueActions() []action {
	on := func(name string, do func(v *visit, project string) (apiclient.Operation, error)) action {
		return action{"/projects/{project}/queue/" + name, func(v *visit) (string, error) {
			project := v.PathValue("project")
			_, err := do(v, project)
			return "/projects/" + segments(project) + "/queue", err
		}}
	}
	return []action{
		on("pause", func(v *visit, project string) (apiclient.Operation, error) {
			return v.api.PauseQueue(v.Context(), project, v.sent())
		}),
		on("resume", func(v *visit, project string) (apiclient.Operation, error) {
			return v.api.ResumeQueue(v.Context(), project, v.sent())
		}),
	}
}
