package e2e_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/flame"
)

// profiled asks for profiles of a test case of two artifacts with one command, and returns the functions of the
// first one and what differs, from one command each.
func (s *stack) profiled(t *testing.T, project, tag, versus, testCase, profiler string) (top flame.Table, d flame.Difference) {
	t.Helper()
	words := strings.Fields(s.cli(t, "profile", project, tag, testCase, "--with", profiler, "--vs", versus, "--wait", "-q"))
	require.Len(t, words, 2, "the IDs of two profiles")
	require.NoError(t, json.Unmarshal([]byte(s.cli(t, "profile", "top", words[1], "-o", "json")), &top))
	require.NoError(t, json.Unmarshal([]byte(s.cli(t, "profile", "diff", words[0], words[1], "-o", "json")), &d))
	require.Positive(t, top.Sum)
	require.NotEmpty(t, d.Functions)
	require.Equal(t, top.Sum, d.SumB, "the baseline comes first")
	listed, err := s.api.CodeProfiles(t.Context(), project, apiclient.CodeProfileQuery{Tag: tag})
	require.NoError(t, err)
	require.NotEmpty(t, listed)
	return top, d
}

// own is the share of the functions whose names begin like that.
func own(table flame.Table, prefix string) (share float64) {
	for _, f := range table.Functions {
		if strings.HasPrefix(f.Name, prefix) {
			share += flame.Share(f.Self, table.Sum)
		}
	}
	return share
}

// Benchmarks of real toolchains are profiled for two of them, and compared, by one command: Go's compiler, a Go program, and rustc,
// where rustup has two toolchains, by perf where that works; by its own profiler where one of them is a nightly.
func TestLongRealToolchainsAreProfiled(t *testing.T) {
	t.Parallel()
	const linux = "x86_64-unknown-linux-gnu"
	goroot := localGoroot(t)
	s := startStack(t)
	s.withStandardLibrary(t)
	tags := map[string]bench.TagSource{}
	for _, tag := range []string{"1.0.0", "2.0.0"} {
		tags[tag] = bench.TagSource{Provider: "goroot", Parameters: map[string]string{"path": goroot}}
	}
	s.applyProject(t, "go", filepath.Join(repository(t), "suites", "go"), bench.ProjectConfig{Artifacts: bench.ArtifactSource{Tags: tags}})

	top, _ := s.profiled(t, "go", "2.0.0", "1.0.0", "gojq/build/full/gc/"+linux, "pprof-cpu")
	require.Greater(t, own(top, "cmd/compile/"), .2, "the compiler itself is profiled")
	top, _ = s.profiled(t, "go", "2.0.0", "1.0.0", "fft///gc/"+linux, "pprof-cpu")
	t.Logf("fft: %s", top.Functions[0].Name)
	require.Greater(t, own(top, "gonum.org/v1/gonum/dsp/fourier"), .3)

	if _, err := exec.LookPath("rustup"); err != nil {
		t.Log("rustup is not installed, so rustc was not tried")
		return
	}
	installed := func(toolchain string) bool {
		err := exec.Command("rustup", "run", toolchain, "rustc", "--version").Run()
		if err != nil {
			t.Logf("rustup has no toolchain %s, so it was not tried: %v", toolchain, err)
		}
		return err == nil
	}
	s.applyProject(t, "rustc", filepath.Join(repository(t), "suites", "rustc"), bench.ProjectConfig{})
	if !installed("stable") || !installed("nightly") {
		return
	}
	const traits = "traits/check/full/llvm/" + linux
	has := func(device string) bool {
		return strings.Contains(strings.Join(s.collector(t, "local-1").Devices, " "), device)
	}
	if has("program:perf") {
		top, d := s.profiled(t, "rustc", "nightly", "stable", traits, "perf")
		t.Logf("rustc by perf: %s; most changed %s", top.Functions[0].Name, d.Functions[0].Name)
		require.Greater(t, len(top.Functions), 50)
	} else {
		t.Log("perf does not work here, so it was not tried")
	}
	words := strings.Fields(s.cli(t, "profile", "rustc", "nightly", traits, "--with", "self-profile", "--wait", "-q"))
	require.Len(t, words, 1)
	require.NoError(t, json.Unmarshal([]byte(s.cli(t, "profile", "top", words[0], "-o", "json")), &top))
	require.Positive(t, top.Sum)
	require.Greater(t, len(top.Functions), 20, "activities of rustc")
	t.Logf("rustc by itself: %s", top.Functions[0].Name)
}

// cli runs a command of the service's operator, which succeeds, and returns what it prints.
func (s *stack) cli(t *testing.T, args ...string) string {
	t.Helper()
	out, code := s.run(t, args...)
	require.Zero(t, code, "benchloom %s", strings.Join(args, " "))
	return out
}
