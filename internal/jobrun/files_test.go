//go:build unix

package jobrun_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/suite"
)

func TestSizesOfSeveralFilesAreAddedUp(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	s := shellSuite{recipe: func(_ bench.TestCase, p suite.Paths) (suite.Recipe, error) {
		m := sh(p, `mkdir out; printf 12345 >out/a; printf 123 >out/b; printf 1 >out/other; ln -s /bin/sh out/b.link`)
		m.Sizes = map[bench.Metric]string{"size:binary": filepath.Join(p.Work, "out", "[ab]*"), "size:other": filepath.Join(p.Work, "out/other")}
		return suite.Recipe{Measure: m}, nil
	}}
	require.NoError(t, b.run(t, b.job(t, s, "gin/full")))
	metrics := b.sink.results()["gin/full A"].Collections[1].Metrics
	require.InDelta(t, 8, metrics["size:binary"], 0)
	require.InDelta(t, 1, metrics["size:other"], 0)
}

func TestABenchmarksOwnResultsJoinThoseOfItsProcess(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	s := shellSuite{recipe: func(_ bench.TestCase, p suite.Paths) (suite.Recipe, error) {
		m := sh(p, `echo goos: linux; echo noise >&2; echo 'BenchmarkX-2   	 100	 1234.5 ns/op	 48 B/op	 2 allocs/op	 900 MB/s'; echo PASS`)
		m.Output, m.Metrics = suite.OutputBenchfmt, []bench.Metric{"ns/op", "MB/s"}
		return suite.Recipe{Measure: m}, nil
	}}
	require.NoError(t, b.run(t, b.job(t, s, "json/")))
	metrics := b.sink.results()["json/ A"].Collections[0].Metrics
	require.InDelta(t, 1234.5, metrics["ns/op"], 1e-9)
	require.InDelta(t, 900, metrics["MB/s"], 1e-9)
	require.NotContains(t, metrics, bench.Metric("B/op"))
	require.Contains(t, metrics, bench.CPUTime)
	require.Contains(t, b.log.String(), "noise\n")
	require.Contains(t, b.log.String(), "BenchmarkX-2")
}

func TestEachPrintedLineHasSeriesOfItsOwn(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	s := shellSuite{recipe: func(_ bench.TestCase, p suite.Paths) (suite.Recipe, error) {
		m := sh(p, `printf 'BenchmarkParse/small-2 100 5 ns/op\nBenchmarkParse/large-2 10 70 ns/op 9 MB/s\nPASS\n'`)
		m.Output, m.OnlyOutput = suite.OutputBenchfmt, true
		return suite.Recipe{Measure: m}, nil
	}}
	require.NoError(t, b.run(t, b.job(t, s, "json/")))
	for _, c := range b.sink.results()["json/ A"].Collections {
		require.Equal(t, map[bench.Metric]float64{"Parse/small ns/op": 5, "Parse/large ns/op": 70, "Parse/large MB/s": 9}, c.Metrics, "and nothing of the process")
	}
}

func TestStepsSeeOnlyTheVariablesTheyAskFor(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.machine.Environ = []string{"HTTPS_PROXY=http://proxy.example", "SECRET=1", "ORDER=collector"}
	s := measuring(`env >>"$JOURNAL"`)
	s.preparation = func(_ suite.Variant, p suite.Paths) (suite.Preparation, error) {
		download := step(p, `echo "$HTTPS_PROXY $SECRET $ORDER $NOT_THERE" >>"$JOURNAL"`)
		download.PassEnv, download.Env = []string{"HTTPS_PROXY", "ORDER", "NOT_THERE"}, append(download.Env, "ORDER=suite")
		return suite.Preparation{Steps: []suite.Step{download}}, nil
	}
	job := b.job(t, s, "gin/full")
	job.Iterations = 1
	require.NoError(t, b.run(t, job))
	lines := b.journal(t)
	require.Equal(t, "http://proxy.example  suite ", lines[0])
	require.Contains(t, lines, "TMPDIR="+b.sandbox.TempDir())
	for _, line := range lines[1:] {
		require.NotContains(t, line, "PROXY")
		require.NotContains(t, line, "SECRET")
	}
}

func TestFileSteps(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	tree := filepath.Join(b.suite, "tree")
	require.NoError(t, os.MkdirAll(filepath.Join(tree, "sub"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(tree, "sub", "tool"), []byte("tool"), 0o555))
	require.NoError(t, os.Symlink("tool", filepath.Join(tree, "sub", "link")))
	require.NoError(t, os.Chmod(filepath.Join(tree, "sub"), 0o555))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(tree, "sub"), 0o755) })

	s := shellSuite{recipe: func(_ bench.TestCase, p suite.Paths) (suite.Recipe, error) {
		in := func(name string) string { return filepath.Join(p.Work, name) }
		return suite.Recipe{
			Before: []suite.Step{
				{Write: &suite.FileText{File: in("a/b/new"), Text: "one"}},
				{Append: &suite.FileText{File: in("a/b/new"), Text: " two one"}},
				{Replace: &suite.Replacement{File: in("a/b/new"), Old: "one", New: "1"}},
				{Copy: &suite.FileCopy{From: tree, To: in("tree")}},
				{Copy: &suite.FileCopy{From: filepath.Join(p.Artifact, "tag"), To: in("x/tag")}},
				{Write: &suite.FileText{File: in("gone"), Text: "?"}},
				{Remove: in("gone")},
				{Remove: in("never-there")},
			},
			Measure: sh(p, `{ cat a/b/new; echo; cat x/tag; echo; ls; stat -c %a tree/sub tree/sub/tool; readlink tree/sub/link; } >>"$JOURNAL"`),
		}, nil
	}}
	job := b.job(t, s, "gin/full")
	job.Iterations = 1
	require.NoError(t, b.run(t, job))
	require.Equal(t, []string{"1 two 1", "A", "a", "tree", "x", "755", "755", "tool"}, b.journal(t))
}

func TestFileStepsReachNothingOutsideOfTheJob(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string]func(victim string, p suite.Paths) []suite.Step{
		"plainly": func(victim string, _ suite.Paths) []suite.Step {
			return []suite.Step{{Append: &suite.FileText{File: filepath.Join(victim, "file"), Text: "!"}}}
		},
		"by dots": func(victim string, p suite.Paths) []suite.Step {
			return []suite.Step{{Write: &suite.FileText{File: p.Work + "/../../victim/file", Text: "!"}}}
		},
		"over a link to a directory": func(victim string, p suite.Paths) []suite.Step {
			return []suite.Step{workStep(p, "ln -s "+victim+" out"), {Append: &suite.FileText{File: filepath.Join(p.Work, "out/file"), Text: "!"}}}
		},
		"over a link to a file": func(victim string, p suite.Paths) []suite.Step {
			return []suite.Step{workStep(p, "ln -s "+victim+"/file out"), {Append: &suite.FileText{File: filepath.Join(p.Work, "out"), Text: "!"}}}
		},
		"over a link in place of the work directory": func(victim string, p suite.Paths) []suite.Step {
			return []suite.Step{workStep(p, `rm -r "$WORK"; ln -s `+victim+` "$WORK"`), {Append: &suite.FileText{File: filepath.Join(p.Work, "file"), Text: "!"}}}
		},
		"into a link in place of the work directory": func(victim string, p suite.Paths) []suite.Step {
			return []suite.Step{
				workStep(p, `mkdir "$PREPARED/d"; echo bad >"$PREPARED/d/file"; rm -r "$WORK"; ln -s `+victim+` "$WORK"`),
				{Copy: &suite.FileCopy{From: filepath.Join(p.Prepared, "d"), To: p.Work}},
			}
		},
		"removing": func(victim string, p suite.Paths) []suite.Step {
			return []suite.Step{workStep(p, "ln -s "+victim+" out"), {Remove: filepath.Join(p.Work, "out/file")}}
		},
		"removing the work directory": func(_ string, p suite.Paths) []suite.Step {
			return []suite.Step{{Remove: p.Work}}
		},
		"copying out": func(victim string, p suite.Paths) []suite.Step {
			return []suite.Step{workStep(p, "ln -s "+victim+" out"), {Copy: &suite.FileCopy{From: filepath.Join(p.Work, "out/file"), To: filepath.Join(p.Work, "stolen")}}}
		},
		"copying in": func(victim string, p suite.Paths) []suite.Step {
			return []suite.Step{workStep(p, "ln -s "+victim+" out; echo bad >file"), {Copy: &suite.FileCopy{From: filepath.Join(p.Work, "file"), To: filepath.Join(p.Work, "out/file")}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t)
			victim := filepath.Join(filepath.Dir(b.suite), "victim")
			require.NoError(t, os.Mkdir(victim, 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(victim, "file"), []byte("untouched"), 0o644))
			s := shellSuite{recipe: func(_ bench.TestCase, p suite.Paths) (suite.Recipe, error) {
				return suite.Recipe{Before: steps(victim, p), Measure: sh(p, "cat stolen")}, nil
			}}
			require.NoError(t, b.run(t, b.job(t, s, "gin/full")))
			require.Equal(t, bench.FailPermanent, b.sink.failure(t, "gin/full").Kind)
			text, err := os.ReadFile(filepath.Join(victim, "file"))
			require.NoError(t, err)
			require.Equal(t, "untouched", string(text))
		})
	}
}

// A command may be anybody's, and so may its suite: neither sees the files that another suite keeps.
func TestAJobSeesTheCacheOfItsSuiteOnly(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.machine.CacheDir = filepath.Join(b.machine.CacheDir, "go")
	job := b.job(t, shellSuite{recipe: func(_ bench.TestCase, p suite.Paths) (suite.Recipe, error) {
		return suite.Recipe{Measure: sh(p, `touch "$CACHE/kept"`)}, nil
	}}, "gin/full")
	require.NoError(t, b.run(t, job))
	require.FileExists(t, filepath.Join(b.machine.CacheDir, "kept"))
	require.NoError(t, b.run(t, jobrun.Job{
		Kind: bench.KindCommand, Command: &jobrun.Command{Argv: []string{"true"}}, TestCases: []bench.TestCase{testCase("command/")},
	}))
	require.Equal(t, []measure.Shown{
		{ReadOnly: []string{job.Subjects[0].Artifact}, Writable: []string{b.machine.CacheDir}}, {},
	}, b.sandbox.shown)
}

// A suite is anybody's who may apply one: it reads what its operator has released, not what the collector was started with.
func TestASuiteReadsOnlyVariablesThatItsOperatorReleased(t *testing.T) {
	t.Parallel()
	for name, allowed := range map[string]bool{
		"PATH": true, "GOPROXY": true, "https_proxy": true, "SSL_CERT_FILE": true, "LICENSE_SERVER": true,
		"AWS_SECRET_ACCESS_KEY": false, "LICENSE_SERVER_KEY": false, "go_token": false, "BENCHLOOM_TOKEN": false,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t)
			b.machine.Environ, b.machine.PassEnv = []string{name + "=secret"}, append(jobrun.DefaultPassEnv(), "LICENSE_SERVER")
			err := b.run(t, b.job(t, shellSuite{
				preparation: func(_ suite.Variant, p suite.Paths) (suite.Preparation, error) {
					show := step(p, `echo "$`+name+`" >>"$JOURNAL"`)
					show.Run[0], show.PassEnv = "/bin/sh", []string{name}
					return suite.Preparation{Steps: []suite.Step{show}}, nil
				},
				recipe: func(_ bench.TestCase, p suite.Paths) (suite.Recipe, error) {
					return suite.Recipe{Measure: sh(p, "true")}, nil
				},
			}, "gin/full"))
			require.NoError(t, err)
			if allowed {
				require.Equal(t, []string{"secret"}, b.journal(t))
				return
			}
			failure := b.sink.failure(t, "gin/full")
			require.Equal(t, bench.FailPermanent, failure.Kind)
			require.Contains(t, failure.Message, "pass_env names "+name)
			require.NoFileExists(t, filepath.Join(b.suite, "journal"))
		})
	}
}
