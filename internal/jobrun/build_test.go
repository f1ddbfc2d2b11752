//go:build unix

package jobrun_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/artifact"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/revision"
)

const buildTarget = bench.Target("x86_64-unknown-linux-gnu")

// gitRepository creates a repository with these files in one commit and returns
// its directory.
func gitRepository(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "repo")
	require.NoError(t, os.Mkdir(dir, 0o755))
	git(t, dir, "init", "--quiet", "--initial-branch=main")
	commitFiles(t, dir, files)
	return dir
}

func commitFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	git(t, dir, "add", "--all")
	git(t, dir, "commit", "--quiet", "--allow-empty", "--message", "next")
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=ada", "-c", "user.email=ada@example.org"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

// builder makes local builds on a machine that runs real processes.
type builder struct {
	*jobrun.LocalBuilds
	t       *testing.T
	sandbox *processes
	log     *bytes.Buffer
}

func newBuilder(t *testing.T) *builder {
	t.Helper()
	work := t.TempDir()
	b := &builder{t: t, sandbox: &processes{dir: work}, log: &bytes.Buffer{}}
	require.NoError(t, os.Mkdir(b.sandbox.TempDir(), 0o755))
	b.LocalBuilds = &jobrun.LocalBuilds{
		Revisions: revision.New(t.TempDir(), os.Environ()),
		Machine: jobrun.Machine{Sandbox: b.sandbox, CPUs: 1, Now: time.Now, Log: b.log,
			Environ: []string{"PASSED=yes", "HIDDEN=no", "PATH=" + os.Getenv("PATH")}},
	}
	cache, err := artifact.Open(artifact.Options{Dir: t.TempDir(), Providers: []artifact.Provider{artifact.Directory{}, &artifact.Built{Source: b.LocalBuilds}}})
	require.NoError(t, err)
	b.Cache = cache
	return b
}

func (b *builder) acquire(tag string, parameters map[string]string) (*artifact.Handle, error) {
	b.t.Helper()
	h, err := b.Acquire(b.t.Context(), artifact.Request{Provider: "build", Tag: tag, Target: string(buildTarget), Parameters: parameters}, nil)
	if err == nil {
		b.t.Cleanup(func() { require.NoError(b.t, h.Release()) })
	}
	return h, err
}

func TestARevisionIsBuiltOncePerTree(t *testing.T) {
	t.Parallel()
	repo := gitRepository(t, map[string]string{"build.sh": "echo building; mkdir out; echo \"$WORD $PASSED $HIDDEN\" >out/word; cp source out/; ln -s word out/link\n", "source": "one"})
	git(t, repo, "tag", "v1")
	commitFiles(t, repo, nil)
	git(t, repo, "tag", "v2") // another commit, the same tree
	commitFiles(t, repo, map[string]string{"source": "two"})
	git(t, repo, "tag", "v3")
	b := newBuilder(t)
	builds := 0
	b.sandbox.started = func(measure.Command) { builds++ }
	parameters := map[string]string{"repository": repo, "command": "sh build.sh", "output": "out", "env.WORD": "hello", "pass_env": "PASSED"}

	first, err := b.acquire("v1", parameters)
	require.NoError(t, err)
	for name, want := range map[string]string{"word": "hello yes \n", "link": "hello yes \n", "source": "one"} {
		text, err := os.ReadFile(filepath.Join(first.Dir(), name))
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
	require.NoFileExists(t, filepath.Join(first.Dir(), "build.sh"))
	require.Contains(t, b.log.String(), "building")

	same, err := b.acquire("v2", parameters)
	require.NoError(t, err)
	require.Equal(t, first.Identity(), same.Identity())
	require.Equal(t, 1, builds)

	other, err := b.acquire("v3", parameters)
	require.NoError(t, err)
	require.NotEqual(t, first.Identity(), other.Identity())
	require.Equal(t, 2, builds)

	parameters["env.WORD"] = "bye"
	_, err = b.acquire("v3", parameters)
	require.NoError(t, err)
	require.Equal(t, 3, builds, "another recipe is another build")

	entries, err := os.ReadDir(b.sandbox.WorkDir())
	require.NoError(t, err)
	require.Len(t, entries, 1, "only the temporary directory is left")
}

func TestABuildThatGoesWrongSaysWhy(t *testing.T) {
	t.Parallel()
	repo := gitRepository(t, map[string]string{"file": "x"})
	script := func(s string) string { return `["sh", "-c", "` + s + `"]` }
	for name, c := range map[string]struct {
		parameters map[string]string
		tag        string
		want       []string
	}{
		"fails":              {map[string]string{"command": script("echo no such header; exit 3")}, "main", []string{"exit status 3", "no such header"}},
		"hangs":              {map[string]string{"command": script("sleep 1000 & sleep 1000"), "timeout": "1s"}, "main", []string{"killed after its time limit of 1s"}},
		"no such program":    {map[string]string{"command": "nowhere-to-be-found"}, "main", []string{"nowhere-to-be-found", "install it"}},
		"no output":          {map[string]string{"command": "true", "output": "bin/tool"}, "main", []string{"left no bin/tool"}},
		"output outside":     {map[string]string{"command": script("ln -s / out"), "output": "out/etc"}, "main", []string{"leads out of the tree"}},
		"link outside":       {map[string]string{"command": script("ln -s /etc/passwd link")}, "main", []string{"the link link leads to /etc/passwd"}},
		"unknown revision":   {map[string]string{"command": "true"}, "v9", []string{"no such revision", "v9"}},
		"missing parameters": {map[string]string{}, "main", []string{"set the parameter command"}},
		"unknown parameter":  {map[string]string{"command": "true", "branch": "x"}, "main", []string{"branch", "it knows repository"}},
		"a shell line":       {map[string]string{"command": "make && make install"}, "main", []string{"there is no shell"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBuilder(t)
			c.parameters["repository"] = repo
			_, err := b.acquire(c.tag, c.parameters)
			require.Error(t, err)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestAVanishedRepositoryAndAnOutputThatIsTooLarge(t *testing.T) {
	t.Parallel()
	repo := gitRepository(t, map[string]string{"file": "x"})
	b := newBuilder(t)
	recipe, err := bench.ParseBuildRecipe(map[string]string{"repository": repo, "command": "true"}, "main", buildTarget)
	require.NoError(t, err)
	found, err := b.Revisions.Resolve(t.Context(), repo, "main")
	require.NoError(t, err)
	spec, err := recipe.Spec("p", "main", buildTarget, found.Commit, found.Tree)
	require.NoError(t, err)
	job := jobrun.BuildJob{Spec: spec, Revisions: b.Revisions, Archive: filepath.Join(t.TempDir(), "archive"), MaxBytes: 10}

	var failure *jobrun.Failure
	require.ErrorAs(t, jobrun.Build(t.Context(), b.Machine, job), &failure)
	require.Equal(t, bench.FailPermanent, failure.Kind)
	require.Contains(t, failure.Message, "larger than 10 B")

	require.NoError(t, os.RemoveAll(repo))
	require.ErrorAs(t, jobrun.Build(t.Context(), b.Machine, job), &failure)
	require.Equal(t, bench.FailPermanent, failure.Kind)
	require.Contains(t, failure.Message, "there is no directory "+repo+" on this machine")
}

func TestACancelledBuildIsDead(t *testing.T) {
	t.Parallel()
	repo := gitRepository(t, map[string]string{"file": "x"})
	b := newBuilder(t)
	ctx, cancel := context.WithCancel(t.Context())
	b.sandbox.started = func(measure.Command) { cancel() }
	_, err := b.Acquire(ctx, artifact.Request{Provider: "build", Tag: "main", Target: string(buildTarget),
		Parameters: map[string]string{"repository": repo, "command": "sleep 1000"}}, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.NotContains(t, err.Error(), "exit status")
}
