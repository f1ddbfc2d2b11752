// Package badinput_test tests the whole service with bad input and in bad conditions.
// Each case of testdata/cases.txt is one script that runs the real binaries. It must
// end in an error that names the thing, the reason and the remedy, and a good job must
// run right afterwards.
//
// It needs the binaries that 'make build' makes, or those named by BENCHLOOM_BIN and
// BENCHLOOM_TEMPORAL_DEV. The scripts must not reach into the service: they know only
// what a person reads, types and sends.
package badinput_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/benchloom/benchloom/internal/measure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bound ends everything that hangs; a good run takes a fraction of it.
const bound = 20 * time.Minute

func TestBadInput(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	t.Cleanup(func() {
		left, err := processesOf(root)
		require.NoError(t, err)
		require.Empty(t, left, "no process is left behind")
	})
	w := newWorld(t, root)
	files, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	require.NoError(t, err)
	testscript.Run(t, testscript.Params{
		Files: files, WorkdirRoot: w.scripts, Setup: w.setup, Cmds: w.commands(), Condition: w.condition,
		RequireExplicitExec: true, RequireUniqueNames: true, Deadline: time.Now().Add(bound),
	})
}

// Every case has a script, and every script is listed. Each script must check an error
// that explains itself, and end with a good job.
func TestCasesAndScriptsMatch(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "cases.txt"))
	require.NoError(t, err)
	var cases []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, about, ok := strings.Cut(line, ": ")
		require.True(t, ok && about != "", "%q is not 'name: what it is about'", line)
		cases = append(cases, name)
	}
	require.True(t, slices.IsSorted(cases), "cases are in alphabetical order")
	require.Len(t, slices.Compact(slices.Clone(cases)), len(cases), "a case is listed twice")
	require.GreaterOrEqual(t, len(cases), 16)

	files, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	require.NoError(t, err)
	var scripts []string
	for _, file := range files {
		scripts = append(scripts, strings.TrimSuffix(filepath.Base(file), ".txtar"))
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		script, _, _ := strings.Cut("\n"+string(text), "\n-- ")
		lines := strings.Split(strings.TrimSpace(script), "\n")
		require.Contains(t, script, "\nexplains ", "%s: an error that explains itself", file)
		require.Regexp(t, `^goodjob\b`, lines[len(lines)-1], "%s: a good job at the end", file)
	}
	slices.Sort(scripts)
	require.Equal(t, cases, scripts)
}

// world is shared by all scripts: the binaries and one stack.
type world struct {
	t        *testing.T
	programs string // directory with benchloom
	temporal string // the embedded Temporal
	scripts  string // parent of the scripts' directories
	shared   *stack
}

func newWorld(t *testing.T, root string) *world {
	t.Helper()
	w := &world{t: t, programs: filepath.Join(root, "bin"), scripts: filepath.Join(root, "w")}
	for _, dir := range []string{w.programs, w.scripts} {
		require.NoError(t, os.Mkdir(dir, 0o755))
	}
	w.temporal = binary(t, "BENCHLOOM_TEMPORAL_DEV", "temporal-dev")
	require.NoError(t, os.Symlink(binary(t, "BENCHLOOM_BIN", "benchloom"), filepath.Join(w.programs, "benchloom")))
	t.Cleanup(func() {
		if t.Failed() {
			w.dump()
		}
	})
	home := filepath.Join(root, "home")
	require.NoError(t, os.Mkdir(home, 0o755))
	var err error
	w.shared, err = startStack(w.benchloom(), filepath.Join(root, "shared"), w.environ(home, root), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.shared.stop()) })
	return w
}

func (w *world) benchloom() string { return filepath.Join(w.programs, "benchloom") }

// binary finds a program built by 'make build'.
func binary(t *testing.T, variable, name string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		path = filepath.Join("..", "..", "..", "bin", name)
	}
	path, err := filepath.Abs(path)
	require.NoError(t, err)
	_, err = os.Stat(path)
	require.NoError(t, err, "%s is missing: run 'make build'", name)
	return path
}

// environ returns the whole environment of a service, with nothing of the developer's.
func (w *world) environ(home, temporary string) []string {
	return []string{
		"PATH=" + w.programs + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + temporary,
		"BENCHLOOM_TEMPORAL_DEV=" + w.temporal, "GOTOOLCHAIN=local", "GOFLAGS=", "GOSUMDB=off",
		"BENCHLOOM_ISOLATION=off", // artifacts and repositories lie in directories that others cannot enter
	}
}

func (w *world) setup(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, "home")
	if err := os.MkdirAll(home, 0o755); err != nil {
		return err
	}
	env.Vars = append(env.Vars, w.environ(home, env.Getenv("TMPDIR"))...)
	s := &session{world: w, vars: slices.Clone(env.Vars), stacks: map[string]*stack{}, work: env.WorkDir}
	env.Values[sessionKey{}] = s
	env.Defer(func() {
		if err := s.close(); err != nil {
			env.T().Log(err)
			env.T().FailNow()
		}
	})
	return nil
}

// condition reports whether the machine has an ability that some scripts use. Scripts
// must make sense without it.
func (w *world) condition(name string) (bool, error) {
	switch name {
	case "root":
		return os.Geteuid() == 0, nil
	case "counters":
		return measure.ProbeCounters()[measure.CounterInstructions] == nil, nil
	case "memory_limit":
		return w.enforces(measure.SandboxConfig{Name: "probe", MemoryBytes: 256 << 20, Isolation: measure.Isolation{Off: true}}, measure.LimitMemory)
	}
	return false, fmt.Errorf("unknown condition %q", name)
}

func (w *world) enforces(config measure.SandboxConfig, limit measure.Limit) (yes bool, err error) {
	dir, err := os.MkdirTemp(w.scripts, "probe-")
	if err != nil {
		return false, err
	}
	config.WorkDir = dir
	sandbox, err := measure.NewSandbox(config)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, sandbox.Close()) }()
	return !slices.ContainsFunc(sandbox.Unenforced(), func(u measure.Unenforced) bool { return u.Name == limit }), nil
}

// dump prints the ends of all logs below the root after a failed test.
func (w *world) dump() {
	for _, pattern := range []string{"../shared/logs/*.log", "../shared/up.log", "*/*.log", "*/*/logs/*.log", "*/*/up.log"} {
		files, _ := filepath.Glob(filepath.Join(w.scripts, filepath.FromSlash(pattern)))
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				continue
			}
			w.t.Logf("%s:\n%s", strings.TrimPrefix(file, w.scripts), text[max(0, len(text)-4000):])
		}
	}
}

// processesOf finds the processes whose command line or working directory names the
// directory.
func processesOf(root string) ([]string, error) {
	return processes(func(line, dir string) bool { return strings.Contains(line, root) || strings.HasPrefix(dir, root) })
}

// processes finds processes other than this one by command line and working directory.
// It finds none where there is no /proc.
func processes(match func(line, dir string) bool) ([]string, error) {
	if runtime.GOOS != "linux" {
		return nil, nil
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		if strings.Trim(e.Name(), "0123456789") != "" || e.Name() == strconv.Itoa(os.Getpid()) {
			continue
		}
		text, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline")) // it may have ended
		dir, _ := os.Readlink(filepath.Join("/proc", e.Name(), "cwd"))
		line := strings.TrimSuffix(strings.ReplaceAll(string(text), "\x00", " "), " ")
		if match(line, dir) {
			found = append(found, e.Name()+" "+line)
		}
	}
	return found, nil
}
