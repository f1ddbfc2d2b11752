//go:build linux

package collection_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/protocol"
	"github.com/benchloom/benchloom/internal/store"
)

// source is a real repository whose revisions the project's artifacts are built
// from.
type source struct {
	*bundle
	dir        string
	parameters map[string]string
}

// newSource creates a repository with a build script; commits are tagged.
func newSource(t *testing.T, script string) *source {
	t.Helper()
	s := &source{bundle: setup(t)}
	s.dir = filepath.Join(s.root, "repository")
	require.NoError(t, os.Mkdir(s.dir, 0o755))
	s.git("init", "--quiet", "--initial-branch=main")
	s.commit("v1", map[string]string{"build.sh": script})
	s.parameters = map[string]string{"repository": s.dir, "command": `["sh", "build.sh"]`, "output": "out"}
	s.configure()
	return s
}

func (s *source) git(args ...string) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "git", append([]string{"-c", "user.name=ada", "-c", "user.email=ada@example.org"}, args...)...)
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	require.NoError(s.t, err, string(out))
}

func (s *source) commit(tag string, files map[string]string) {
	s.t.Helper()
	for name, text := range files {
		require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644))
	}
	s.git("add", "--all")
	s.git("commit", "--quiet", "--allow-empty", "--message", tag)
	s.git("tag", tag)
}

// configure makes the project build its artifacts.
func (s *source) configure() {
	s.t.Helper()
	config, err := json.Marshal(bench.ProjectConfig{Artifacts: bench.ArtifactSource{Provider: bench.BuildProvider, Parameters: s.parameters}})
	require.NoError(s.t, err)
	_, err = s.store.ApplyProject(s.t.Context(), store.Project{Name: "go", Config: config, SuiteHash: s.hash})
	require.NoError(s.t, err)
}

// resolve records the build of a tag, as an orchestrator does.
func (s *source) resolve(tag string) bench.BuildSpec {
	s.t.Helper()
	recipe, err := bench.ParseBuildRecipe(s.parameters, tag, target)
	require.NoError(s.t, err)
	found, err := s.Revisions.Resolve(s.t.Context(), recipe.Repository, tag)
	require.NoError(s.t, err)
	spec, err := recipe.Spec("go", tag, target, found.Commit, found.Tree)
	require.NoError(s.t, err)
	require.NoError(s.t, s.store.SetBuildRevision(s.t.Context(), "go", recipe.Hash(target), spec))
	return spec
}

// buildJob returns a job that builds a tag.
func (s *source) buildJob(tag string) (bench.JobKey, bench.BuildSpec) {
	s.t.Helper()
	spec := s.resolve(tag)
	return s.request(bench.Job{Work: bench.Work{Tag: tag, Kind: bench.KindBuild, Build: &spec, TestCases: []bench.TestCase{}}}), spec
}

// ends returns the recorded end of a job.
func (s *source) ends(key bench.JobKey, gaveUp string) bench.JobEnd {
	s.t.Helper()
	end, err := s.store.FinishJob(s.t.Context(), key, 0, gaveUp)
	require.NoError(s.t, err)
	return end
}

func (s *source) built(key bench.BuildKey) store.Build {
	s.t.Helper()
	b, err := s.store.Build(s.t.Context(), key)
	require.NoError(s.t, err)
	return b
}

// The output is larger than a chunk, so that several are uploaded.
const largeBuild = "echo building >&2; mkdir out; head -c 3000000 /dev/urandom >out/data; echo built >out/file\n"

func TestARevisionIsBuiltThenMeasured(t *testing.T) {
	t.Parallel()
	s := newSource(t, largeBuild)
	key, spec := s.buildJob("v1")

	// A brief outage of the API has no effect.
	refused := 0
	s.gate.refuse(func(path string) bool {
		if strings.Contains(path, "/build/chunks/1") {
			refused++
		}
		return refused == 1 && strings.Contains(path, "/build/chunks/1")
	})
	out, err := s.run(key, 1)
	require.NoError(t, err)
	require.Equal(t, bench.RunSuccess, out.Outcome)
	require.Greater(t, refused, 1)
	require.Equal(t, bench.JobSuccess, s.ends(key, "").Status)
	stored := s.built(spec.Key)
	require.Equal(t, spec.Tree, stored.Tree)
	require.Greater(t, stored.Chunks(), 2)
	require.Contains(t, s.runs(key)[0].OutputTail, "building")
	require.NoFileExists(t, filepath.Join(s.CacheDir, ".build.tar.gz"))

	// Another tag of the same tree is the same build: nothing is built, and both
	// are measured.
	s.commit("v2", nil)
	again, same := s.buildJob("v2")
	require.Equal(t, spec.Key, same.Key)
	_, err = s.run(again, 1)
	require.NoError(t, err)
	require.NotContains(t, s.runs(again)[0].OutputTail, "building")
	require.Contains(t, s.runs(again)[0].OutputTail, "built already")
	require.Equal(t, stored, s.built(spec.Key))
	for _, tag := range []string{"v1", "v2"} {
		measured := s.job(tag, "one")
		_, err = s.run(measured, 1)
		require.NoError(t, err)
		require.Equal(t, 1, s.done(measured))
	}

	// A changed tree is another build.
	s.commit("v3", map[string]string{"new": "file"})
	require.NotEqual(t, spec.Key, s.resolve("v3").Key)
}

func TestABuildThatFailsIsTheJobsFailure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script, timeout string
		errorType       string
		retryable       bool
		outcome         bench.RunOutcome
		want            string
	}{
		"fails":     {"echo header missing; exit 3", "1m", protocol.ErrTypeJobFailure, true, bench.RunFailure, "exit status 3; see its output; its output ends with: header missing"},
		"hangs":     {"sleep 1000 & sleep 1000", "1s", protocol.ErrTypeTooSmall, false, bench.RunTimeout, "killed after its time limit of 1s"},
		"no output": {"true", "1m", protocol.ErrTypePermanent, false, bench.RunPermanent, "left no out"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSource(t, c.script)
			s.parameters["timeout"] = c.timeout
			key, spec := s.buildJob("v1")
			_, err := s.run(key, 1)
			s.fails(err, c.errorType, c.retryable, c.want)
			require.Equal(t, c.outcome, s.runs(key)[0].Outcome)
			end := s.ends(key, "")
			require.Equal(t, bench.JobFailure, end.Status)
			require.Contains(t, end.Message, "v1")
			require.Contains(t, end.Message, c.want)
			_, err = s.store.Build(t.Context(), spec.Key)
			require.ErrorIs(t, err, store.ErrNotFound)
		})
	}
}

func TestARepositoryThatVanishedEndsTheBuildWithTheReason(t *testing.T) {
	t.Parallel()
	s := newSource(t, largeBuild)
	key, _ := s.buildJob("v1")
	require.NoError(t, os.Rename(s.dir, s.dir+".away"))
	_, err := s.run(key, 1)
	s.fails(err, protocol.ErrTypePermanent, false, "there is no directory "+s.dir+" on this machine; restore it")

	// A history that was rewritten has lost the commit.
	require.NoError(t, os.RemoveAll(s.dir+".away"))
	require.NoError(t, os.Mkdir(s.dir, 0o755))
	s.git("init", "--quiet", "--initial-branch=main")
	_, err = s.run(key, 2)
	s.fails(err, protocol.ErrTypePermanent, false, "was its history rewritten?")
}

func TestAnArtifactThatDisappearsAfterItWasBuilt(t *testing.T) {
	t.Parallel()
	s := newSource(t, largeBuild)
	key, spec := s.buildJob("v1")
	_, err := s.run(key, 1)
	require.NoError(t, err)
	s.ends(key, "")
	s.execute(`delete from build`)
	measured := s.job("v1", "one")
	_, err = s.run(measured, 1)
	s.fails(err, protocol.ErrTypePermanent, false, "it was announced but is not there any more")
	require.ErrorContains(t, err, string(spec.Key[:12]))
	require.Empty(t, s.journal())

	// So does one that was never built.
	s.parameters["output"] = "."
	s.configure()
	other := s.job("v1", "one")
	_, err = s.run(other, 1)
	s.fails(err, protocol.ErrTypePermanent, false, "request it again")
}

func TestABuildIsNotDeliveredForAJobThatHasEnded(t *testing.T) {
	t.Parallel()
	s := newSource(t, largeBuild)
	key, spec := s.buildJob("v1")
	var ending error
	s.gate.refuse(func(path string) bool {
		if strings.Contains(path, "/build/chunks/2") {
			_, ending = s.store.FinishJob(t.Context(), key, 0, "given up meanwhile")
		}
		return false
	})
	_, err := s.run(key, 1)
	require.NoError(t, ending)
	s.fails(err, protocol.ErrTypeJobClosed, false, "ended")
	_, err = s.store.Build(t.Context(), spec.Key)
	require.ErrorIs(t, err, store.ErrNotFound)
}
