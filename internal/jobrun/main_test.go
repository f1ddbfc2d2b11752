//go:build unix

package jobrun_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/suite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// processes is a sandbox that runs real processes without limiting or counting
// them. The real one has a test of its own in sandbox_test.go.
type processes struct {
	dir string
	// change, if set, alters the sample of a command that has ended.
	change func(measure.Command, *measure.Sample)
	// started, if set, is called with each command before it runs.
	started func(measure.Command)
	// shown are the directories that each job showed.
	shown []measure.Shown
}

func (p *processes) WorkDir() string { return p.dir }
func (p *processes) TempDir() string { return filepath.Join(p.dir, "tmp") }

func (p *processes) Stuck() error { return nil }

func (p *processes) Show(dirs measure.Shown) error {
	p.shown = append(p.shown, dirs)
	return nil
}

func (p *processes) Clean(context.Context) error {
	entries, err := os.ReadDir(p.dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(p.dir, e.Name())))
	}
	return errors.Join(err, os.Mkdir(p.TempDir(), 0o755))
}

func (p *processes) Run(ctx context.Context, c measure.Command) (measure.Sample, error) {
	if p.started != nil {
		p.started(c)
	}
	if c.FreshTemp {
		if err := errors.Join(os.RemoveAll(p.TempDir()), os.Mkdir(p.TempDir(), 0o755)); err != nil {
			return measure.Sample{}, err
		}
	}
	runCtx, cancel := ctx, func() {}
	if c.Timeout > 0 {
		runCtx, cancel = context.WithTimeout(ctx, c.Timeout)
	}
	defer cancel()
	cmd := exec.CommandContext(runCtx, c.Argv[0], c.Argv[1:]...)
	cmd.Dir, cmd.Env = c.Dir, c.Env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	both := &locked{w: c.Output}
	cmd.Stdout, cmd.Stderr = both, both
	if c.Stdout != nil {
		cmd.Stdout = &locked{w: both, also: c.Stdout}
	}
	if c.Begin != nil {
		c.Begin()
	}
	began := time.Now()
	err := cmd.Run()
	sample := measure.Sample{Status: measure.StatusExited, Wall: time.Since(began)}
	if state := cmd.ProcessState; state != nil {
		sample.ExitCode = state.ExitCode()
		sample.UserCPU, sample.SystemCPU = state.UserTime(), state.SystemTime()
	}
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return measure.Sample{Status: measure.StatusNotStarted, ExitCode: -1}, &measure.StartError{Program: c.Argv[0], Err: os.ErrNotExist}
	case ctx.Err() != nil:
		sample.Status = measure.StatusCancelled
		return sample, ctx.Err()
	case runCtx.Err() != nil:
		sample.Status = measure.StatusTimedOut
	}
	if p.change != nil {
		p.change(c, &sample)
	}
	return sample, nil
}

// locked is a writer for two goroutines.
type locked struct {
	mu      sync.Mutex
	w, also interface{ Write([]byte) (int, error) }
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.also != nil {
		_, _ = l.also.Write(b)
	}
	return l.w.Write(b)
}

// shellSuite is a suite of shell commands. Each function gets the paths and may
// be nil.
type shellSuite struct {
	preparation func(suite.Variant, suite.Paths) (suite.Preparation, error)
	recipe      func(bench.TestCase, suite.Paths) (suite.Recipe, error)
	iterations  int // 2 by default
	required    []bench.Metric
}

func (s shellSuite) Preparation(v suite.Variant, p suite.Paths) (suite.Preparation, error) {
	if s.preparation == nil {
		return suite.Preparation{}, nil
	}
	return s.preparation(v, p)
}

func (s shellSuite) Recipe(tc bench.TestCase, p suite.Paths, iterations int) (suite.Recipe, error) {
	r, err := s.recipe(tc, p)
	r.Iterations = cmp.Or(iterations, r.Iterations, s.iterations, 2)
	return r, err
}

func (s shellSuite) RequiredMetrics() []bench.Metric { return s.required }

// sh returns a measured shell command in ${work}.
func sh(p suite.Paths, script string) suite.Measurement {
	return suite.Measurement{Run: []string{"sh", "-c", script}, Dir: p.Work, Env: environment(p)}
}

// step returns a shell command in ${prepared}.
func step(p suite.Paths, script string) suite.Step {
	return suite.Step{Run: []string{"sh", "-c", script}, Dir: p.Prepared, Env: environment(p)}
}

// workStep returns a shell command in ${work}.
func workStep(p suite.Paths, script string) suite.Step {
	return suite.Step{Run: []string{"sh", "-c", script}, Dir: p.Work, Env: environment(p)}
}

// environment passes scripts the paths, and JOURNAL, a file that outlives them.
func environment(p suite.Paths) []string {
	return []string{
		"ARTIFACT=" + p.Artifact, "PREPARED=" + p.Prepared, "WORK=" + p.Work, "CACHE=" + p.Cache,
		"JOURNAL=" + filepath.Join(p.Suite, "journal"), "SUITE=" + p.Suite,
	}
}

// bundle is everything one test needs.
type bundle struct {
	machine jobrun.Machine
	sandbox *processes
	suite   string // directory; holds the journal
	sink    *sink
	log     *bytes.Buffer
}

func newBundle(t *testing.T) *bundle {
	t.Helper()
	root := t.TempDir()
	b := &bundle{sandbox: &processes{dir: filepath.Join(root, "slot")}, suite: filepath.Join(root, "suite"), sink: &sink{}, log: &bytes.Buffer{}}
	for _, dir := range []string{b.sandbox.dir, b.sandbox.TempDir(), b.suite, filepath.Join(root, "cache")} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	b.machine = jobrun.Machine{
		Sandbox: b.sandbox, CacheDir: filepath.Join(root, "cache"), CPUs: 1, Now: time.Now, Log: b.log,
	}
	return b
}

// artifact creates an artifact directory with one file, "tag".
func (b *bundle) artifact(t *testing.T, tag string) jobrun.Subject {
	t.Helper()
	dir := filepath.Join(filepath.Dir(b.suite), "artifact-"+tag)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tag"), []byte(tag), 0o644))
	return jobrun.Subject{Tag: tag, Artifact: dir}
}

// job returns a job of test cases named "benchmark/scenario", on artifact A.
func (b *bundle) job(t *testing.T, s shellSuite, testCases ...string) jobrun.Job {
	t.Helper()
	job := jobrun.Job{Kind: bench.KindCompileTime, Subjects: []jobrun.Subject{b.artifact(t, "A")}, Suite: s, SuiteDir: b.suite}
	for _, name := range testCases {
		job.TestCases = append(job.TestCases, testCase(name))
	}
	return job
}

func testCase(name string) bench.TestCase {
	benchmark, scenario, _ := strings.Cut(name, "/")
	return bench.TestCase{Benchmark: benchmark, Profile: "build", Scenario: scenario, Backend: "gc", Target: "x86_64-unknown-linux-gnu"}
}

// journal returns the lines that the commands wrote.
func (b *bundle) journal(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(b.suite, "journal"))
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

func (b *bundle) run(t *testing.T, job jobrun.Job) error {
	t.Helper()
	return jobrun.Run(t.Context(), b.machine, job, b.sink)
}

// sink collects blocks and progress.
type sink struct {
	blocks   []jobrun.Block
	progress []jobrun.Progress
	onBlock  func(jobrun.Block) error
}

func (s *sink) Block(_ context.Context, b jobrun.Block) error {
	if s.onBlock != nil {
		if err := s.onBlock(b); err != nil {
			return err
		}
	}
	s.blocks = append(s.blocks, b)
	return nil
}

func (s *sink) Progress(p jobrun.Progress) { s.progress = append(s.progress, p) }

// results returns all results by "benchmark/scenario subject".
func (s *sink) results() map[string]jobrun.Result {
	all := map[string]jobrun.Result{}
	for _, b := range s.blocks {
		for _, r := range b.Results {
			all[r.TestCase.Benchmark+"/"+r.TestCase.Scenario+" "+r.Subject] = r
		}
	}
	return all
}

// failure returns the failure of a test case on artifact A.
func (s *sink) failure(t *testing.T, name string) *jobrun.Failure {
	t.Helper()
	r, ok := s.results()[name+" A"]
	require.True(t, ok, "no result of %s", name)
	require.NotNil(t, r.Failure, "%s has not failed", name)
	require.Empty(t, r.Collections)
	return r.Failure
}
