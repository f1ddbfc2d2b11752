package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

// A page that is looked at asks for its revision: whatever the page shows must change it,
// and nothing else may.
func TestRevisionsChangeWithWhatTheyStandFor(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	ctx := t.Context()
	request := r.inProgress(release(t, "1.26.0"))
	other := r.create(release(t, "1.27.0"))

	revisions := func() [3]string {
		service, err := r.ServiceRevision(ctx, offline.Seconds())
		require.NoError(t, err)
		mine, err := r.RequestRevision(ctx, request.ID)
		require.NoError(t, err)
		others, err := r.RequestRevision(ctx, other.ID)
		require.NoError(t, err)
		return [3]string{service, mine, others}
	}
	before := revisions()
	require.Equal(t, before, revisions(), "nothing has happened")
	for _, step := range []struct {
		what    string
		do      func()
		changes [3]bool // service, the request, another of its project
	}{
		{"a message", func() { require.NoError(t, r.SetRequestMessage(ctx, request.ID, "waiting")) }, [3]bool{true, true, false}},
		{"a message of another", func() { require.NoError(t, r.SetRequestMessage(ctx, other.ID, "behind 1.26.0")) }, [3]bool{true, false, true}},
		{"a pause", func() {
			_, err := r.PauseQueue(ctx, project, store.Act{Who: "ada", Reason: "why"})
			require.NoError(t, err)
		}, [3]bool{true, true, true}},
		{"its end, for which the other waits", func() {
			require.NoError(t, r.CompleteRequest(ctx, request.ID, bench.Success, "", nil, "done"))
		}, [3]bool{true, true, true}},
	} {
		step.do()
		after := revisions()
		for i, changes := range step.changes {
			require.Equal(t, changes, before[i] != after[i], "%s: %d", step.what, i)
		}
		before = after
	}

	// Of many commands only those in Temporal and the latest ends are read. Each step of one
	// changes the revision, and those of others do not.
	many, one := batch(t, 20), batch(t, 1)
	for _, b := range []bench.Request{many, one} {
		_, _, err := r.CreateCommands(ctx, b, lines(b, b.Batch))
		require.NoError(t, err)
	}
	told := map[string]bool{}
	quiet, err := r.RequestRevision(ctx, one.ID)
	require.NoError(t, err)
	of := `submitted_with = '` + string(many.ID) + `' and `
	for _, step := range []string{
		`handed_out_at = now(), status = 'handed_out' where ` + of + `place <= 3`,
		`started_at = now(), status = 'in_progress' where ` + of + `place = 1`,
		`status = 'success', completed_at = now() where ` + of + `place = 1`,
		`status = 'success', completed_at = now() - interval '1 minute' where ` + of + `place = 2`, // committed later than one that ended after it
		`status = 'queued' where ` + of + `place = 3`,
		`status = 'failure', completed_at = now() where ` + of + `place = 4`,
		`status = 'cancelled', completed_at = now() where ` + of + `status = 'queued'`,
	} {
		r.execute(`update job_queue set ` + step)
		revision, err := r.RequestRevision(ctx, many.ID)
		require.NoError(t, err)
		require.False(t, told[revision], step)
		told[revision] = true
		again, err := r.RequestRevision(ctx, many.ID)
		require.NoError(t, err)
		require.Equal(t, revision, again)
	}
	after, err := r.RequestRevision(ctx, one.ID)
	require.NoError(t, err)
	require.Equal(t, quiet, after)

	_, err = r.RequestRevision(ctx, newID(t))
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = r.JobRevision(ctx, "0123456789abcdef")
	require.ErrorIs(t, err, store.ErrNotFound)
}
