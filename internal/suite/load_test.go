package suite_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/suite"
)

// Each file of testdata/errors has one mistake; the expected message is in the
// file beside it.
func TestEveryMistakeIsNamedWithItsPlace(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/errors/*.yaml")
	require.NoError(t, err)
	require.Greater(t, len(files), 60)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			_, err = loadText(string(text))
			require.ErrorIs(t, err, bench.ErrInvalid)
			expected := strings.TrimSuffix(file, ".yaml") + ".txt"
			if golden() {
				require.NoError(t, os.WriteFile(expected, []byte(err.Error()+"\n"), 0o644))
			}
			want, readErr := os.ReadFile(expected)
			require.NoError(t, readErr, "run with -update and read what it writes")
			require.Equal(t, string(want), err.Error()+"\n")
		})
	}
}

func TestAllProblemsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := loadText(`
name: Demo
artifact: {provider: directory}
iterations: 0
benchmarks:
  - {name: a, measure: {run: [x]}}
  - {name: a, measure: {run: [x]}, hardlink: [../x]}
`)
	problems, ok := errors.AsType[*suite.Error](err)
	require.True(t, ok)
	var lines []int
	for _, p := range problems.Problems {
		lines = append(lines, p.Line)
	}
	require.Equal(t, []int{2, 4, 7, 7}, lines)
}

func TestAFolderWithoutSuiteFileIsNoSuite(t *testing.T) {
	t.Parallel()
	_, err := suite.Load(fstest.MapFS{"readme.md": {}})
	require.ErrorIs(t, err, bench.ErrInvalid)
	require.ErrorContains(t, err, "suite.yaml: no such file")
}

func TestTenLinesAreASuite(t *testing.T) {
	t.Parallel()
	s := load(t, `
name: mine
artifact: {provider: directory, parameters: {path: "/srv/builds/{tag}"}}
benchmarks:
  - name: parse
    measure: {run: ["${artifact}/bin/prog", parse, "${suite}/big.json"]}
`)
	require.Equal(t, "mine", s.Name())
	require.Equal(t, suite.Artifact{Provider: "directory", Parameters: map[string]string{"path": "/srv/builds/{tag}"}}, s.Artifact())
	require.Equal(t, []bench.Target{"x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"}, s.Targets())
	require.Equal(t, bench.KindRuntime, s.Kind("parse"))
	require.Empty(t, s.RequiredMetrics())

	// If the suite lists no targets, any can be selected.
	plans, err := s.Expand(bench.Selection{Targets: []bench.Target{"aarch64-apple-darwin"}})
	require.NoError(t, err)
	tc := bench.TestCase{Benchmark: "parse", Target: "aarch64-apple-darwin"}
	require.Equal(t, []suite.JobPlan{{Kind: bench.KindRuntime, Target: "aarch64-apple-darwin", MinSize: 1, TestCases: []bench.TestCase{tc}}}, plans)

	recipe, err := s.Recipe(tc, testPaths(), 0)
	require.NoError(t, err)
	require.Equal(t, []string{"/a/bin/prog", "parse", "/s/big.json"}, recipe.Measure.Run)
	require.Equal(t, "/w", recipe.Measure.Dir)
	require.Equal(t, 5, recipe.Iterations)
}

func TestWhatASuiteSaysAboutItself(t *testing.T) {
	t.Parallel()
	s := load(t, `
name: facts
description: Facts.
artifact: {provider: goroot}
targets: [riscv64gc-unknown-linux-gnu]
metrics:
  required: ["instructions:u", wall-time]
  exact: [allocs/op]
  aggregate: {wall-time: median}
benchmarks:
  - {name: one, measure: {run: [x]}}
  - {name: two, category: secondary, measure: {run: [x]}}
sets: {small: {benchmarks: [one]}}
`)
	require.Equal(t, "Facts.", s.Description())
	require.Equal(t, []bench.Metric{"instructions:u", "wall-time"}, s.RequiredMetrics())
	require.Equal(t, suite.AggregateMedian, s.Aggregation("wall-time"))
	require.Equal(t, suite.AggregateMin, s.Aggregation("max-rss"))
	require.Equal(t, suite.AggregateMax, s.Aggregation("MB/s"), "throughput: more is better")
	for metric, exact := range map[bench.Metric]bool{
		"allocs/op": true, "Parse/large allocs/op": true, "size:binary": true, "ns/op": false, "Parse/large ns/op": false, bench.WallTime: false,
	} {
		require.Equal(t, exact, s.Exact(metric), metric)
	}
	require.Equal(t, bench.Primary, s.Category("one"))
	require.Equal(t, bench.Secondary, s.Category("two"))
	require.Equal(t, []string{"small"}, s.Sets())
	require.Equal(t, []bench.Target{"riscv64gc-unknown-linux-gnu"}, s.Targets())
}

func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/errors/*.yaml", "../../suites/*/suite.yaml", "template/suite.yaml"} {
		files, err := filepath.Glob(pattern)
		require.NoError(f, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(f, err)
			f.Add(string(text))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := loadText(text)
		if err != nil {
			require.ErrorIs(t, err, bench.ErrInvalid)
			return
		}
		// A loaded suite can be run: every test case has a recipe.
		plans, err := s.Expand(bench.Selection{})
		if err != nil {
			require.ErrorIs(t, err, bench.ErrInvalid) // all is excluded
			return
		}
		for _, plan := range plans {
			for _, tc := range plan.TestCases {
				_, err := bench.NewTestCase(tc)
				require.NoError(t, err)
				_, err = s.Preparation(suite.VariantOf(tc), testPaths())
				require.NoError(t, err)
				_, err = s.Recipe(tc, testPaths(), 0)
				require.NoError(t, err)
			}
		}
	})
}
