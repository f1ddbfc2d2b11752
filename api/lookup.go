package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// NamedRecord reads things named in paths and bodies. Each method returns
// store.ErrNotFound for an unknown name.
type NamedRecord interface {
	Project(ctx context.Context, name string) (store.Project, error)
	// Projects lists all projects by name.
	Projects(ctx context.Context) ([]store.Project, error)
	Request(ctx context.Context, id bench.RequestID) (bench.Request, error)
	RequestByTag(ctx context.Context, project, tag string) (bench.Request, error)
	Job(ctx context.Context, key bench.JobKey) (bench.Job, error)
}

// lookup finds things by name. The problem of an unknown name lists the known ones, or
// says where to find them.
type lookup struct{ named NamedRecord }

// project reads a project. The problem of an unknown one has the given status.
func (l lookup) project(ctx context.Context, name string, unknown int) (store.Project, error) {
	p, err := l.named.Project(ctx, name)
	if !errors.Is(err, store.ErrNotFound) {
		return p, err
	}
	all, err := l.named.Projects(ctx)
	if err != nil {
		return p, err
	}
	names := make([]string, len(all))
	for i, known := range all {
		names[i] = known.Name
	}
	return p, problemf(unknown, "unknown-project", "there is no project %q; the projects are %s; 'benchloom project apply' makes one", name, strings.Join(names, ", "))
}

// request reads a request by its ID or as project:tag.
func (l lookup) request(ctx context.Context, ref string) (bench.Request, error) {
	if project, tag, ok := strings.Cut(ref, ":"); ok {
		if _, err := l.project(ctx, project, http.StatusNotFound); err != nil {
			return bench.Request{}, err
		}
		r, err := l.named.RequestByTag(ctx, project, tag)
		if errors.Is(err, store.ErrNotFound) {
			return r, problemf(http.StatusNotFound, "unknown-request", "project %s has no request for %q; 'benchloom status --project %s' shows those it has", project, tag, project)
		}
		return r, err
	}
	id, err := bench.ParseRequestID(ref)
	if err != nil {
		return bench.Request{}, fmt.Errorf("%w; or name it as project:tag", err)
	}
	r, err := l.named.Request(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return r, problemf(http.StatusNotFound, "unknown-request", "there is no request %s; 'benchloom status' lists the latest", id)
	}
	return r, err
}

// job reads a job by its key.
func (l lookup) job(ctx context.Context, key string) (bench.Job, error) {
	parsed, err := bench.ParseJobKey(key)
	if err != nil {
		return bench.Job{}, err
	}
	j, err := l.named.Job(ctx, parsed)
	if errors.Is(err, store.ErrNotFound) {
		return j, problemf(http.StatusNotFound, "unknown-job", "there is no job %s; 'benchloom status REQUEST' lists a request's jobs", parsed)
	}
	return j, err
}
