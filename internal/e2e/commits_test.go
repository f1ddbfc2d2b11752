package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
)

// gitRepository is a repository that a test writes to.
type gitRepository struct{ dir string }

func newGitRepository(t *testing.T) gitRepository {
	t.Helper()
	r := gitRepository{filepath.Join(t.TempDir(), "repo")}
	require.NoError(t, os.Mkdir(r.dir, 0o755))
	r.git(t, "init", "--quiet", "--initial-branch=main")
	return r
}

func (r gitRepository) git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %v: %s", args, out)
	return strings.TrimSpace(string(out))
}

func (r gitRepository) commit(t *testing.T, subject string) string {
	t.Helper()
	r.git(t, "commit", "--quiet", "--allow-empty", "-m", subject)
	return r.git(t, "rev-parse", "HEAD")
}

// found waits until an artifact has a tracked request.
func (s *stack) found(t *testing.T, project, tag string) bench.RequestID {
	t.Helper()
	var id bench.RequestID
	require.Eventually(t, func() bool {
		r, err := s.api.Request(t.Context(), project+":"+tag)
		id = r.ID
		return err == nil
	}, patience, 50*time.Millisecond, "%s was not requested", tag)
	return id
}

// looked waits until a look has ended in the state, and returns its workflow's ID.
func looked(t *testing.T, c client.Client, state string) string {
	t.Helper()
	var id string
	require.Eventually(t, func() bool {
		query := fmt.Sprintf(`WorkflowType="%s" AND Project="shell" AND State="%s" AND ExecutionStatus="Completed"`, protocol.WatchWorkflow, state)
		list, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: query})
		if err != nil || len(list.GetExecutions()) == 0 {
			return false
		}
		id = list.GetExecutions()[0].GetExecution().GetWorkflowId()
		return true
	}, patience, 100*time.Millisecond, "no look is %s", state)
	return id
}

// A project's commits and releases are benchmarked as they appear. The repository
// vanishes and returns rewritten; only the looks for commits wait for it.
func TestCommitsOfARepositoryAreBenchmarked(t *testing.T) {
	t.Parallel()
	s := startStack(t)
	c := s.temporal(t)
	shell, repository := newShellSuite(t, 1), newGitRepository(t)
	repository.commit(t, "before the project began")
	first := repository.commit(t, "first")
	shell.artifact(t, first, 1000)
	// A look follows applying the project, and a person's request.
	newest := 1
	source := bench.CommitSource{Git: repository.dir, Releases: "v*", Every: "24h", Backfill: &newest}
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{Source: source})
	done := s.await(t, s.found(t, "shell", first), ended)
	requireSuccess(t, done.Outcome, done)
	require.Equal(t, bench.Master, done.Type)
	require.Contains(t, done.ParentNote, "the project began after it")
	s.check(t, c, expectation{
		workflow: "Watch", id: looked(t, c, string(protocol.WatchCompleted)), state: string(protocol.WatchCompleted),
		details: []string{"commits of **shell**", repository.dir, first}, attributes: []string{"Project"},
	})

	second := repository.commit(t, "second")
	repository.git(t, "tag", "v1.0.0")
	for _, tag := range []string{second, "v1.0.0"} {
		shell.artifact(t, tag, 1000)
	}
	out, code := s.run(t, "project", "sync", "shell")
	require.Zero(t, code, out)
	done = s.await(t, s.found(t, "shell", second), ended)
	requireSuccess(t, done.Outcome, done)
	require.Equal(t, first, done.Baseline, "a commit is compared with its parent")
	requireSuccess(t, s.await(t, s.found(t, "shell", "v1.0.0"), ended).Outcome, "v1.0.0")
	list, err := s.api.Commits(t.Context(), "shell", 0)
	require.NoError(t, err)
	require.Len(t, list.Commits, 3)
	require.Equal(t, bench.Success, list.Commits[0].Request.Outcome)
	require.Nil(t, list.Commits[2].Request)

	// The repository vanishes.
	require.NoError(t, os.Rename(repository.dir, repository.dir+".away"))
	_, err = s.api.SyncProject(t.Context(), "shell")
	require.NoError(t, err)
	s.check(t, c, expectation{
		workflow: "Watch", id: looked(t, c, string(protocol.WatchFailing)), state: string(protocol.WatchFailing),
		details: []string{"It cannot be read", "there is no such directory"}, attributes: []string{"Project"},
	})
	out, code = s.run(t, "project", "show", "shell")
	require.Zero(t, code)
	require.Regexp(t, `commits are +failing since .*: repository .*: there is no such directory`, out)
	shell.artifact(t, "1.0", 1000)
	other := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Release, Tag: "1.0"})
	requireSuccess(t, s.await(t, other.ID, ended).Outcome, "a release that does not come from the repository")

	// It returns rewritten, when its Schedule has been deleted too.
	require.NoError(t, c.ScheduleClient().GetHandle(t.Context(), bench.WatchWorkflowID("shell")).Delete(t.Context()))
	require.NoError(t, os.Rename(repository.dir+".away", repository.dir))
	repository.git(t, "reset", "--quiet", "--hard", first)
	third := repository.commit(t, "another second")
	shell.artifact(t, third, 1000)
	require.Eventually(t, func() bool { _, err := s.api.SyncProject(t.Context(), "shell"); return err == nil }, patience, 100*time.Millisecond)
	requireSuccess(t, s.await(t, s.found(t, "shell", third), ended).Outcome, third)
	list, err = s.api.Commits(t.Context(), "shell", 0)
	require.NoError(t, err)
	on := make(map[string]bool)
	for _, commit := range list.Commits {
		on[commit.SHA] = commit.OnBranch
	}
	require.Equal(t, map[string]bool{first: true, second: false, third: true, list.Commits[3].SHA: true}, on)
	require.Eventually(t, func() bool {
		p, err := s.api.Project(t.Context(), "shell")
		return err == nil && p.SourceState.FailingSince == nil && p.SourceState.Head == third
	}, patience, 50*time.Millisecond)

	// The interval changes; the Schedule stays paused as an operator left it.
	handle := c.ScheduleClient().GetHandle(t.Context(), bench.WatchWorkflowID("shell"))
	require.NoError(t, handle.Pause(t.Context(), client.SchedulePauseOptions{Note: "maintenance"}))
	source.Every = "1h"
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{Source: source})
	require.Eventually(t, func() bool {
		described, err := handle.Describe(t.Context())
		return err == nil && described.Schedule.Spec.Intervals[0].Every == time.Hour && described.Schedule.State.Paused
	}, patience, 50*time.Millisecond)

	// A project without a source has no Schedule.
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{})
	require.Eventually(t, func() bool {
		_, err := handle.Describe(t.Context())
		return err != nil && strings.Contains(err.Error(), "not found")
	}, patience, 50*time.Millisecond)
	out, code = s.run(t, "project", "sync", "shell")
	require.Equal(t, 1, code, out)
}
