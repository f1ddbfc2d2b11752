package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// Watcher manages the Schedules that look at projects' commits. Handlers call it under no
// lock; it is never nil. The reconciliation repeats the first two calls when they fail.
type Watcher interface {
	WatchProject(ctx context.Context, project string, every time.Duration) error
	UnwatchProject(ctx context.Context, project string) error
	SyncProject(ctx context.Context, project string) error
}

func (s *projectHandlers) registerCommits() {
	handle(s.base, operation{id: "list-commits", method: http.MethodGet, path: "/projects/{project}/commits", need: toRead, tag: "projects",
		summary: "List a project's commits with their requests, newest first"}, s.listCommits)
	handle(s.base, operation{id: "sync-project", method: http.MethodPost, path: "/projects/{project}/sync", need: toWrite, scope: ofProject, audit: "project sync", tag: "projects",
		summary: "Look at a project's commits now", description: "Answers before the look has ended, with the state before it. Meant for a push notification."}, s.syncProject)
}

type listCommits struct {
	Project string `path:"project" doc:"Name of the project." example:"go"`
	Limit   int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
}

func (s *projectHandlers) listCommits(ctx context.Context, in *listCommits) (*body[apiclient.CommitList], error) {
	p, err := s.project(ctx, in.Project, http.StatusNotFound)
	if err != nil {
		return nil, err
	}
	config, err := bench.ReadProjectConfig(p.Config)
	if err != nil {
		return nil, fmt.Errorf("project %s: %w; apply a corrected configuration", p.Name, err)
	}
	list := apiclient.CommitList{Commits: []apiclient.Commit{}}
	if list.Source, err = s.sourceOf(ctx, p.Name, config); err != nil {
		return nil, err
	}
	stored, err := s.record.RecentCommits(ctx, p.Name, in.Limit)
	if err != nil {
		return nil, err
	}
	for _, c := range stored {
		list.Commits = append(list.Commits, commitOf(c))
	}
	return answer(list, nil)
}

// sourceOf returns the state of a project's source; nil when it has none.
func (s *projectHandlers) sourceOf(ctx context.Context, project string, config bench.ProjectConfig) (*apiclient.SourceState, error) {
	if !config.Source.Configured() {
		return nil, nil
	}
	state, err := s.record.SourceState(ctx, project)
	if err != nil {
		return nil, err
	}
	out := &apiclient.SourceState{
		Repository: config.Source.Git, Branch: config.Source.BranchName(), LastOKAt: state.LastOKAt, FailingSince: state.FailingSince,
		Message: state.Message, WorkflowID: bench.WatchWorkflowID(project),
	}
	if state.Repository == config.Source.Git {
		out.Head = state.Head
	}
	return out, nil
}

func (s *projectHandlers) syncProject(ctx context.Context, in *projectPath) (*body[apiclient.SourceState], error) {
	p, err := s.project(ctx, in.Project, http.StatusNotFound)
	if err != nil {
		return nil, err
	}
	config, err := bench.ReadProjectConfig(p.Config)
	if err != nil {
		return nil, fmt.Errorf("project %s: %w; apply a corrected configuration", p.Name, err)
	}
	if !config.Source.Configured() {
		return nil, problemf(http.StatusConflict, "no-source", "project %s names no repository, so there are no commits to look at; set source.git in its file and apply it with 'benchloom project apply'", p.Name)
	}
	state, err := s.sourceOf(ctx, p.Name, config)
	if err != nil {
		return nil, err
	}
	bound, stop := context.WithTimeout(ctx, reachBound)
	defer stop()
	// The Schedule may not exist yet, or be lost.
	err = s.watcher.WatchProject(bound, p.Name, config.Source.Interval())
	if err = errors.Join(err, s.watcher.SyncProject(bound, p.Name)); err != nil {
		s.Log.WarnContext(ctx, "could not look at a project's commits", "project", p.Name, "error", err, "request_id", requestID(ctx))
		return nil, problemf(http.StatusServiceUnavailable, "not-ready", "Temporal does not answer, so project %s cannot be looked at now; its commits are looked at every %s once it does", p.Name, config.Source.Interval())
	}
	return answer(*state, nil)
}

// sourceBefore returns the commit source of a project before it is applied; zero for a
// new project, or one with an invalid configuration.
func (s *projectHandlers) sourceBefore(ctx context.Context, project string) (bench.CommitSource, error) {
	p, err := s.named.Project(ctx, project)
	if errors.Is(err, store.ErrNotFound) {
		return bench.CommitSource{}, nil
	}
	if err != nil {
		return bench.CommitSource{}, err
	}
	config, err := bench.ReadProjectConfig(p.Config)
	if err != nil {
		return bench.CommitSource{}, nil //nolint:nilerr // it is being replaced
	}
	return config.Source, nil
}

// watch brings a project's Schedule in line with the configuration just applied. If
// Temporal is unavailable, the reconciliation does so later.
func (s *projectHandlers) watch(ctx context.Context, project string, before, now bench.CommitSource) {
	if reflect.DeepEqual(before, now) {
		return
	}
	s.reach(ctx, "change the schedule of a project's commits", bench.WatchWorkflowID(project), func(ctx context.Context) error {
		if !now.Configured() {
			return s.watcher.UnwatchProject(ctx, project)
		}
		if err := s.watcher.WatchProject(ctx, project, now.Interval()); err != nil || !before.Configured() {
			return err // a new Schedule looks at once
		}
		return s.watcher.SyncProject(ctx, project)
	})
}

func commitOf(c store.CommitRequest) apiclient.Commit {
	out := apiclient.Commit{
		SHA: c.SHA, Parent: c.Parent, Subject: c.Subject, Author: c.Author, CommittedAt: c.CommittedAt, FirstSeenAt: c.FirstSeenAt,
		OnBranch: c.OnBranch, Skipped: c.Skipped,
	}
	if c.RequestID != "" {
		out.Request = &apiclient.CommitRequest{ID: c.RequestID, Status: c.RequestStatus, Outcome: c.Outcome}
	}
	return out
}
