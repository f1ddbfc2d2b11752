package orchestration_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/commits"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

// watched is a project whose commits come from a git repository.
type watched struct {
	*bundle
	dir  string
	made int
}

// watch makes a repository and a project that names it; more is the rest of its
// source's configuration, as JSON.
func watch(t *testing.T, more string) *watched {
	t.Helper()
	w := &watched{bundle: setup(t, `{}`), dir: filepath.Join(t.TempDir(), "repo")}
	require.NoError(t, os.Mkdir(w.dir, 0o755))
	w.git("init", "--quiet", "--initial-branch=main")
	w.configure(more)
	return w
}

func (w *watched) configure(more string) {
	w.t.Helper()
	if more != "" {
		more = ", " + more
	}
	w.apply(fmt.Sprintf(`{"source": {"git": %q%s}}`, w.dir, more))
}

// git runs git in the repository; each commit is an hour younger than the one
// before, all of them of the ten days before today.
func (w *watched) git(args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "git", args...)
	cmd.Dir = w.dir
	date := fmt.Sprintf("%d +0000", today.AddDate(0, 0, -10).Add(time.Duration(w.made)*time.Hour).Unix())
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org", "GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date)
	out, err := cmd.CombinedOutput()
	require.NoError(w.t, err, "git %v: %s", args, out)
	return strings.TrimSpace(string(out))
}

func (w *watched) commit(subject string) string {
	w.t.Helper()
	w.made++
	w.git("commit", "--quiet", "--allow-empty", "-m", subject)
	return w.git("rev-parse", "HEAD")
}

func (w *watched) look() protocol.WatchResult {
	w.t.Helper()
	r, err := w.WatchCommits(w.t.Context(), protocol.WatchInput{Project: project})
	require.NoError(w.t, err)
	return r
}

func (w *watched) state() store.SourceState {
	w.t.Helper()
	s, err := w.store.SourceState(w.t.Context(), project)
	require.NoError(w.t, err)
	return s
}

func (w *watched) byTag(tag string) bench.Request {
	w.t.Helper()
	r, err := w.store.RequestByTag(w.t.Context(), project, tag)
	require.NoError(w.t, err)
	return r
}

// The first look takes the newest commit; from then on each is requested, once,
// after its parent.
func TestNewCommitsAreRequested(t *testing.T) {
	t.Parallel()
	w := watch(t, "")
	r := w.look()
	require.Empty(t, r.Failed)
	require.Equal(t, []string{"the repository is empty: it has no branch yet"}, r.Remarks)
	require.Equal(t, r.Remarks[0], w.state().Message)

	// A repository that was empty has only new commits.
	one, two := w.commit("one"), w.commit("two")
	r = w.look()
	require.Equal(t, protocol.WatchResult{Repository: w.dir, Branch: "main", Head: two, Recorded: 2, Requested: []string{one, two}, Requests: 2}, r)
	request := w.byTag(two)
	require.Equal(t, bench.Master, request.Type)
	require.Equal(t, one, request.Parent)
	require.Equal(t, bench.ArtifactsReady, request.Status)
	require.Equal(t, "commit-source", request.Submitter)
	require.True(t, request.CommitDate.Equal(today.AddDate(0, 0, -10).Add(2*time.Hour)))
	require.NotNil(t, request.WorkflowStartedAt)
	require.False(t, request.CreatedAt.Before(w.byTag(one).CreatedAt), "the parent comes first")
	require.Equal(t, []string{
		fmt.Sprintf("start %s/%s", project, w.byTag(one).ID), fmt.Sprintf("start %s/%s", project, request.ID),
	}, w.workflows.taken())

	// Nothing new: nothing done.
	r = w.look()
	require.Zero(t, r.Requests+r.Recorded)
	require.Empty(t, w.workflows.taken())
	require.Equal(t, two, w.state().Head)
	require.NotNil(t, w.state().LastOKAt)
	require.Empty(t, w.state().Message)
}

func TestTheFirstLookFollowsTheSourceConfiguration(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		source   string
		requests int
	}{
		"all by default":          {``, 5},
		"the newest":              {`"backfill": 1`, 1},
		"as many as wished":       {`"backfill": 3`, 3},
		"none":                    {`"backfill": 0`, 0},
		"not beyond the count":    {`"backfill": 5, "look_back": {"commits": 2}`, 2},
		"not beyond the age":      {`"backfill": 5, "look_back": {"days": 10}`, 4}, // the oldest has that age exactly
		"the newest, however old": {`"backfill": 5, "look_back": {"days": 1}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := watch(t, test.source)
			w.made = -2
			var shas []string
			for _, subject := range []string{"1", "2", "3", "4", "5"} {
				shas = append(shas, w.commit(subject))
			}
			r := w.look()
			require.Equal(t, test.requests, r.Requests)
			require.Equal(t, shas[5-test.requests:], append([]string{}, r.Requested...))

			// Those left out are not missing either, and the next one is requested.
			next := w.commit("6")
			r = w.look()
			require.Equal(t, []string{next}, r.Requested)
			missing, err := w.store.MissingAncestors(t.Context(), project, next, 100, today.AddDate(-1, 0, 0))
			require.NoError(t, err)
			require.Len(t, missing, test.requests)
		})
	}
}

func TestReleasesAreRequestedByTheirTags(t *testing.T) {
	t.Parallel()
	w := watch(t, `"releases": "v*", "backfill": 1`)
	one := w.commit("one")
	w.git("tag", "v1.0.0")
	w.commit("two")
	w.git("tag", "v1.1.0")
	w.git("tag", "other")
	w.git("tag", "v1.1.0+weird,name")
	r := w.look()
	require.Equal(t, []string{r.Head, "v1.1.0"}, r.Requested, "the newest release, as the newest commit")
	require.Equal(t, []string{"left out, because they cannot name an artifact: the tags v1.1.0+weird,name"}, r.Remarks)
	release := w.byTag("v1.1.0")
	require.Equal(t, bench.Release, release.Type)
	require.Empty(t, release.Parent)
	require.True(t, release.CommitDate.Equal(today.AddDate(0, 0, -10).Add(2*time.Hour)))
	_, err := w.store.RequestByTag(t.Context(), project, "v1.0.0")
	require.ErrorIs(t, err, store.ErrNotFound)

	// Later ones all; one that moves is not measured again, and is spoken of.
	w.git("tag", "-d", "v1.1.0+weird,name")
	w.git("tag", "v1.2.0")
	w.git("tag", "v0.9.0", one)
	w.git("tag", "-f", "v1.1.0", one)
	r = w.look()
	require.Equal(t, []string{"v0.9.0", "v1.2.0"}, r.Requested, "by date")
	require.Len(t, r.Remarks, 1)
	require.Contains(t, r.Remarks[0], "tag v1.1.0 has moved from")

	// With another pattern, old tags do not become new.
	w.configure(`"releases": "*"`)
	require.Equal(t, []string{"other"}, w.look().Requested)
}

// A rewritten branch cancels nothing: what waits says so, and the new commits
// are requested.
func TestARewrittenBranchIsFollowed(t *testing.T) {
	t.Parallel()
	w := watch(t, "")
	w.look()
	one, two, three := w.commit("one"), w.commit("two"), w.commit("three")
	w.look()
	w.git("reset", "--quiet", "--hard", one)
	other := w.commit("other")
	r := w.look()
	require.Equal(t, 2, r.Left)
	require.Equal(t, []string{other}, r.Requested)
	for _, sha := range []string{two, three} {
		require.Equal(t, bench.ArtifactsReady, w.byTag(sha).Status)
		require.Contains(t, w.byTag(sha).Message, "the branch was rewritten and no longer holds this commit")
	}
	require.Empty(t, w.byTag(one).Message)
	require.Empty(t, w.byTag(other).Message)

	// The queue's message goes with it.
	_, err := w.Admit(t.Context(), protocol.QueueInput{Project: project})
	require.NoError(t, err)
	require.Contains(t, w.byTag(two).Message, "the branch was rewritten")

	// Another repository in its place shares nothing with it.
	require.NoError(t, os.RemoveAll(filepath.Join(w.dir, ".git")))
	w.git("init", "--quiet", "--initial-branch=main")
	fresh := w.commit("fresh")
	r = w.look()
	require.Equal(t, []string{fresh}, r.Requested)
	require.Equal(t, 2, r.Left)
	require.Contains(t, w.byTag(one).Message, "the branch was rewritten")
}

// A repository that vanishes warns since its first failure, and goes on where it
// was when it is back.
func TestAVanishedRepositoryStallsNothing(t *testing.T) {
	t.Parallel()
	w := watch(t, "")
	one := w.commit("one")
	w.look()
	require.NoError(t, os.Rename(w.dir, w.dir+".away"))
	r := w.look()
	require.Contains(t, r.Failed, "repository "+w.dir+": there is no such directory")
	first := w.state()
	require.NotNil(t, first.FailingSince)
	require.Equal(t, r.Failed, first.Message)
	require.Equal(t, one, first.Head)
	w.look()
	require.Equal(t, first.FailingSince, w.state().FailingSince)

	require.NoError(t, os.Rename(w.dir+".away", w.dir))
	two, three := w.commit("two"), w.commit("three")
	require.Equal(t, []string{two, three}, w.look().Requested, "nothing of what came meanwhile is lost")
	require.Nil(t, w.state().FailingSince)
}

// Workflows that cannot be started leave their requests, and the next look
// repeats what this one has not finished.
func TestALookThatDiesIsRepeated(t *testing.T) {
	t.Parallel()
	w := watch(t, "")
	w.look()
	one, two := w.commit("one"), w.commit("two")
	w.workflows.err = errors.New("Temporal is away")
	_, err := w.WatchCommits(t.Context(), protocol.WatchInput{Project: project})
	require.ErrorContains(t, err, "Temporal is away")
	require.Empty(t, w.state().Head, "the head moves last")
	before := w.byTag(one)
	w.workflows.err = nil
	require.Equal(t, []string{two}, w.look().Requested)
	require.Equal(t, before.ID, w.byTag(one).ID)
	require.NotNil(t, w.byTag(one).WorkflowStartedAt)
}

// What was asked for before in another way stays as it is.
func TestACommitRequestedBefore(t *testing.T) {
	t.Parallel()
	w := watch(t, "")
	one := w.commit("one")
	w.create(bench.Try, one, 1)
	r := w.look()
	require.Empty(t, r.Requested)
	require.Equal(t, bench.Try, w.byTag(one).Type)
}

func TestAProjectWithoutSuiteSaysSo(t *testing.T) {
	t.Parallel()
	w := watch(t, "")
	one := w.commit("one")
	suite := w.suite
	w.suite = ""
	w.configure("")
	require.Contains(t, w.look().Failed, "the project has no suite")
	w.suite = suite
	w.configure("")
	require.Equal(t, []string{one}, w.look().Requested)
}

// A project without a source has no Schedule: the last look removes it.
func TestAProjectWithoutSourceIsNotWatched(t *testing.T) {
	t.Parallel()
	w := watch(t, `"every": "90s"`)
	require.NoError(t, w.EnsureWatches(t.Context(), false))
	require.Equal(t, []string{"watch go every 1m30s"}, w.workflows.taken())
	require.NoError(t, w.EnsureWatches(t.Context(), false))
	require.Empty(t, w.workflows.taken(), "it is confirmed")
	require.NoError(t, w.EnsureWatches(t.Context(), true))
	require.Equal(t, []string{"watch go every 1m30s"}, w.workflows.taken(), "Temporal may have lost it")
	w.configure(`"every": "5m"`)
	w.pass(t)
	require.Equal(t, []string{"watch go every 5m0s"}, w.workflows.taken())

	w.apply(`{}`)
	require.Equal(t, protocol.WatchResult{}, w.look())
	require.Equal(t, []string{"unwatch go"}, w.workflows.taken())
	require.NoError(t, w.EnsureWatches(t.Context(), true))
	require.Empty(t, w.workflows.taken())

	w.configure("")
	require.NoError(t, w.EnsureWatches(t.Context(), false))
	w.apply(`{}`)
	w.workflows.taken()
	require.NoError(t, w.EnsureWatches(t.Context(), false))
	require.Equal(t, []string{"unwatch go"}, w.workflows.taken())

	// A configuration that became invalid is left to the person who applies.
	w.apply(`{"source": {"git": "relative"}}`)
	require.NoError(t, w.EnsureWatches(t.Context(), false))
	require.Empty(t, w.workflows.taken())
}

// hanging is a source that answers only when it is given up.
type hanging struct{ begun chan struct{} }

func (h hanging) Open(bench.CommitSource) (commits.Source, error) { return h, nil }

func (h hanging) Read(ctx context.Context, _ commits.Query) (commits.History, error) {
	close(h.begun)
	<-ctx.Done()
	return commits.History{}, context.Cause(ctx)
}

func (hanging) OnBranch(context.Context, string, []string) (map[string]bool, error) { return nil, nil }

// A look that is cancelled is no failure of the source.
func TestACancelledLookRecordsNothing(t *testing.T) {
	t.Parallel()
	w := watch(t, "")
	begun := make(chan struct{})
	w.Watching.Sources = hanging{begun}
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		<-begun
		stop()
	}()
	_, err := w.WatchCommits(ctx, protocol.WatchInput{Project: project})
	require.ErrorIs(t, err, context.Canceled)
	require.Nil(t, w.state().FailingSince)
}

// While it looks, it is heard of.
func TestALookBeats(t *testing.T) {
	t.Parallel()
	w := watch(t, "")
	w.commit("one")
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivityWithOptions(w.WatchCommits, activity.RegisterOptions{Name: protocol.WatchCommits})
	beats := make(chan struct{}, 100)
	env.SetOnActivityHeartbeatListener(func(*activity.Info, converter.EncodedValues) { beats <- struct{}{} })
	value, err := env.ExecuteActivity(protocol.WatchCommits, protocol.WatchInput{Project: project})
	require.NoError(t, err)
	var r protocol.WatchResult
	require.NoError(t, value.Get(&r))
	require.Equal(t, 1, r.Requests)
	<-beats
}
