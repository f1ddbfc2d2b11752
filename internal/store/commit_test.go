package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/store"
)

var firstCommit = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// line returns a history of commits with these names, given the oldest first, an hour
// between two. It begins with the newest.
func line(parent string, names ...string) []store.Commit {
	var out []store.Commit
	for i, name := range names {
		c := store.Commit{SHA: name, Parent: parent, CommittedAt: firstCommit.Add(time.Duration(i) * time.Hour), Author: "Ada", Subject: "commit " + name}
		out = append([]store.Commit{c}, out...)
		parent = name
	}
	return out
}

func (r record) commits(history []store.Commit) []string {
	r.t.Helper()
	added, err := r.RecordCommits(r.t.Context(), project, history)
	require.NoError(r.t, err)
	return added
}

// listed returns all recorded commits as name@position, with - for those off the branch.
func (r record) listed() []string {
	r.t.Helper()
	all, err := r.RecentCommits(r.t.Context(), project, 500)
	require.NoError(r.t, err)
	var out []string
	for _, c := range all {
		text := fmt.Sprintf("%s@%d", c.SHA, c.Position)
		if !c.OnBranch {
			text = "-" + text
		}
		out = append(out, text)
	}
	return out
}

func master(t *testing.T, sha string) bench.Request {
	t.Helper()
	r := release(t, sha)
	r.Type = bench.Master
	return r
}

func TestCommitsAreRecordedOnce(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	require.Empty(t, r.commits(nil))
	require.Equal(t, []string{"b", "c"}, r.commits(line("a", "b", "c")), "the oldest first")
	require.Empty(t, r.commits(line("a", "b", "c")))
	before, err := r.Commit(t.Context(), project, "b")
	require.NoError(t, err)
	require.Equal(t, "a", before.Parent)
	require.Equal(t, "commit b", before.Subject)
	require.True(t, before.CommittedAt.Equal(firstCommit))
	require.True(t, before.OnBranch)
	require.NotZero(t, before.FirstSeenAt)

	// Newer, older and intermediate commits all fit in.
	require.Equal(t, []string{"d", "e"}, r.commits(line("b", "c", "d", "e")))
	require.Equal(t, []string{"z", "a"}, r.commits(line("y", "z", "a", "b")))
	require.Equal(t, []string{"e@4", "d@3", "c@2", "b@1", "a@0", "z@-1"}, r.listed())
	again, err := r.Commit(t.Context(), project, "b")
	require.NoError(t, err)
	require.Equal(t, before.FirstSeenAt, again.FirstSeenAt)

	_, err = r.Commit(t.Context(), project, "none")
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = r.RecordCommits(t.Context(), "unknown", line("", "a"))
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = r.RecordCommits(t.Context(), project, append(line("", "p"), line("", "q")...))
	require.ErrorIs(t, err, store.ErrConflict, "these are no line")
}

func TestMissingAncestorsEndAtMeasuredCommits(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.commits(line("gone", "a", "b", "c", "d", "e", "f"))
	missing := func(sha string, most int, since time.Time) []string {
		cs, err := r.MissingAncestors(t.Context(), project, sha, most, since)
		require.NoError(t, err)
		var out []string
		for _, c := range cs {
			out = append(out, c.SHA)
		}
		return out
	}
	long := firstCommit.AddDate(-1, 0, 0)
	require.Equal(t, []string{"e", "d", "c", "b", "a"}, missing("f", 100, long), "down to a parent that is not recorded")
	require.Equal(t, []string{"e", "d"}, missing("f", 2, long), "by count")
	require.Equal(t, []string{"e", "d"}, missing("f", 100, firstCommit.Add(3*time.Hour)), "by age: d itself still counts")
	require.Empty(t, missing("f", 0, long))
	require.Empty(t, missing("a", 100, long), "its parent is unknown")
	require.Empty(t, missing("unknown", 100, long))

	// A waiting request's commit is still missing; a completed one ends the list, even if
	// it was cancelled by a person.
	r.create(master(t, "d"))
	require.Equal(t, []string{"e", "d", "c", "b", "a"}, missing("f", 100, long))
	done := r.create(master(t, "b"))
	_, err := r.CancelRequest(t.Context(), done.ID, "ada", "no need")
	require.NoError(t, err)
	require.Equal(t, []string{"e", "d", "c"}, missing("f", 100, long))

	// Ad-hoc requests for the same artifact do not count.
	adhoc := release(t, "d")
	adhoc.Type = bench.AdHoc
	stored := r.create(adhoc)
	_, err = r.CancelRequest(t.Context(), stored.ID, "ada", "")
	require.NoError(t, err)
	require.Equal(t, []string{"e", "d", "c"}, missing("f", 100, long))
}

// Commits that were too old when the project began are never missing, unless they are
// requested.
func TestSkippedCommitsAreNotMissing(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	history := line("", "a", "b", "c", "d")
	history[2].Skipped, history[3].Skipped = true, true // b and a
	r.commits(history)
	missing := func() (out []string) {
		cs, err := r.MissingAncestors(t.Context(), project, "d", 100, firstCommit)
		require.NoError(t, err)
		for _, c := range cs {
			out = append(out, c.SHA)
		}
		return out
	}
	require.Equal(t, []string{"c"}, missing())
	r.commits(line("", "a", "b", "c", "d"))
	require.Equal(t, []string{"c"}, missing(), "seen again, it is as old as before")
	r.create(master(t, "b"))
	require.Equal(t, []string{"c", "b"}, missing())
}

func TestARewrittenBranchDeletesNothing(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.commits(line("", "a", "b", "c"))
	waiting := r.create(master(t, "b"))
	done := r.create(master(t, "c"))
	require.NoError(t, r.SetRequestMessage(t.Context(), waiting.ID, "number 1 of 1"))
	_, err := r.CancelRequest(t.Context(), done.ID, "ada", "no need")
	require.NoError(t, err)
	ended, err := r.Request(t.Context(), done.ID)
	require.NoError(t, err)

	r.commits(line("a", "x", "y", "z"))
	onBranch, err := r.CommitsOnBranch(t.Context(), project)
	require.NoError(t, err)
	require.Equal(t, "z", onBranch[0])
	require.Len(t, onBranch, 6)
	for range 2 { // once more changes nothing
		open, err := r.LeaveBranch(t.Context(), project, []string{"b", "c"})
		require.NoError(t, err)
		require.Equal(t, []bench.RequestID{waiting.ID}, open)
		got, err := r.Request(t.Context(), waiting.ID)
		require.NoError(t, err)
		require.Equal(t, bench.ArtifactsReady, got.Status, "nothing is cancelled")
		require.Equal(t, `number 1 of 1; the branch was rewritten and no longer holds this commit, which is measured all the same; use "benchloom request cancel `+string(waiting.ID)+`" if nobody wants it`, got.Message)
	}
	require.Equal(t, "z@4", r.listed()[0])
	require.ElementsMatch(t, []string{"z@4", "y@3", "-c@3", "x@2", "-b@2", "a@1"}, r.listed())
	got, err := r.Request(t.Context(), done.ID)
	require.NoError(t, err)
	require.Equal(t, ended.Message, got.Message, "what has ended keeps its message")

	// A message about waiting replaces only the former one.
	require.NoError(t, r.SetRequestMessage(t.Context(), waiting.ID, ""))
	got, err = r.Request(t.Context(), waiting.ID)
	require.NoError(t, err)
	require.Regexp(t, `^the branch was rewritten`, got.Message)

	// The commits return to the branch.
	require.Empty(t, r.commits(line("", "a", "b", "c")))
	require.NoError(t, r.SetRequestMessage(t.Context(), waiting.ID, "number 2 of 2"))
	got, err = r.Request(t.Context(), waiting.ID)
	require.NoError(t, err)
	require.Equal(t, "number 2 of 2", got.Message)
}

func TestCommitsAreListedWithTheirRequests(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	r.commits(line("", "a", "b", "c"))
	b := r.create(master(t, "b"))
	list, err := r.RecentCommits(t.Context(), project, 2)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, "c", list[0].SHA)
	require.Empty(t, list[0].RequestID)
	require.Equal(t, b.ID, list[1].RequestID)
	require.Equal(t, bench.ArtifactsReady, list[1].RequestStatus)
}

func TestASourceFailsSinceItsFirstFailure(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	state, err := r.SourceState(t.Context(), project)
	require.NoError(t, err)
	require.Equal(t, store.SourceState{Project: project}, state)

	first, err := r.RecordFailedPoll(t.Context(), project, "gone")
	require.NoError(t, err)
	require.NotNil(t, first.FailingSince)
	require.Nil(t, first.LastOKAt)
	second, err := r.RecordFailedPoll(t.Context(), project, "still gone")
	require.NoError(t, err)
	require.Equal(t, first.FailingSince, second.FailingSince)
	require.Equal(t, "still gone", second.Message)

	require.NoError(t, r.RecordPollInterval(t.Context(), project, time.Minute))
	require.NoError(t, r.RecordPoll(t.Context(), store.SourceState{Project: project, Repository: "/srv", Releases: "v*", Head: "c", Message: "remark"}))
	state, err = r.SourceState(t.Context(), project)
	require.NoError(t, err)
	require.Nil(t, state.FailingSince)
	require.NotNil(t, state.LastOKAt)
	state.LastOKAt = nil
	require.Equal(t, store.SourceState{Project: project, Repository: "/srv", Releases: "v*", Head: "c", Message: "remark", EverySeconds: 60}, state)

	// A failure keeps the state of the last successful poll.
	state, err = r.RecordFailedPoll(t.Context(), project, "gone")
	require.NoError(t, err)
	require.Equal(t, "c", state.Head)
	require.NotNil(t, state.LastOKAt)
	_, err = r.RecordFailedPoll(t.Context(), "unknown", "gone")
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestReleasesStayAsTheyWereFirstSeen(t *testing.T) {
	t.Parallel()
	r := newRecord(t)
	one := store.ReleaseTag{Tag: "v1.0", SHA: "a", TaggedAt: firstCommit}
	require.NoError(t, r.RecordReleases(t.Context(), project, []store.ReleaseTag{one}))
	require.NoError(t, r.RecordReleases(t.Context(), project, []store.ReleaseTag{{Tag: "v1.0", SHA: "b", TaggedAt: firstCommit}, {Tag: "v1.1", SHA: "c", TaggedAt: firstCommit}}))
	got, err := r.Releases(t.Context(), project)
	require.NoError(t, err)
	require.Equal(t, []store.ReleaseTag{one, {Tag: "v1.1", SHA: "c", TaggedAt: firstCommit}}, got)
}
