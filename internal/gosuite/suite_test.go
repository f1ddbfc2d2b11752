package gosuite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/gosuite"
	"github.com/benchloom/benchloom/internal/suite"
)

const linux = bench.Target("x86_64-unknown-linux-gnu")

// module has benchmarks in three packages, and much that looks like one.
const module = `
-- go.mod --
module example.org/team/text/v3

go 1.21
-- text.go --
package text
-- text_test.go --
package text

import "testing"

func BenchmarkSplit(b *testing.B) {}
func Benchmark(b *testing.B) {}
func Benchmark_join(b *testing.B) {}
func BenchmarkÄhnlich(b *testing.B) {}
func BenchmarkSPLIT(b *testing.B) {}

func Benchmarked(b *testing.B) {}
func BenchmarkHelper(b *testing.B, n int) {}
func BenchmarkTest(t *testing.T) {}
func BenchmarkValue(b *testing.B) int { return 0 }
func (suite) BenchmarkMethod(b *testing.B) {}
func TestSplit(t *testing.T) {}

type suite struct{}
-- internal/lexer/lexer.go --
package lexer
-- internal/lexer/lexer_test.go --
package lexer_test

import . "testing"

func BenchmarkLex(b *B) {}
-- internal/lexer/other_windows_test.go --
package lexer

import "testing"

func BenchmarkWindows(b *testing.B) {}
-- print/print_test.go --
package print

import bench "testing"

func BenchmarkPrint(b *bench.B) {}
-- plain/plain_test.go --
package plain

import "testing"

func TestPlain(t *testing.T) {}
-- testdata/ignored_test.go --
package ignored

import "testing"

func BenchmarkIgnored(b *testing.B) {}
-- nested/go.mod --
module example.org/nested
-- nested/nested_test.go --
package nested

import "testing"

func BenchmarkNested(b *testing.B) {}
`

func find(t *testing.T, dir string) gosuite.Module {
	t.Helper()
	m, err := gosuite.Find(t.Context(), dir, os.Environ())
	require.NoError(t, err)
	return m
}

func TestTheBenchmarksOfAModuleAreFound(t *testing.T) {
	t.Parallel()
	repository, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	dir := filepath.Join(repository, "go", "te$t's")
	tree(t, dir, module)
	commit(t, repository)
	m := find(t, filepath.Join(dir, "internal"))
	require.Equal(t, "example.org/team/text/v3", m.Path)
	require.Equal(t, "text", m.Name())
	require.Equal(t, repository, m.Repository)
	require.Equal(t, "go/te$t's", m.Below)
	require.Equal(t, []gosuite.Package{
		{Dir: ".", Benchmarks: []string{"Benchmark", "BenchmarkSPLIT", "BenchmarkSplit", "Benchmark_join", "BenchmarkÄhnlich"}},
		{Dir: "internal/lexer", Benchmarks: []string{"BenchmarkLex"}},
		{Dir: "print", Benchmarks: []string{"BenchmarkPrint"}},
	}, m.Packages)
	require.Equal(t, 7, m.Benchmarks())

	// Each function is a test case that runs nothing else, where its files are.
	text, err := m.Suite(m.Name())
	require.NoError(t, err)
	s, err := suite.Parse(text)
	require.NoError(t, err)
	plans, err := s.Expand(bench.Selection{Targets: []bench.Target{linux}})
	require.NoError(t, err)
	type run struct{ benchmark, function, dir string }
	var runs []run
	for _, p := range plans {
		for _, tc := range p.TestCases {
			r, err := s.Recipe(tc, suite.Paths{Artifact: "/a", Work: "/w", Prepared: "/p", CPUs: 1}, 0)
			require.NoError(t, err)
			require.Equal(t, filepath.Join("/a/go/te$t's/.benchloom", strings.TrimPrefix(r.Measure.Dir, "/a/go/te$t's"), "bench.test"), filepath.Clean(r.Measure.Run[0]))
			require.True(t, r.Measure.OnlyOutput)
			runs = append(runs, run{tc.Benchmark, r.Measure.Run[2], r.Measure.Dir})
		}
	}
	root := "/a/go/te$t's"
	require.Equal(t, []run{
		{"Benchmark", "-test.bench=^Benchmark$", root},
		{"SPLIT", "-test.bench=^BenchmarkSPLIT$", root},
		{"Split-2", "-test.bench=^BenchmarkSplit$", root},
		{"Benchmark_join", "-test.bench=^Benchmark_join$", root},
		{"Benchmark_hnlich", "-test.bench=^BenchmarkÄhnlich$", root},
		{"internal/lexer.Lex", "-test.bench=^BenchmarkLex$", root + "/internal/lexer"},
		{"print.Print", "-test.bench=^BenchmarkPrint$", root + "/print"},
	}, runs)

	source := s.Artifact()
	recipe, err := bench.ParseBuildRecipe(source.Parameters, "1.0.0", linux)
	require.NoError(t, err)
	require.Equal(t, repository, recipe.Repository)
	require.Contains(t, recipe.Command[2], `cd 'go/te$t'\''s'`)
	require.Contains(t, recipe.Command[2], `'internal/lexer'`)
}

func TestNamesOfSuites(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"example.org/Team/Text": "text", "example.org/text/v2": "text", "gopkg.in/yaml.v3": "yaml.v3", "text": "text", "v2": "v2",
		"example.org/-_.": "benchmarks", "example.org/größe": "gr--e",
	} {
		require.Equal(t, want, gosuite.Module{Path: path}.Name(), path)
	}
}

func TestWhatKeepsAModuleFromHavingASuite(t *testing.T) {
	t.Parallel()
	const empty = "-- go.mod --\nmodule example.org/empty\n-- empty.go --\npackage empty\n"
	for name, want := range map[string]struct {
		archive string
		commit  bool
		err     string
	}{
		"no module":     {"-- main.go --\npackage main\n", true, "is not in a Go module: neither it nor a directory above has a go.mod"},
		"no repository": {module, false, "is not in a git repository"},
		"no benchmarks": {empty, true, "the Go module example.org/empty in .* has no benchmarks"},
		"no Go":         {empty + "-- empty_test.go --\npackage empty\n\nfunc {\n", true, "empty_test.go"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			tree(t, dir, want.archive)
			if want.commit {
				commit(t, dir)
			}
			_, err := gosuite.Find(t.Context(), dir, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir)))
			require.Error(t, err)
			require.Regexp(t, want.err, err.Error())
		})
	}

	_, err := gosuite.Find(t.Context(), filepath.Join(t.TempDir(), "nowhere"), os.Environ())
	require.ErrorContains(t, err, "nowhere is not a directory")

	fresh := t.TempDir()
	tree(t, fresh, module)
	git(t, fresh, "init", "--quiet")
	_, err = gosuite.Find(t.Context(), fresh, os.Environ())
	require.ErrorContains(t, err, "has no commits; artifacts are built from them: run 'git add .' and 'git commit' there")
}

func TestAnExistingSuiteIsNotOverwritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tree(t, dir, module)
	commit(t, dir)
	m, out := find(t, dir), filepath.Join(t.TempDir(), "a", "suite")
	require.NoError(t, m.Write(out, "mine"))
	s, err := suite.LoadDir(out)
	require.NoError(t, err)
	require.Equal(t, "mine", s.Name())

	err = m.Write(out, "mine")
	require.ErrorContains(t, err, "suite.yaml exists; remove it to have it written anew")
	err = m.Write(t.TempDir(), "no name")
	require.ErrorIs(t, err, bench.ErrInvalid)
}

// A module with more benchmarks than a suite can hold says so rather than writing one.
func TestAModuleWithTooManyBenchmarks(t *testing.T) {
	t.Parallel()
	m := gosuite.Module{Path: "example.org/many", Repository: "/many", Below: ".", Packages: []gosuite.Package{{Dir: "."}}}
	for i := range 10_000 {
		m.Packages[0].Benchmarks = append(m.Packages[0].Benchmarks, fmt.Sprintf("Benchmark%d", i))
	}
	slices.Sort(m.Packages[0].Benchmarks)
	_, err := m.Suite("many")
	require.ErrorContains(t, err, "the suite of example.org/many would not be valid")
}
