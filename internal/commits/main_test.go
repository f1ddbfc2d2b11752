package commits_test

import (
	"fmt"
	"io"
	"log" //nolint:depguard // the type that the server wants
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/commits"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// epoch is the date of the first commit; each later one is an hour after the
// previous one.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// repository is a repository written by a test.
type repository struct {
	t    *testing.T
	dir  string
	made int
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	r := &repository{t: t, dir: filepath.Join(t.TempDir(), "repo")}
	require.NoError(t, os.Mkdir(r.dir, 0o755))
	r.git("init", "--quiet", "--initial-branch=main")
	return r
}

// git runs git in the repository, with fixed names and dates.
func (r *repository) git(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", args...)
	cmd.Dir = r.dir
	date := fmt.Sprintf("%d +0000", epoch.Add(time.Duration(r.made)*time.Hour).Unix())
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org",
		"GIT_COMMITTER_NAME=Bob", "GIT_COMMITTER_EMAIL=bob@example.org", "GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date)
	out, err := cmd.CombinedOutput()
	require.NoError(r.t, err, "git %v: %s", args, out)
	return strings.TrimSpace(string(out))
}

// commit creates a commit and returns its SHA.
func (r *repository) commit(subject string) string {
	r.t.Helper()
	r.made++
	require.NoError(r.t, os.WriteFile(filepath.Join(r.dir, "file"), []byte(subject), 0o644))
	r.git("add", "file")
	r.git("commit", "--quiet", "--allow-empty", "-m", subject)
	return r.git("rev-parse", "HEAD")
}

// source opens a repository as configured.
func source(t *testing.T, config bench.CommitSource) commits.Source {
	t.Helper()
	s, err := commits.Opener{CacheDir: filepath.Join(t.TempDir(), "mirrors"), Environ: os.Environ()}.Open(config)
	require.NoError(t, err)
	return s
}

// all selects everything.
var all = commits.Query{Most: 1000, Releases: "v*"}

func look(t *testing.T, s commits.Source, q commits.Query) commits.History {
	t.Helper()
	h, err := s.Read(t.Context(), q)
	require.NoError(t, err)
	return h
}

func subjects(h commits.History) []string {
	var out []string
	for _, c := range h.Commits {
		out = append(out, c.Subject)
	}
	return out
}

// serve serves a directory of repositories over HTTP, like a git server.
func serve(t *testing.T, root string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "--exec-path").Output()
	require.NoError(t, err)
	server := httptest.NewServer(&cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"),
		Env: []string{
			"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=2",
			"GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "GIT_CONFIG_KEY_1=uploadpack.allowFilter", "GIT_CONFIG_VALUE_1=true",
		},
		Stderr: io.Discard, Logger: log.New(io.Discard, "", 0),
		InheritEnv: []string{"PATH", "HOME"},
	})
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return server.URL
}
