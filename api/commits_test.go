package api_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/api"
	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// sourced applies the project go with a repository.
func (b *bundle) sourced(t *testing.T, source bench.CommitSource) apiclient.Project {
	t.Helper()
	s := packed(t, smallSuite)
	_, err := b.writer.PutSuite(t.Context(), s.Hash, s.Archive)
	require.NoError(t, err)
	applied, err := b.admin.ApplyProject(t.Context(), apiclient.Project{Name: "go", SuiteHash: s.Hash, Config: bench.ProjectConfig{Source: source}}, false)
	require.NoError(t, err)
	return applied.Project
}

func TestApplyingAProjectUpdatesItsSchedule(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	require.Empty(t, b.workflows.watched())

	one := 1
	source := bench.CommitSource{Git: "/srv/go", Every: "30s", Backfill: &one}
	p := b.sourced(t, source)
	require.Equal(t, []string{"watch go every 30s"}, b.workflows.watched(), "a new Schedule looks at once")
	require.Equal(t, &apiclient.SourceState{Repository: "/srv/go", Branch: "main", WorkflowID: "commits/go"}, p.SourceState)

	// Nothing changes; something else changes.
	b.sourced(t, source)
	p.Config.MaxJobFails = 2
	_, err := b.admin.ApplyProject(t.Context(), p, false)
	require.NoError(t, err, "what was read can be applied")
	require.Empty(t, b.workflows.watched())

	// A dry run touches nothing.
	p.Config.Source.Git = "/srv/other"
	_, err = b.admin.ApplyProject(t.Context(), p, true)
	require.NoError(t, err)
	require.Empty(t, b.workflows.watched())
	_, err = b.admin.ApplyProject(t.Context(), p, false)
	require.NoError(t, err)
	require.Equal(t, []string{"watch go every 30s", "sync go"}, b.workflows.watched(), "another repository is looked at now")

	// Where Temporal is away, the project is applied all the same.
	b.workflows.err = errors.New("away")
	b.project(t)
	require.Equal(t, []string{"unwatch go"}, b.workflows.watched())
	read, err := b.nobody.Project(t.Context(), "go")
	require.NoError(t, err)
	require.Nil(t, read.SourceState)

	_, err = b.admin.ApplyProject(t.Context(), apiclient.Project{Name: "go", Config: bench.ProjectConfig{Source: bench.CommitSource{Git: "../here"}}}, false)
	require.ErrorContains(t, err, `project go: source.git "../here": write an absolute path`)
}

func TestCommitsAreListedWithTheirRequests(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	list, err := b.nobody.Commits(t.Context(), "go", 0)
	require.NoError(t, err)
	require.Equal(t, apiclient.CommitList{Commits: []apiclient.Commit{}}, list)

	b.sourced(t, bench.CommitSource{Git: "/srv/go"})
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	_, err = b.store.RecordCommits(t.Context(), "go", []store.Commit{
		{SHA: "bbb", Parent: "aaa", CommittedAt: at, Author: "Ada", Subject: "second"}, {SHA: "aaa", CommittedAt: at, Author: "Ada", Subject: "first", Skipped: true},
	})
	require.NoError(t, err)
	id, err := bench.ParseRequestID("rabcdefghjk")
	require.NoError(t, err)
	_, _, err = b.store.CreateRequest(t.Context(), bench.Request{ID: id, Project: "go", Type: bench.Master, Tag: "bbb", Submission: bench.Submission{Submitter: "commit-source"}})
	require.NoError(t, err)
	require.NoError(t, b.store.RecordPoll(t.Context(), store.SourceState{Project: "go", Repository: "/srv/go", Head: "bbb"}))
	_, err = b.store.RecordFailedPoll(t.Context(), "go", "it is gone")
	require.NoError(t, err)

	list, err = b.nobody.Commits(t.Context(), "go", 0)
	require.NoError(t, err)
	require.Len(t, list.Commits, 2)
	require.NotZero(t, list.Commits[0].FirstSeenAt)
	list.Commits[0].FirstSeenAt = time.Time{}
	require.Equal(t, apiclient.Commit{
		SHA: "bbb", Parent: "aaa", Subject: "second", Author: "Ada", CommittedAt: at, OnBranch: true,
		Request: &apiclient.CommitRequest{ID: id, Status: bench.ArtifactsReady},
	}, list.Commits[0])
	require.Nil(t, list.Commits[1].Request)
	require.True(t, list.Commits[1].Skipped)
	require.Equal(t, "bbb", list.Source.Head)
	require.Equal(t, "it is gone", list.Source.Message)
	require.NotNil(t, list.Source.FailingSince)
	require.NotNil(t, list.Source.LastOKAt)

	list, err = b.nobody.Commits(t.Context(), "go", 1)
	require.NoError(t, err)
	require.Len(t, list.Commits, 1)
	_, err = b.nobody.Commits(t.Context(), "rust", 0)
	require.ErrorIs(t, err, apiclient.ErrNotFound)
}

func TestAProjectIsLookedAtNow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	_, err := b.writer.SyncProject(t.Context(), "go")
	require.Equal(t, http.StatusConflict, problemOf(t, err).Status)
	require.ErrorContains(t, err, "project go names no repository")

	b.sourced(t, bench.CommitSource{Git: "/srv/go"})
	b.workflows.watched()
	state, err := b.writer.SyncProject(t.Context(), "go")
	require.NoError(t, err)
	require.Equal(t, "/srv/go", state.Repository)
	require.Equal(t, []string{"watch go every 1m0s", "sync go"}, b.workflows.watched())

	r := b.send(t, api.RoleReader, http.MethodPost, "/api/v1/projects/go/sync", "{}")
	require.Equal(t, http.StatusForbidden, r.status)
	_, err = b.writer.SyncProject(t.Context(), "rust")
	require.ErrorIs(t, err, apiclient.ErrNotFound)
	b.workflows.err = errors.New("away")
	_, err = b.writer.SyncProject(t.Context(), "go")
	require.ErrorContains(t, err, "Temporal does not answer, so project go cannot be looked at now")
}
