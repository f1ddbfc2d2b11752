// Package scripts_test checks the scripts that decide whether a change passes.
package scripts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// run runs a script of the repository in a directory and returns what it says.
func run(t *testing.T, dir string, env []string, script string, args ...string) (said string, failed bool) {
	t.Helper()
	path, err := filepath.Abs(script)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError))
	}
	return string(out), err != nil
}

func TestCommitMessages(t *testing.T) {
	t.Parallel()
	branch := func(name string) string {
		dir := t.TempDir()
		out, err := exec.CommandContext(t.Context(), "git", "init", "-q", "-b", name, dir).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return dir
	}
	main, topic := branch("main"), branch("topic")
	for name, c := range map[string]struct{ dir, message, says string }{
		"a subject":                {main, "Order releases by version\n", ""},
		"a subject and a body":     {main, "Order releases by version\n\n" + strings.Repeat("a long line ", 20) + "\n", ""},
		"comments are left out":    {main, "# a comment\nOrder releases\n# another\n\nBody\n", ""},
		"a diff is left out":       {main, "Order releases\n# ------------------------ >8 ------------------------\ndiff --git\n", ""},
		"72 characters, not bytes": {main, "A" + strings.Repeat("é", 71) + "\n", ""},
		"git's own":                {main, "Merge branch 'a branch with a name that is far too long to be in the subject of a commit'\n", ""},
		"a fixup elsewhere":        {topic, "fixup! Order releases by version\n", ""},
		"work in progress":         {topic, "WIP on the order\n", ""},
		"nothing":                  {main, "\n# nothing\n", "the subject is missing"},
		"73 characters":            {main, "A" + strings.Repeat("é", 72) + "\n", "has 73 characters"},
		"lower case":               {main, "order releases\n", "begins in lower case"},
		"a full stop":              {main, "Order releases.\n", "full stop"},
		"not in the imperative":    {main, "Added an order\n", "not in the imperative"},
		"no blank line":            {main, "Order releases\nby version\n", "second line is not blank"},
		"a fixup on main":          {main, "fixup! Order releases by version\n", "squash"},
		"work in progress on main": {main, "WIP on the order\n", "work in progress"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "message")
			require.NoError(t, os.WriteFile(file, []byte(c.message), 0o600))
			said, failed := run(t, c.dir, nil, "../.githooks/commit-msg", file)
			require.Equal(t, c.says != "", failed, said)
			require.Contains(t, said, c.says)
		})
	}
}

func TestFindingsFailAndAMissingDatabaseIsReported(t *testing.T) {
	t.Parallel()
	const away = `govulncheck: fetching vulnerabilities: Get "https://vuln.go.dev/index/modules.json.gz": dial tcp: lookup vuln.go.dev: no such host`
	const notice = "NOTHING WAS CHECKED"
	for name, c := range map[string]struct {
		exit, says string
		env        []string
		fails      bool
		notice     bool
	}{
		"nothing found":                 {exit: "0"},
		"findings":                      {exit: "3", says: "Vulnerability #1", fails: true},
		"findings that name an address": {exit: "3", says: away, fails: true},
		"no database":                   {exit: "1", says: away, notice: true},
		"no database, which is needed":  {exit: "1", says: away, env: []string{"VULNCHECK=required"}, notice: true, fails: true},
		"code that does not compile":    {exit: "1", says: "govulncheck: loading packages: there are errors", fails: true},
		"a broken database":             {exit: "1", says: "govulncheck: fetching vulnerabilities: unexpected end of JSON input", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stub := filepath.Join(t.TempDir(), "govulncheck")
			require.NoError(t, os.WriteFile(stub, []byte("#!/bin/sh\ncat >&2 <<'end'\n"+c.says+"\nend\nexit "+c.exit+"\n"), 0o700))
			said, failed := run(t, ".", c.env, "vulncheck", stub)
			require.Equal(t, c.fails, failed, said)
			require.Contains(t, said, c.says)
			require.Equal(t, c.notice, strings.Contains(said, notice), said)
		})
	}
}
