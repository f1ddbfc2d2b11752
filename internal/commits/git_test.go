package commits_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/commits"
)

// ways runs f with a repository in place, as a bare clone in place, and through
// a server.
func ways(t *testing.T, f func(t *testing.T, r *repository, config bench.CommitSource)) {
	t.Helper()
	for name, config := range map[string]func(t *testing.T, r *repository) bench.CommitSource{
		"in place": func(_ *testing.T, r *repository) bench.CommitSource { return bench.CommitSource{Git: r.dir} },
		"by file URL": func(_ *testing.T, r *repository) bench.CommitSource {
			return bench.CommitSource{Git: "file://" + r.dir}
		},
		"git directory": func(_ *testing.T, r *repository) bench.CommitSource {
			return bench.CommitSource{Git: filepath.Join(r.dir, ".git")}
		},
		"mirrored": func(t *testing.T, r *repository) bench.CommitSource {
			return bench.CommitSource{Git: serve(t, filepath.Dir(r.dir)) + "/repo/.git"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t)
			f(t, r, config(t, r))
		})
	}
}

func TestFirstParentHistoryIsFollowed(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, r *repository, config bench.CommitSource) {
		s := source(t, config)

		// An empty repository is not an error: somebody is about to push.
		h := look(t, s, all)
		require.Empty(t, h.Head)
		require.Contains(t, h.Remarks[0], "the repository is empty")

		one := r.commit("one")
		two := r.commit("two")
		h = look(t, s, all)
		require.Equal(t, two, h.Head)
		require.Equal(t, 2, h.New)
		require.Equal(t, []commits.Commit{
			{SHA: two, Parent: one, CommittedAt: epoch.Add(2 * time.Hour), Author: "Ada", Subject: "two"},
			{SHA: one, CommittedAt: epoch.Add(time.Hour), Author: "Ada", Subject: "one"},
		}, h.Commits)
		require.Empty(t, h.Remarks)

		// A merge counts as one commit; the merged commits do not count.
		r.git("checkout", "--quiet", "-b", "side")
		r.commit("side 1")
		r.commit("side 2")
		r.git("checkout", "--quiet", "main")
		r.commit("three")
		r.made++
		r.git("merge", "--quiet", "--no-ff", "-X", "ours", "-m", "merge of side", "side")
		four := r.git("rev-parse", "HEAD")
		q := all
		q.Known = two
		h = look(t, s, q)
		require.Equal(t, []string{"merge of side", "three", "two", "one"}, subjects(h))
		require.Equal(t, 2, h.New)
		require.False(t, h.Rewritten)

		// Nothing new.
		q.Known = four
		h = look(t, s, q)
		require.Zero(t, h.New)
		require.Len(t, h.Commits, 4)

		// Only the configured branch.
		side := config
		side.Branch = "side"
		require.Equal(t, []string{"side 2", "side 1", "two", "one"}, subjects(look(t, source(t, side), all)))
	})
}

func TestTheLookBackBoundsWhatIsListed(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, r *repository, config bench.CommitSource) {
		var shas []string
		for _, name := range []string{"1", "2", "3", "4", "5", "6"} {
			shas = append(shas, r.commit(name))
		}
		s := source(t, config)
		require.Equal(t, []string{"6", "5"}, subjects(look(t, s, commits.Query{Most: 2})))
		require.Equal(t, []string{"6", "5", "4"}, subjects(look(t, s, commits.Query{Most: 100, Since: epoch.Add(4 * time.Hour)})))

		// An inactive project still has its newest commit.
		require.Equal(t, []string{"6"}, subjects(look(t, s, commits.Query{Most: 100, Since: epoch.AddDate(1, 0, 0)})))

		// All new commits are listed, regardless of age and number.
		h := look(t, s, commits.Query{Most: 1, Since: epoch.AddDate(1, 0, 0), Known: shas[1]})
		require.Equal(t, []string{"6", "5", "4", "3"}, subjects(h))
		require.Equal(t, 4, h.New)
	})
}

func TestARewrittenBranchIsNoticed(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, r *repository, config bench.CommitSource) {
		one := r.commit("one")
		two := r.commit("two")
		three := r.commit("three")
		s := source(t, config)
		look(t, s, all)

		r.git("reset", "--quiet", "--hard", one)
		r.commit("other two")
		q := all
		q.Known = three
		h := look(t, s, q)
		require.True(t, h.Rewritten)
		require.False(t, h.Lost)
		require.Equal(t, 1, h.New)
		require.Equal(t, []string{"other two", "one"}, subjects(h))
		on, err := s.OnBranch(t.Context(), h.Head, []string{one, two, three, h.Head})
		require.NoError(t, err)
		require.Equal(t, map[string]bool{one: true, h.Head: true}, on)

		// A known commit that no longer exists.
		q.Known = strings.Repeat("0", 39) + "1"
		h = look(t, s, q)
		require.True(t, h.Rewritten)
		require.True(t, h.Lost)
		require.Equal(t, 2, h.New)

		// Back to an older state: nothing is new.
		r.git("reset", "--quiet", "--hard", one)
		q.Known = h.Head
		h = look(t, s, q)
		require.True(t, h.Rewritten)
		require.Zero(t, h.New)
		require.Equal(t, []string{"one"}, subjects(h))
	})
}

func TestReleasesAreTags(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, r *repository, config bench.CommitSource) {
		one := r.commit("one")
		r.git("tag", "v1.0.0")
		two := r.commit("two")
		r.made++
		r.git("tag", "-a", "v1.1.0", "-m", "annotated")
		r.git("-c", "advice.nestedTag=false", "tag", "-a", "v1.1.0-nested", "-m", "of a tag", "v1.1.0")
		r.git("tag", "unrelated")
		r.git("tag", "v-tree", "HEAD^{tree}")
		r.git("tag", "v-file", "HEAD:file")
		h := look(t, source(t, config), all)
		require.ElementsMatch(t, []commits.Release{
			{Tag: "v1.0.0", SHA: one, At: epoch.Add(time.Hour)},
			{Tag: "v1.1.0", SHA: two, At: epoch.Add(3 * time.Hour)},
			{Tag: "v1.1.0-nested", SHA: two, At: epoch.Add(3 * time.Hour)},
		}, h.Releases)
		h = look(t, source(t, config), commits.Query{Most: 10})
		require.Empty(t, h.Releases, "without a pattern no tag is a release")
	})
}

func TestTagsComeAndGoInAMirror(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.commit("one")
	r.git("tag", "v1")
	r.git("tag", "v2")
	s := source(t, bench.CommitSource{Git: serve(t, filepath.Dir(r.dir)) + "/repo/.git"})
	require.Len(t, look(t, s, all).Releases, 2)
	two := r.commit("two")
	r.git("tag", "-d", "v1")
	r.git("tag", "-f", "v2")
	require.Equal(t, []commits.Release{{Tag: "v2", SHA: two, At: epoch.Add(2 * time.Hour)}}, look(t, s, all).Releases)
}

func TestStrangeCommitsAndNames(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, r *repository, config bench.CommitSource) {
		r.commit("a\tb \x1b[31m \xff " + strings.Repeat("long ", 1000))
		r.git("-c", "i18n.commitEncoding=latin1", "commit", "--quiet", "--allow-empty", "--allow-empty-message", "-m", "")
		r.git("branch", "feature/main")
		r.git("branch", "späte-änderung")
		r.git("tag", "v/with/slashes")
		h := look(t, source(t, config), commits.Query{Most: 10, Releases: "v/*/*"})
		require.Len(t, h.Commits, 2)
		require.Empty(t, h.Commits[0].Subject)
		require.Equal(t, "v/with/slashes", h.Releases[0].Tag)
		require.LessOrEqual(t, len(h.Commits[1].Subject), 510)
		require.True(t, strings.HasPrefix(h.Commits[1].Subject, "a\tb"), h.Commits[1].Subject)
		for _, branch := range []string{"feature/main", "späte-änderung"} {
			config.Branch = branch
			require.Len(t, look(t, source(t, config), all).Commits, 2)
		}
	})
}

func TestAShallowCloneSaysSo(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	for _, name := range []string{"1", "2", "3", "4"} {
		r.commit(name)
	}
	clone := filepath.Join(t.TempDir(), "clone")
	r.git("clone", "--quiet", "--depth=2", "file://"+r.dir, clone)
	h := look(t, source(t, bench.CommitSource{Git: clone}), all)
	require.Equal(t, []string{"4", "3"}, subjects(h))
	require.Len(t, h.Remarks, 1)
	require.Regexp(t, "shallow clone that has nothing before commit .*'git fetch --unshallow'", h.Remarks[0])
}

func TestARepositoryThatCannotBeReadSaysWhy(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.commit("one")
	r.git("branch", "dev")
	server := serve(t, filepath.Dir(r.dir))
	plain := t.TempDir()
	broken := newRepository(t)
	require.NoError(t, os.WriteFile(filepath.Join(broken.dir, ".git", "config"), []byte("[core"), 0o644))
	for want, config := range map[string]bench.CommitSource{
		"repository /nowhere/repo: there is no such directory on the orchestrator's machine; restore it": {Git: "/nowhere/repo"},
		"this directory is not a git repository":                                                         {Git: plain},
		`there is no branch "trunk"; the branches are dev, main; set the project's source.branch`:        {Git: r.dir, Branch: "trunk"},
		`there is no branch "next"; the branches are`:                                                    {Git: server + "/repo/.git", Branch: "next"},
		"it cannot be read: git: ":                                                                       {Git: server + "/nothing"},
		"bad config line":                                                                                {Git: broken.dir},
		"does it exist, and may the orchestrator's user":                                                 {Git: "http://127.0.0.1:1/repo"},
		"repository git://127.0.0.1:1/repo: it cannot be read: git: unable":                              {Git: "git://127.0.0.1:1/repo"},
	} {
		_, err := source(t, config).Read(t.Context(), all)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
	}
	_, err := commits.Opener{}.Open(bench.CommitSource{})
	require.ErrorIs(t, err, commits.ErrNoSource)
	_, err = commits.Opener{}.Open(bench.CommitSource{Git: "ext::sh"})
	require.ErrorIs(t, err, bench.ErrInvalid)
}

func TestARepositoryThatVanishesAndComesBack(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, r *repository, config bench.CommitSource) {
		one := r.commit("one")
		s := source(t, config)
		look(t, s, all)
		require.NoError(t, os.Rename(r.dir, r.dir+".away"))
		_, err := s.Read(t.Context(), all)
		require.ErrorContains(t, err, "repository "+config.Git)
		require.NoError(t, os.Rename(r.dir+".away", r.dir))
		require.Equal(t, one, look(t, s, all).Head)
	})
}

// A mirror is only a copy: one left broken by a killed fetch is recreated.
func TestABrokenMirrorIsMadeAnew(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.commit("one")
	cache := t.TempDir()
	s, err := commits.Opener{CacheDir: cache, Environ: os.Environ()}.Open(bench.CommitSource{Git: serve(t, filepath.Dir(r.dir)) + "/repo/.git"})
	require.NoError(t, err)
	look(t, s, all)
	mirrors, err := filepath.Glob(filepath.Join(cache, "*.git"))
	require.NoError(t, err)
	require.Len(t, mirrors, 1)
	for name, damage := range map[string]func() error{
		"a lock is left": func() error {
			return os.WriteFile(filepath.Join(mirrors[0], "refs", "heads", "main.lock"), nil, 0o644)
		},
		"objects are missing": func() error { return os.RemoveAll(filepath.Join(mirrors[0], "objects")) },
		"nothing is left":     func() error { return os.RemoveAll(mirrors[0]) },
	} {
		require.NoError(t, damage(), name)
		head := r.commit(name)
		require.Equal(t, head, look(t, s, all).Head, name)
	}
	objects, err := exec.CommandContext(t.Context(), "git", "--git-dir="+mirrors[0], "cat-file", "--batch-all-objects", "--batch-check=%(objecttype)").Output()
	require.NoError(t, err)
	require.Contains(t, string(objects), "commit")
	require.NotContains(t, string(objects), "blob", "files are not fetched")
}

// No program named by a repository's own configuration is run, and reading
// changes nothing in it.
func TestAHostileRepositoryRunsNothing(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	one := r.commit("one")
	r.git("tag", "v1")
	trap, sprung := filepath.Join(t.TempDir(), "trap"), filepath.Join(t.TempDir(), "sprung")
	require.NoError(t, os.WriteFile(trap, []byte("#!/bin/sh\ntouch "+sprung+"\n"), 0o755))
	for _, setting := range [][2]string{
		{"core.fsmonitor", trap}, {"core.hooksPath", filepath.Dir(trap)}, {"core.pager", trap}, {"core.sshCommand", trap}, {"core.askPass", trap},
		{"core.alternateRefsCommand", trap}, {"gpg.program", trap}, {"log.showSignature", "true"}, {"alias.rev-list", "!" + trap},
		{"core.gitProxy", trap}, {"credential.helper", "!" + trap}, {"remote.origin.url", "ext::" + trap}, {"remote.origin.promisor", "true"},
		{"remote.origin.uploadpack", trap}, {"extensions.partialClone", "origin"}, {"protocol.ext.allow", "always"}, {"uploadpack.packObjectsHook", trap},
	} {
		r.git("config", setting[0], setting[1])
	}
	before := r.git("-c", "core.fsmonitor=false", "count-objects", "-v")
	q := all
	q.Known = strings.Repeat("1", 40)
	h := look(t, source(t, bench.CommitSource{Git: r.dir}), q)
	require.Equal(t, one, h.Head)
	require.NoFileExists(t, sprung)
	require.Equal(t, before, r.git("-c", "core.fsmonitor=false", "count-objects", "-v"))
}

// A repository of another user is read, although git refuses by default.
func TestARepositoryOfAnotherUserIsRead(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	r := newRepository(t)
	one := r.commit("one")
	out, err := exec.CommandContext(t.Context(), "chown", "-R", "12345", r.dir).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, one, look(t, source(t, bench.CommitSource{Git: r.dir}), all).Head)
}

// A server that accepts and sends nothing is given up; processes started by git
// are dead by then.
func TestAServerThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	// A stand-in for ssh that hangs, with a child of its own.
	dir := t.TempDir()
	ssh, pids := filepath.Join(dir, "ssh"), filepath.Join(dir, "pids")
	require.NoError(t, os.WriteFile(ssh, []byte("#!/bin/sh\nsleep 1000 &\necho $! $$ >"+pids+".new\nmv "+pids+".new "+pids+"\nwait\n"), 0o755))
	open := func(timeout time.Duration) commits.Source {
		environ := append(os.Environ(), "GIT_SSH_COMMAND="+ssh, "GIT_SSH_VARIANT=simple")
		s, err := commits.Opener{CacheDir: dir, Environ: environ, Timeout: timeout}.Open(bench.CommitSource{Git: "ssh://example.org/repo"})
		require.NoError(t, err)
		return s
	}
	dead := func() {
		t.Helper()
		text, err := os.ReadFile(pids)
		require.NoError(t, err)
		for _, pid := range strings.Fields(string(text)) {
			require.Eventually(t, func() bool {
				status, err := os.ReadFile("/proc/" + pid + "/stat")
				return err != nil || strings.Contains(string(status), ") Z ") // nobody reaps it in a container
			}, 2*time.Minute, 10*time.Millisecond, "process %s lives", pid)
		}
		require.NoError(t, os.Remove(pids))
	}
	_, err := open(500*time.Millisecond).Read(t.Context(), all)
	require.EqualError(t, err, "repository ssh://example.org/repo did not answer within 500ms; is its server slow or away?")
	require.NotErrorIs(t, err, context.DeadlineExceeded, "the caller's time is not up")
	dead()

	ctx, stop := context.WithCancelCause(t.Context())
	why := errors.New("the worker stops")
	go func() {
		for {
			if _, err := os.Stat(pids); err == nil {
				stop(why)
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	_, err = open(time.Minute).Read(ctx, all)
	require.ErrorIs(t, err, why)
	dead()
}

func TestGitSeesNoSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	seen := filepath.Join(dir, "seen")
	ssh := filepath.Join(dir, "ssh")
	require.NoError(t, os.WriteFile(ssh, []byte("#!/bin/sh\nenv >"+seen+"\nexit 1\n"), 0o755))
	s, err := commits.Opener{CacheDir: dir, Environ: []string{
		"PATH=" + os.Getenv("PATH"), "GIT_SSH_COMMAND=" + ssh, "DATABASE_URL=postgres://secret", "BENCHLOOM_TOKEN=secret", "GIT_DIR=/elsewhere",
	}}.Open(bench.CommitSource{Git: "git@example.org:repo"})
	require.NoError(t, err)
	_, err = s.Read(t.Context(), all)
	require.ErrorContains(t, err, "it cannot be read")
	text, err := os.ReadFile(seen)
	require.NoError(t, err)
	require.NotContains(t, string(text), "secret")
	require.NotContains(t, string(text), "elsewhere")
	require.Contains(t, string(text), "GIT_TERMINAL_PROMPT=0")
}
