package revision_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/revision"
)

// repository is a real repository with a working tree.
type repository struct {
	t   *testing.T
	dir string
}

func newRepository(t *testing.T) repository {
	t.Helper()
	r := repository{t: t, dir: filepath.Join(t.TempDir(), "repo")}
	require.NoError(t, os.Mkdir(r.dir, 0o755))
	r.git("init", "--quiet", "--initial-branch=main")
	return r
}

func (r repository) git(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", append([]string{"-c", "user.name=ada", "-c", "user.email=ada@example.org"}, args...)...)
	cmd.Dir = r.dir
	out, err := cmd.CombinedOutput()
	require.NoError(r.t, err, string(out))
	return strings.TrimSpace(string(out))
}

func (r repository) write(name, text string, mode os.FileMode) {
	r.t.Helper()
	file := filepath.Join(r.dir, name)
	require.NoError(r.t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(r.t, os.WriteFile(file, []byte(text), mode))
}

// commit commits everything and returns the commit's hash.
func (r repository) commit(message string) string {
	r.t.Helper()
	r.git("add", "--all")
	r.git("commit", "--quiet", "--allow-empty", "--message", message)
	return r.git("rev-parse", "HEAD")
}

func TestATagIsResolvedToItsCommitAndTree(t *testing.T) {
	t.Parallel()
	repo := newRepository(t)
	repo.write("main.c", "one", 0o644)
	first := repo.commit("first")
	repo.git("tag", "--annotate", "v1.2.0", "--message", "release")
	repo.write("main.c", "two", 0o644)
	second := repo.commit("second")

	for name, address := range map[string]string{"in place": repo.dir, "through a mirror": "file://" + repo.dir} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repos := revision.New(t.TempDir(), os.Environ())
			for tag, commit := range map[string]string{"1.2.0": first, "v1.2.0": first, first: first, first[:9]: first, "main": second, second: second} {
				got, err := repos.Resolve(t.Context(), address, tag)
				require.NoError(t, err, tag)
				require.Equal(t, revision.Revision{Commit: commit, Tree: repo.git("rev-parse", commit+"^{tree}")}, got, tag)
			}
			for _, tag := range []string{"9.9.9", "feature", strings.Repeat("a", 40), strings.Repeat("b", 12)} {
				_, err := repos.Resolve(t.Context(), address, tag)
				require.ErrorIs(t, err, revision.ErrNoRevision, tag)
				require.ErrorContains(t, err, tag)
			}
		})
	}
}

func TestRelativeRevisionsAreForPeopleAtTheRepository(t *testing.T) {
	t.Parallel()
	repo := newRepository(t)
	first := repo.commit("first")
	second := repo.commit("second")
	here := revision.New(t.TempDir(), os.Environ())
	here.Relative = true
	for name, commit := range map[string]string{"HEAD": second, "HEAD~1": first} {
		got, err := here.Resolve(t.Context(), repo.dir, name)
		require.NoError(t, err, name)
		require.Equal(t, commit, got.Commit, name)
		_, err = revision.New(t.TempDir(), os.Environ()).Resolve(t.Context(), repo.dir, name)
		require.ErrorIs(t, err, revision.ErrNoRevision, name)
		_, err = here.Resolve(t.Context(), "file://"+repo.dir, name)
		require.ErrorIs(t, err, revision.ErrNoRevision, name)
	}
	for _, name := range []string{"HEAD~2", "--all", "-"} {
		_, err := here.Resolve(t.Context(), repo.dir, name)
		require.ErrorIs(t, err, revision.ErrNoRevision, name)
	}
}

func TestAMirrorNeedsTheRepositoryOnlyForWhatItLacks(t *testing.T) {
	t.Parallel()
	repo := newRepository(t)
	repo.write("main.c", "one", 0o644)
	first := repo.commit("first")
	repos := revision.New(t.TempDir(), os.Environ())
	address := "file://" + repo.dir
	got, err := repos.Resolve(t.Context(), address, first)
	require.NoError(t, err)

	// A moved branch and a new commit are seen.
	second := repo.commit("second")
	moved, err := repos.Resolve(t.Context(), address, "main")
	require.NoError(t, err)
	require.Equal(t, second, moved.Commit)

	// The repository vanishes: known revisions still resolve, others report it.
	require.NoError(t, os.Rename(repo.dir, repo.dir+".away"))
	again, err := repos.Resolve(t.Context(), address, first)
	require.NoError(t, err)
	require.Equal(t, got, again)
	require.NoError(t, repos.Export(t.Context(), address, got, t.TempDir()))
	_, err = repos.Resolve(t.Context(), address, strings.Repeat("c", 40))
	require.ErrorIs(t, err, revision.ErrNoRepository)
}

func TestManyWhoWantARepositoryShareItsFetches(t *testing.T) {
	t.Parallel()
	repo := newRepository(t)
	repo.write("main.c", "one", 0o644)
	commit := repo.commit("first")
	for _, background := range []bool{false, true} {
		repos := revision.New(t.TempDir(), os.Environ())
		repos.Background = background
		errs := make(chan error, 8)
		for i := range cap(errs) {
			go func() {
				tag := commit
				if i%2 == 1 {
					tag = "main"
				}
				found, err := repos.Resolve(t.Context(), "file://"+repo.dir, tag)
				if err == nil && found.Commit != commit {
					err = fmt.Errorf("%s is %s", tag, found.Commit)
				}
				errs <- err
			}()
		}
		for range cap(errs) {
			require.NoError(t, <-errs)
		}
		_, err := repos.Resolve(t.Context(), "file://"+repo.dir, "v9")
		require.ErrorIs(t, err, revision.ErrNoRevision)
	}
}

// The caller gives up on a slow server; the next one gets what it sent.
func TestAFetchInTheBackgroundOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	repo := newRepository(t)
	repo.write("main.c", "one", 0o644)
	commit := repo.commit("first")
	repo.git("update-server-info")
	asked, release := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(asked); <-release })
	files := http.FileServer(http.Dir(filepath.Join(repo.dir, ".git")))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first()
		files.ServeHTTP(w, r)
	}))
	defer server.Close()
	repos := revision.New(t.TempDir(), append(os.Environ(), "no_proxy=*"))
	repos.Background = true
	ctx, giveUp := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := repos.Resolve(ctx, server.URL, commit)
		ended <- err
	}()
	<-asked
	giveUp()
	require.ErrorIs(t, <-ended, context.Canceled)
	close(release)
	found, err := repos.Resolve(t.Context(), server.URL, commit)
	require.NoError(t, err)
	require.Equal(t, commit, found.Commit)
}

func TestAnExportIsTheWholeTreeAndNothingElse(t *testing.T) {
	t.Parallel()
	repo := newRepository(t)
	repo.write("build.sh", "#!/bin/sh\n", 0o755)
	repo.write("tests/data.txt", "kept, although archives leave it out", 0o644)
	repo.write(".gitattributes", "tests export-ignore\n", 0o644)
	require.NoError(t, os.Symlink("build.sh", filepath.Join(repo.dir, "link")))
	commit := repo.commit("first")
	repo.write("untracked", "not part of it", 0o644)

	bare := filepath.Join(t.TempDir(), "bare.git")
	repo.git("clone", "--quiet", "--bare", repo.dir, bare)
	for name, address := range map[string]string{"in place": repo.dir, "bare": bare, "through a mirror": "file://" + repo.dir} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repos := revision.New(t.TempDir(), append(os.Environ(), "GIT_DIR=/nowhere", "GIT_INDEX_FILE=/nowhere"))
			rev, err := repos.Resolve(t.Context(), address, commit)
			require.NoError(t, err)
			dir := t.TempDir()
			require.NoError(t, repos.Export(t.Context(), address, rev, dir))
			var names []string
			require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					name, relErr := filepath.Rel(dir, path)
					require.NoError(t, relErr)
					names = append(names, name)
				}
				return err
			}))
			require.Equal(t, []string{".gitattributes", "build.sh", "link", "tests/data.txt"}, names)
			info, err := os.Stat(filepath.Join(dir, "build.sh"))
			require.NoError(t, err)
			require.NotZero(t, info.Mode()&0o111)

			rev.Tree = strings.Repeat("a", 40)
			require.ErrorIs(t, repos.Export(t.Context(), address, rev, t.TempDir()), revision.ErrNoRevision)
		})
	}
	require.Empty(t, repo.git("status", "--porcelain", "--untracked-files=no"), "the repository's own index is untouched")
}

func TestWhatIsWrongWithARepositoryHasItsKind(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	missing := httptest.NewServer(http.NotFoundHandler())
	defer missing.Close()
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	defer broken.Close()
	noRepository := t.TempDir()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	// Git must not find the repository that contains this test.
	repos := revision.New(t.TempDir(), append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(noRepository), "no_proxy=*"))
	for address, kind := range map[string]error{
		noRepository: revision.ErrNoRepository, noRepository + "/gone": revision.ErrNoRepository, file: revision.ErrNoRepository,
		"file://" + noRepository + "/gone": revision.ErrNoRepository,
		missing.URL + "/repo.git":          revision.ErrNoRepository, broken.URL + "/repo.git": revision.ErrUnreachable, closed.URL + "/repo.git": revision.ErrUnreachable,
	} {
		_, err := repos.Resolve(t.Context(), address, "v1")
		require.ErrorIs(t, err, kind, address)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := repos.Resolve(ctx, "file://"+noRepository, "v1")
	require.ErrorIs(t, err, context.Canceled)
}

func TestPasswordsAreNotShown(t *testing.T) {
	t.Parallel()
	require.Equal(t, "https://xxxxx@example.org/repo.git", revision.Redact("https://ada:secret@example.org/repo.git"))
	require.Equal(t, "https://xxxxx@example.org/repo.git", revision.Redact("https://token@example.org/repo.git"))
	require.Equal(t, "unable to access 'https://xxxxx@example.org/': 403; ssh://git@example.org/a, ssh://xxxxx@example.org/b",
		revision.Redact("unable to access 'https://ada:se@cret@example.org/': 403; ssh://git@example.org/a, ssh://git:secret@example.org/b"))
	require.Equal(t, "https://example.org/@a", revision.Redact("https://example.org/@a"))
	require.Equal(t, "git@example.org:repo.git", revision.Redact("git@example.org:repo.git"))
	require.Equal(t, "/srv/repo.git", revision.Redact("/srv/repo.git"))
}
