package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The README promises that a person with a Go module needs this little.
const (
	readmeCommands = 5
	readmeTime     = 10 * time.Minute // on two cores
)

// TestLongFromAnEmptyFolderToAVerdict executes the commands under a heading of the README
// as they stand there, in an empty folder, for a person whose module became slower with
// its last commit. The repository that they clone is the present working tree.
func TestLongFromAnEmptyFolderToAVerdict(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	script := docScript(t, filepath.Join(root, "README.md"), "### A Go module of your own\n")
	require.LessOrEqual(t, strings.Count(script, "\n"), readmeCommands)

	home, empty := t.TempDir(), t.TempDir()
	moduleWithAHistory(t, filepath.Join(home, "src", "my-module"))
	ctx, stop := context.WithTimeout(t.Context(), readmeTime)
	defer stop()
	cmd := exec.CommandContext(ctx, "sh", "-euxc", script)
	cmd.Dir, cmd.WaitDelay = empty, 10*time.Second
	cmd.Env = []string{
		"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LANG=C", "GOPROXY=" + goEnv(t, "GOPROXY"), "GOFLAGS=" + goEnv(t, "GOFLAGS"),
		// Modules and packages are not downloaded and compiled anew.
		"GOMODCACHE=" + goEnv(t, "GOMODCACHE"), "GOCACHE=" + goEnv(t, "GOCACHE"),
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://" + snapshot(t, root) + ".insteadOf", "GIT_CONFIG_VALUE_0=https://github.com/benchloom/benchloom",
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), "%s\n%s", stdout.String(), stderr.String())
	t.Log(stdout.String())

	require.Regexp(t, `created suite my-module in my-suite: 2 benchmarks in 2 packages of example.org/my-module`, stdout.String())
	rows := nsPerOp(t, stdout.String())
	for _, slower := range []string{"Sum/n=100", "Sum/n=10000"} {
		require.Regexp(t, `\+[0-9.]+ %.*changed, regression`, rows[slower], "the last commit triples its work")
	}
	// Without load of the machine there is no difference; with load that is undecided.
	require.Regexp(t, `no difference|undecided`, rows["words.Count"], "the last commit does not touch it")
}

// nsPerOp returns the rows of the table of ns/op by benchmark.
func nsPerOp(t *testing.T, output string) map[string]string {
	t.Helper()
	_, table, found := strings.Cut(output, "\nns/op (")
	require.True(t, found, output)
	table, _, _ = strings.Cut(table, "\n\n")
	rows := make(map[string]string)
	for _, row := range strings.Split(table, "\n") {
		name, _, _ := strings.Cut(row, " ")
		rows[name] = row
	}
	return rows
}

// moduleWithAHistory is a Go module with two commits; the second triples the work of
// one of its two benchmarks.
func moduleWithAHistory(t *testing.T, dir string) {
	t.Helper()
	const sum = `// Package sum adds numbers.
package sum

// Sum returns the sum of a list.
func Sum(list []int) (sum int) {
	for range %d {
		for _, n := range list {
			sum = sum*31 + n
		}
	}
	return sum
}
`
	write := func(name, text string) {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	write("go.mod", "module example.org/my-module\n\ngo 1.24\n")
	write("sum.go", fmt.Sprintf(sum, 1))
	write("sum_test.go", `package sum

import (
	"fmt"
	"testing"
)

var total int

func BenchmarkSum(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			list := make([]int, n)
			for b.Loop() {
				total += Sum(list)
			}
		})
	}
}
`)
	write("words/words.go", `// Package words counts words.
package words

import "strings"

// Count returns the number of words in a text.
func Count(text string) int { return len(strings.Fields(text)) }
`)
	write("words/testdata/text", strings.Repeat("all work and no play\n", 500))
	write("words/words_test.go", `package words_test

import (
	"os"
	"testing"

	"example.org/my-module/words"
)

func BenchmarkCount(b *testing.B) {
	text, err := os.ReadFile("testdata/text")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		words.Count(string(text))
	}
}
`)
	commitAll(t, dir)
	write("sum.go", fmt.Sprintf(sum, 3))
	commitAll(t, dir)
}

// snapshot returns a repository whose only commit has the files of a working tree, as
// they are now.
func snapshot(t *testing.T, root string) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	names, err := list.Output()
	require.NoError(t, err, "the working tree is a git repository")
	dir := t.TempDir()
	for _, name := range strings.Split(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join(root, name))
		if err != nil || !info.Mode().IsRegular() {
			continue // removed since the last commit, or a link
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, info.Mode()&fs.ModePerm))
	}
	commitAll(t, dir)
	return dir
}

// commitAll commits all files of a directory, which becomes a repository.
func commitAll(t *testing.T, dir string) {
	t.Helper()
	for _, args := range [][]string{{"init", "--quiet", "--initial-branch=main"}, {"add", "--all", "--force"}, {"commit", "--quiet", "--message", "change"}} {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false"}, args...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
	}
}

// goEnv returns a setting of the go command.
func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}
