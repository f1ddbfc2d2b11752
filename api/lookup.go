package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/benchloom/benchloom/internal/apiclient"
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
	// CommitsLike lists the tags of a project that are commit hashes and begin with a prefix, a few at most. A tag that is the
	// prefix itself, of whatever kind, is listed alone.
	CommitsLike(ctx context.Context, project, prefix string) ([]string, error)
	// RequestedTags lists the tags of a project's newest tracked requests.
	RequestedTags(ctx context.Context, project string) ([]string, error)
}

// lookup finds things by name. The problem of an unknown name lists the known ones, or
// says where to find them. It refuses what belongs to a project that the caller's token may not
// change.
type lookup struct{ named NamedRecord }

// project reads a project. The problem of an unknown one has the given status.
func (l lookup) project(ctx context.Context, name string, unknown int) (store.Project, error) {
	if err := mayChange(ctx, name); err != nil {
		return store.Project{}, err
	}
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

// abbreviation matches what may be an abbreviated commit hash: at least as long as git writes it.
var abbreviation = regexp.MustCompile(`^[0-9a-f]{7,63}$`)

// tag returns the tag that a person means: a commit hash may be abbreviated. A tag that the project does not know is
// returned as it is.
func (l lookup) tag(ctx context.Context, project, given string) (string, error) {
	if !abbreviation.MatchString(given) {
		return given, nil
	}
	known, err := l.named.CommitsLike(ctx, project, given)
	switch {
	case err != nil:
		return "", err
	case len(known) == 0:
		return given, nil
	case len(known) > 1:
		return "", problemf(http.StatusConflict, "ambiguous-commit", "%q stands for several commits of project %s: %s; write more of its characters", given, project, strings.Join(known, ", "))
	}
	return known[0], nil
}

// tags replaces abbreviated commit hashes; empty tags stay empty.
func (l lookup) tags(ctx context.Context, project string, given ...*string) error {
	for _, t := range given {
		var err error
		if *t, err = l.tag(ctx, project, *t); err != nil {
			return err
		}
	}
	return nil
}

// request reads a request by its ID or as project:tag.
func (l lookup) request(ctx context.Context, ref string) (bench.Request, error) {
	if project, tag, ok := strings.Cut(ref, ":"); ok {
		if _, err := l.project(ctx, project, http.StatusNotFound); err != nil {
			return bench.Request{}, err
		}
		tag, err := l.tag(ctx, project, tag)
		if err != nil {
			return bench.Request{}, err
		}
		r, err := l.named.RequestByTag(ctx, project, tag)
		if errors.Is(err, store.ErrNotFound) {
			return r, l.unknownTag(ctx, project, tag)
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
	if err == nil {
		err = mayChange(ctx, r.Project)
	}
	return r, err
}

// offered bounds the names that are offered instead of an unknown one.
const offered = 5

// unknownTag returns the problem of a tag without a request. It offers the tags that may have
// been meant.
func (l lookup) unknownTag(ctx context.Context, project, tag string) error {
	known, err := l.named.RequestedTags(ctx, project)
	if err != nil {
		return err
	}
	p := problemf(http.StatusNotFound, "unknown-request", "project %s has no request for %.200q; 'benchloom status --project %s' shows those it has", project, tag, project)
	for _, name := range bench.Nearest(tag, known, offered) {
		p.Errors = append(p.Errors, &huma.ErrorDetail{Location: apiclient.LocationNearest, Message: project + ":" + name})
	}
	return p
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
	if err == nil {
		err = mayChange(ctx, j.Project)
	}
	return j, err
}
