package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// try asks for a build of a pull request.
func (b *bundle) try(t *testing.T, r apiclient.NewRequest) apiclient.Request {
	t.Helper()
	r.Project, r.Type = "go", bench.Try
	made, err := b.writer.CreateRequest(t.Context(), r)
	require.NoError(t, err)
	return made
}

func (b *bundle) ready(t *testing.T, request, tag, parent string) apiclient.Notified {
	t.Helper()
	n, err := b.writer.ArtifactsReady(t.Context(), request, apiclient.ArtifactsReady{Tag: tag, Parent: parent})
	require.NoError(t, err)
	return n
}

func TestArtifactsAreAnnouncedByIDOrByTag(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	b.register(t, "c1")
	first, second := b.try(t, apiclient.NewRequest{PR: 7}), b.try(t, apiclient.NewRequest{PR: 7, Tag: "t2"})
	require.Equal(t, bench.WaitingForArtifacts, first.Status)
	require.Equal(t, bench.WaitingForArtifacts, second.Status)

	n := b.ready(t, string(first.ID), "t1", "c1")
	require.Equal(t, "t1", n.Request.Tag)
	require.Equal(t, "c1", n.Request.Parent)
	require.Equal(t, bench.ArtifactsReady, n.Request.Status)
	require.False(t, n.Duplicate || n.Late)
	require.Equal(t, bench.ArtifactsReady, b.ready(t, "go:t2", "t2", "").Request.Status)
	require.Equal(t, []bench.RequestID{first.ID, second.ID}, b.workflows.notified)

	// Said again it changes nothing, but may be the first that reaches the workflow.
	again := b.ready(t, "go:t1", "t1", "c1")
	require.True(t, again.Duplicate)
	require.Equal(t, n.Request, again.Request)
	require.Equal(t, []bench.RequestID{first.ID, second.ID, first.ID}, b.workflows.notified)
	require.Equal(t, []bench.RequestID{first.ID, second.ID}, b.workflows.started)
}

func TestInvalidNotificationsAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	b.register(t, "c1")
	one, other := b.try(t, apiclient.NewRequest{Tag: "t1"}), b.try(t, apiclient.NewRequest{})
	adhoc, err := b.writer.CreateRequest(t.Context(), apiclient.NewRequest{Project: "go", Type: bench.AdHoc, Tag: "x"})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		request, tag, parent string
		status               int
		says                 string
	}{
		"another artifact":  {string(one.ID), "t9", "", 409, "its artifact is t1, not t9"},
		"another request's": {string(other.ID), "t1", "", 409, "artifact t1 is request " + string(one.ID) + "'s"},
		"unknown ID":        {"r2222222222", "t1", "", 404, "there is no request r2222222222"},
		"unknown tag":       {"go:t8", "t8", "", 404, `has no request for "t8"`},
		"its own parent":    {string(other.ID), "t3", "t3", 422, "cannot be its own parent"},
		"ad hoc":            {string(adhoc.ID), "x", "", 422, "it waits for no artifacts"},
		"no tag at all":     {string(other.ID), "", "", 422, "tag"},
		"a tag that is one": {string(other.ID), "t/../1", "", 422, "tag"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := b.writer.ArtifactsReady(t.Context(), c.request, apiclient.ArtifactsReady{Tag: c.tag, Parent: c.parent})
			p := problemOf(t, err)
			require.Equal(t, c.status, p.Status)
			require.ErrorContains(t, err, c.says)
		})
	}
	require.Empty(t, b.workflows.notified)
	_, err = b.reader.ArtifactsReady(t.Context(), string(one.ID), apiclient.ArtifactsReady{Tag: "t1"})
	require.Equal(t, 403, problemOf(t, err).Status)
}

// CI systems deliver late: whatever it says, a request that has ended stays as it
// is, and no workflow is told, let alone started.
func TestANotificationAYearAfterTheEndStartsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.project(t)
	b.register(t, "c1")
	r := b.try(t, apiclient.NewRequest{PR: 7})
	b.ready(t, string(r.ID), "t1", "c1")
	require.NoError(t, b.store.CompleteRequest(t.Context(), r.ID, bench.Success, "c1", nil, "done"))
	b.past(t, `update benchmark_request set created_at = created_at - interval '1 year', completed_at = completed_at - interval '1 year', jobs_done_at = jobs_done_at - interval '1 year'`)
	b.past(t, `update artifact_notice set first_at = first_at - interval '1 year', last_at = last_at - interval '1 year'`)
	before, err := b.store.Request(t.Context(), r.ID)
	require.NoError(t, err)
	b.workflows.notified, b.workflows.started = nil, nil

	for _, c := range []struct{ request, tag, parent string }{
		{string(r.ID), "t1", "c1"}, {"go:t1", "t1", ""}, {string(r.ID), "t2", "c2"},
	} {
		n := b.ready(t, c.request, c.tag, c.parent)
		require.True(t, n.Late)
		require.Equal(t, bench.Completed, n.Request.Status)
	}
	after, err := b.store.Request(t.Context(), r.ID)
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.Empty(t, b.workflows.notified)
	require.Empty(t, b.workflows.started)
	listed, err := b.store.Requests(t.Context(), store.RequestFilter{Project: "go", Limit: 10})
	require.NoError(t, err)
	require.Len(t, listed, 1)
}

// A newer build of a pull request ends those that still wait, where the project
// says so, and no others.
func TestANewerBuildSupersedesWaitingOnes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.project(t)
	b.register(t, "c1")
	kept := b.try(t, apiclient.NewRequest{PR: 7})
	b.try(t, apiclient.NewRequest{PR: 7})
	require.Empty(t, b.workflows.cancelled, "both may wait")

	p.Config.Queue.Supersede = true
	_, err := b.admin.ApplyProject(t.Context(), p, false)
	require.NoError(t, err)
	require.NoError(t, b.store.CompleteRequest(t.Context(), kept.ID, bench.Success, "", nil, "done"))
	other := b.try(t, apiclient.NewRequest{PR: 8})
	running := b.try(t, apiclient.NewRequest{PR: 9, Tag: "t9", ArtifactsReady: true})
	_, err = b.store.Admit(t.Context(), "go", 1, func([]bench.Request, map[string]bool) (store.Admission, error) {
		return store.Admission{Next: []bench.RequestID{running.ID}}, nil
	})
	require.NoError(t, err)
	b.try(t, apiclient.NewRequest{PR: 9})
	newer := b.try(t, apiclient.NewRequest{PR: 7, IdempotencyKey: "newer"})
	require.Len(t, b.workflows.cancelled, 1)
	for id := range b.workflows.cancelled {
		r, err := b.store.Request(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, 7, r.PR)
		require.Equal(t, bench.Cancelled, r.Outcome)
		require.Equal(t, "cancelled by benchloom: superseded by "+string(newer.ID)+", a newer build of #7", r.Message)
	}
	for _, id := range []bench.RequestID{other.ID, running.ID, kept.ID, newer.ID} {
		r, err := b.store.Request(t.Context(), id)
		require.NoError(t, err)
		require.NotEqual(t, bench.Cancelled, r.Outcome)
	}
	b.try(t, apiclient.NewRequest{PR: 7, IdempotencyKey: "newer"})
	require.Len(t, b.workflows.cancelled, 1, "asked for again it ends nobody")
}
