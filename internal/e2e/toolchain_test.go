package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/e2e/slowgo"
	"github.com/benchloom/benchloom/internal/report"
	"github.com/benchloom/benchloom/internal/verdict"
)

func localGoroot(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// standardLibrary compiles the standard library of a toolchain as prepare.sh of the suite go
// does, and returns the build cache and the toolchain's version. The cache outlives the tests:
// compiling takes minutes of CPU time, for each test that begins with an empty one.
var standardLibrary = sync.OnceValues(func() (built struct{ dir, version string }, err error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return built, err
	}
	version, err := exec.Command("go", "env", "GOVERSION").Output()
	if err != nil {
		return built, err
	}
	built.version = strings.TrimSpace(string(version))
	built.dir = filepath.Join(base, "benchloom-test", "standard-library", built.version)
	command := exec.Command("go", "build", "std")
	command.Env = append(os.Environ(), "GOCACHE="+built.dir, "GOFLAGS=-trimpath -buildvcs=false", "CGO_ENABLED=0", "GOTOOLCHAIN=local", "GOWORK=off")
	if out, err := command.CombinedOutput(); err != nil {
		return built, fmt.Errorf("compiling the standard library: %w: %s", err, out)
	}
	return built, nil
})

// withStandardLibrary puts the compiled standard library into the caches of the suite go.
func withStandardLibrary(t *testing.T, caches string) {
	t.Helper()
	built, err := standardLibrary()
	require.NoError(t, err)
	prepared := filepath.Join(caches, "gocache", built.version)
	require.NoError(t, os.MkdirAll(prepared, 0o700))
	// The go command replaces the files of a cache and never writes into them. They are copied
	// where they cannot be linked.
	to := filepath.Join(prepared, "build-gc")
	if exec.Command("cp", "-al", built.dir, to).Run() != nil {
		require.NoError(t, os.RemoveAll(to))
		require.NoError(t, exec.Command("cp", "-a", built.dir, to).Run())
	}
}

// localCache returns a directory for --cache-dir of 'benchloom bench', with the standard library.
func localCache(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	withStandardLibrary(t, filepath.Join(dir, "suites", "go"))
	return dir
}

// withStandardLibrary puts the compiled standard library where the collector's jobs of the project go find it.
func (s *stack) withStandardLibrary(t *testing.T) {
	t.Helper()
	withStandardLibrary(t, filepath.Join(s.dir, "collectors", "local-1", "caches", "go", "go"))
}

// One real toolchain is compared with itself under another name by the real binary:
// both sides are complete, and exact metrics are equal. 'make bench' checks times, on a
// quiet machine.
func TestLongRealToolchainsAreCompared(t *testing.T) {
	t.Parallel()
	goroot := localGoroot(t)
	command := exec.Command(binary(t, "BENCHLOOM_BIN", "benchloom"), "bench", filepath.Join(repository(t), "suites", "go"),
		"--artifact", "same", "--vs", "real", "--goroot", "same="+goroot, "--goroot", "real="+goroot, "--cache-dir", localCache(t),
		"--benchmark", "gojq", "--profile", "build", "--scenario", "full", "--backend", "gc", "--iterations", fmt.Sprint(perSide), "-o", "json")
	out, err := command.Output()
	require.NoError(t, err, "%s", out)
	var local struct {
		Comparison report.Report `json:"comparison"`
	}
	require.NoError(t, json.Unmarshal(out, &local))
	requireComplete(t, local.Comparison.Rows)
}

// A go command that burns a fifth more CPU time is never found to make no difference, however busy the machine is: its CPU
// time has changed for the worse, or is undecided.
func TestLongAPlantedSlowdownIsNeverNoDifference(t *testing.T) {
	t.Parallel()
	goroot := localGoroot(t)
	slow, err := slowgo.Make(t.Context(), goroot, t.TempDir())
	require.NoError(t, err)
	command := exec.Command(binary(t, "BENCHLOOM_BIN", "benchloom"), "bench", filepath.Join(repository(t), "suites", "go"),
		"--artifact", "slow", "--vs", "real", "--goroot", "slow="+slow, "--goroot", "real="+goroot, "--cache-dir", localCache(t),
		"--benchmark", "lo", "--profile", "build", "--scenario", "full", "--backend", "gc", "-o", "json")
	out, err := command.Output()
	require.NoError(t, err, "%s", out)
	var local struct {
		Comparison report.Report `json:"comparison"`
	}
	require.NoError(t, json.Unmarshal(out, &local))
	found := false
	for _, r := range local.Comparison.Rows {
		if r.Metric != string(bench.CPUTime) {
			continue
		}
		found = true
		require.False(t, r.Is(verdict.NoDifference), "%+v", r)
		require.NotEqual(t, report.Improvement, r.Direction, "%+v", r)
		t.Logf("CPU time: %s, %+.1f %% in %d pairs: %s", r.Verdict, 100*r.Turns.Change, r.Turns.Pairs, r.Reason)
	}
	require.True(t, found)
}

// perSide is the number of iterations per side of a comparison of toolchains: enough for
// a verdict.
const perSide = 4

// requireComplete checks a comparison of a toolchain with itself, as far as the result
// does not depend on the machine.
func requireComplete(t *testing.T, rows []report.Row) {
	t.Helper()
	found := make(map[string]report.Row)
	for _, r := range rows {
		found[r.Metric] = r
		require.Equal(t, []int{perSide, perSide}, []int{r.A.N, r.B.N}, r.Key)
		require.Positive(t, r.A.Value, r.Key)
		require.Positive(t, r.B.Value, r.Key)
	}
	for _, metric := range []bench.Metric{bench.CPUTime, bench.WallTime, "size:binary"} {
		require.Contains(t, found, string(metric))
	}
	size := found["size:binary"]
	require.Equal(t, []float64{size.A.Min, 0}, []float64{size.B.Max, size.Change.Value}, "the same binary, byte for byte")
	require.True(t, size.Is(verdict.NoDifference), size.Reason)
}

// A real toolchain is measured by the whole service: every series has its collections,
// and the measured binary has the size of one built by hand.
func TestLongRealToolchainThroughTheService(t *testing.T) {
	t.Parallel()
	const iterations = 2
	goroot := localGoroot(t)
	s := startStack(t)
	s.withStandardLibrary(t)
	s.applyProject(t, "go", filepath.Join(repository(t), "suites", "go"), bench.ProjectConfig{
		Artifacts: bench.ArtifactSource{Tags: map[string]bench.TagSource{
			"1.0.0": {Provider: "goroot", Parameters: map[string]string{"path": goroot}},
		}},
	})
	r := s.submit(t, apiclient.NewRequest{Project: "go", Type: bench.Release, Tag: "1.0.0", Selection: bench.Selection{
		Benchmarks: []string{"gojq"}, Profiles: []string{"build"}, Scenarios: []string{"full", "incr-patched"}, Backends: []string{"gc"}, Iterations: iterations,
	}})
	d := s.await(t, r.ID, 20*time.Minute)
	requireSuccess(t, d.Outcome, d)
	s.requireCollections(t, "go", iterations)
	s.requireSizeOfHandBuild(t, goroot)
}

// requireSizeOfHandBuild builds gojq by hand, following the suite's README, and compares
// the size of the binary with the stored one.
func (s *stack) requireSizeOfHandBuild(t *testing.T, goroot string) {
	t.Helper()
	const module = "github.com/itchyny/gojq@v0.12.17"
	dir := t.TempDir()
	goCommand := func(in string, args ...string) string {
		t.Helper()
		command := exec.Command(filepath.Join(goroot, "bin", "go"), args...)
		command.Dir = in
		command.Env = append(os.Environ(), "GOROOT="+goroot, "GOTOOLCHAIN=local", "GOFLAGS=-modcacherw -trimpath -buildvcs=false", "CGO_ENABLED=0", "GOWORK=off")
		out, err := command.CombinedOutput()
		require.NoError(t, err, "go %v: %s", args, out)
		return strings.TrimSpace(string(out))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module hand\n"), 0o644))
	goCommand(dir, "mod", "download", module)
	leaf := filepath.Join(dir, "leaf")
	require.NoError(t, os.CopyFS(leaf, os.DirFS(filepath.Join(goCommand(dir, "env", "GOMODCACHE"), module))))
	goCommand(leaf, "build", "-o", filepath.Join(dir, "gojq"), "./cmd/gojq")
	info, err := os.Stat(filepath.Join(dir, "gojq"))
	require.NoError(t, err)
	var stored []float64
	rows, err := s.database(t).Query(t.Context(), `
		select distinct p.value from pstat p join pstat_series ps on ps.id = p.series_id join test_case tc on tc.id = ps.test_case_id
		join artifact a on a.id = p.artifact_id
		where ps.metric = 'size:binary' and tc.benchmark = 'gojq' and tc.scenario = 'full'`)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var size float64
		require.NoError(t, rows.Scan(&size))
		stored = append(stored, size)
	}
	require.Equal(t, []float64{float64(info.Size())}, stored)
}
