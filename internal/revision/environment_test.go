//go:build unix

package revision_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/revision"
)

// A stand-in for git notes the environment that it is given. Not parallel: it takes
// git's place on the PATH.
func TestGitSeesNoSecrets(t *testing.T) {
	repo := newRepository(t)
	repo.write("main.c", "one", 0o644)
	commit := repo.commit("first")
	real, err := exec.LookPath("git")
	require.NoError(t, err)
	dir := t.TempDir()
	seen := filepath.Join(dir, "seen")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "git"), []byte("#!/bin/sh\nenv >>"+seen+"\nexec "+real+` "$@"`+"\n"), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))

	repos := revision.New(t.TempDir(), append(os.Environ(),
		"BENCHLOOM_TOKEN=secret", "DATABASE_URL=postgres://secret", "TEMPORAL_API_KEY=secret", "AWS_SECRET_ACCESS_KEY=secret",
		"GIT_DIR=/elsewhere", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.fsmonitor", "GIT_CONFIG_VALUE_0=/elsewhere",
		"HTTPS_PROXY=http://proxy.example.org", "SSH_AUTH_SOCK=/run/agent"))
	found, err := repos.Resolve(t.Context(), "file://"+repo.dir, commit)
	require.NoError(t, err)
	require.NoError(t, repos.Export(t.Context(), "file://"+repo.dir, found, t.TempDir()))

	text, err := os.ReadFile(seen)
	require.NoError(t, err)
	require.NotContains(t, string(text), "secret")
	require.NotContains(t, string(text), "elsewhere")
	for _, needed := range []string{"HTTPS_PROXY=http://proxy.example.org", "SSH_AUTH_SOCK=/run/agent", "GIT_TERMINAL_PROMPT=0", "PATH=" + dir} {
		require.Contains(t, string(text), needed)
	}
	for line := range strings.Lines(string(text)) {
		name, _, _ := strings.Cut(line, "=")
		require.Contains(t, allowed, name)
	}
}

// allowed lists all variables that git may see; the shell of the stand-in adds the last
// ones.
var allowed = []string{
	"LC_ALL", "GIT_TERMINAL_PROMPT", "GIT_ASKPASS", "SSH_ASKPASS", "GCM_INTERACTIVE", "GIT_SSH_COMMAND", "GIT_NO_REPLACE_OBJECTS", "GIT_OPTIONAL_LOCKS", "GIT_ALLOW_PROTOCOL",
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	"GIT_SSH", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_CERT", "GIT_SSL_KEY", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CEILING_DIRECTORIES", "GIT_INDEX_FILE",
	"PWD", "OLDPWD", "SHLVL", "_",
}
