//go:build unix

package jobrun_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/suite"
)

// recipeFunc changes the recipe of the test case that is to fail.
type recipeFunc func(*suite.Recipe, suite.Paths)

func TestOneFailingTestCaseDoesNotFailItsNeighbours(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		change recipeFunc
		report func(measure.Command, *measure.Sample)
		kind   bench.FailureKind
		// message lists words that the message must contain.
		message []string
		output  string
	}{
		"exits with an error": {
			change:  func(r *suite.Recipe, p suite.Paths) { r.Measure = sh(p, "echo out; echo oops >&2; exit 3") },
			kind:    bench.FailJob,
			message: []string{"gin build bad 1/2", "exit status 3"},
			output:  "oops",
		},
		"fails in its second iteration": {
			change: func(r *suite.Recipe, p suite.Paths) {
				r.Measure = sh(p, `[ ! -e "$CACHE/once" ] && touch "$CACHE/once"`)
			},
			kind: bench.FailJob, message: []string{"gin build bad 2/2", "exit status 1"},
		},
		"runs out of time": {
			change: func(r *suite.Recipe, p suite.Paths) {
				r.Timeout, r.Measure = 50*time.Millisecond, sh(p, "sleep 60")
			},
			kind: bench.FailTimeout, message: []string{"time limit of 50ms", "larger machine"},
		},
		"runs out of memory": {
			change: func(r *suite.Recipe, p suite.Paths) { r.Measure = sh(p, "exit 9") },
			report: func(_ measure.Command, s *measure.Sample) {
				if s.ExitCode == 9 {
					s.Status = measure.StatusOutOfMemory
				}
			},
			kind: bench.FailOutOfMemory, message: []string{"memory limit"},
		},
		"fills its disk": {
			change: func(r *suite.Recipe, p suite.Paths) { r.Measure = sh(p, "exit 9") },
			report: func(_ measure.Command, s *measure.Sample) {
				if s.ExitCode == 9 {
					s.Status = measure.StatusDiskFull
				}
			},
			kind: bench.FailTooSmall, message: []string{"disk limit"},
		},
		"is no command": {
			change: func(r *suite.Recipe, _ suite.Paths) { r.Measure.Run = []string{"no-such-program-here"} },
			kind:   bench.FailJob, message: []string{"no-such-program-here", "install it"},
		},
		"does not write its file": {
			change: func(r *suite.Recipe, p suite.Paths) {
				r.Measure.Sizes = map[bench.Metric]string{"size:binary": filepath.Join(p.Work, "out", "*")}
			},
			kind: bench.FailJob, message: []string{"size:binary", "no file matches"},
		},
		"writes its file elsewhere": {
			change: func(r *suite.Recipe, p suite.Paths) {
				r.Measure.Sizes = map[bench.Metric]string{"size:binary": filepath.Join(p.Artifact, "tag")}
			},
			kind: bench.FailPermanent, message: []string{"size:binary", "${work}"},
		},
		"prints no result": {
			change: func(r *suite.Recipe, p suite.Paths) {
				r.Measure = sh(p, "echo PASS")
				r.Measure.Output = suite.OutputBenchfmt
			},
			kind: bench.FailJob, message: []string{"no result line"}, output: "PASS",
		},
		"prints one line twice": {
			change: func(r *suite.Recipe, p suite.Paths) {
				r.Measure = sh(p, "echo BenchmarkX 1 5 ns/op; echo BenchmarkX 1 6 ns/op")
				r.Measure.Output = suite.OutputBenchfmt
			},
			kind: bench.FailJob, message: []string{"two result lines named BenchmarkX"}, output: "BenchmarkX 1 6 ns/op",
		},
		"prints no number": {
			change: func(r *suite.Recipe, p suite.Paths) {
				r.Measure = sh(p, "echo BenchmarkX 1 NaN ns/op")
				r.Measure.Output = suite.OutputBenchfmt
			},
			kind: bench.FailJob, message: []string{"BenchmarkX is NaN"}, output: "NaN",
		},
		"prints other lines each time": {
			change: func(r *suite.Recipe, p suite.Paths) {
				r.Measure = sh(p, `echo BenchmarkX 1 5 ns/op; echo "BenchmarkAt/$$ 1 6 ns/op"`)
				r.Measure.Output = suite.OutputBenchfmt
			},
			kind: bench.FailJob, message: []string{"gin build bad 2/2: this iteration has printed a new result line BenchmarkAt/"},
		},
		"prints another unit the second time": {
			change: func(r *suite.Recipe, p suite.Paths) {
				r.Measure = sh(p, `unit=ns/op; [ -e "$SUITE/other" ] && unit=MB/s; touch "$SUITE/other"; echo BenchmarkX 1 5 $unit`)
				r.Measure.Output, r.Measure.OnlyOutput = suite.OutputBenchfmt, true
			},
			kind: bench.FailJob, message: []string{"none of the first one's units"},
		},
		"prints fewer lines the second time": {
			change: func(r *suite.Recipe, p suite.Paths) {
				r.Measure = sh(p, `echo BenchmarkX 1 5 ns/op; [ -e "$SUITE/again" ] || echo BenchmarkY 1 6 ns/op; touch "$SUITE/again"`)
				r.Measure.Output = suite.OutputBenchfmt
			},
			kind: bench.FailJob, message: []string{"no longer the result line BenchmarkX"},
		},
		"has a broken recipe": {
			change: func(r *suite.Recipe, p suite.Paths) { r.Measure.Run = nil },
			kind:   bench.FailPermanent, message: []string{"suite is wrong"},
		},
		"replaces what is not there": {
			change: func(r *suite.Recipe, p suite.Paths) {
				r.Before = []suite.Step{{Replace: &suite.Replacement{File: filepath.Join(p.Work, "f"), Old: "x", New: "y"}}}
			},
			kind: bench.FailPermanent, message: []string{"gin build bad 1/2 before", `does not contain "x"`, "correct the suite"},
		},
		"fails in its own preparation": {
			change: func(r *suite.Recipe, p suite.Paths) { r.Prepare = []suite.Step{workStep(p, "echo broken; exit 1")} },
			kind:   bench.FailJob, message: []string{"gin build bad prepare", "exit status 1"}, output: "broken",
		},
		"removes its work directory while preparing": {
			change: func(r *suite.Recipe, p suite.Paths) { r.Prepare = []suite.Step{workStep(p, `rm -r "$WORK"`)} },
			kind:   bench.FailPermanent, message: []string{"removed or replaced"},
		},
		"asks for the collector's secrets": {
			change: func(r *suite.Recipe, p suite.Paths) {
				r.Prepare = []suite.Step{{Run: []string{"true"}, PassEnv: []string{"BENCHLOOM_TOKEN"}}}
			},
			kind: bench.FailPermanent, message: []string{"BENCHLOOM_TOKEN", "never passed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t)
			b.sandbox.change = want.report
			s := shellSuite{recipe: func(tc bench.TestCase, p suite.Paths) (suite.Recipe, error) {
				r := suite.Recipe{Measure: sh(p, "true")}
				if tc.Scenario == "bad" {
					want.change(&r, p)
				}
				return r, nil
			}}
			require.NoError(t, b.run(t, b.job(t, s, "gin/good", "gin/bad", "gin/also", "cobra/good")))
			failure := b.sink.failure(t, "gin/bad")
			require.Equal(t, want.kind, failure.Kind, failure.Message)
			for _, words := range want.message {
				require.Contains(t, failure.Message, words)
			}
			require.Contains(t, failure.Output, want.output)
			for _, name := range []string{"gin/good A", "gin/also A", "cobra/good A"} {
				require.Len(t, b.sink.results()[name].Collections, 2, name)
			}
			require.Len(t, b.sink.blocks, 2, "the failure is a part of its block")
		})
	}
}

func TestAFailedPreparationFailsTheVariantAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(suite.Paths) (suite.Preparation, error){
		"a step": func(p suite.Paths) (suite.Preparation, error) {
			return suite.Preparation{Steps: []suite.Step{step(p, "exit 1")}}, nil
		},
		"a timeout": func(p suite.Paths) (suite.Preparation, error) {
			return suite.Preparation{Timeout: 50 * time.Millisecond, Steps: []suite.Step{step(p, "true"), step(p, "sleep 60")}}, nil
		},
		"the suite": func(suite.Paths) (suite.Preparation, error) {
			return suite.Preparation{}, errors.New("no such benchmark")
		},
		"missing files": func(suite.Paths) (suite.Preparation, error) {
			return suite.Preparation{Files: "nowhere"}, nil
		},
		"files of somebody else": func(suite.Paths) (suite.Preparation, error) {
			return suite.Preparation{Files: "../"}, nil
		},
		"a link out of the directory": func(suite.Paths) (suite.Preparation, error) {
			return suite.Preparation{Hardlink: []string{"../x"}}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t)
			s := measuring("true")
			s.preparation = func(v suite.Variant, p suite.Paths) (suite.Preparation, error) {
				if v.Benchmark == "bad" {
					return prepare(p)
				}
				return suite.Preparation{}, nil
			}
			require.NoError(t, b.run(t, b.job(t, s, "bad/full", "bad/patched", "good/full")))
			kind := b.sink.failure(t, "bad/full").Kind
			require.Equal(t, kind, b.sink.failure(t, "bad/patched").Kind)
			require.Equal(t, name == "a timeout", kind == bench.FailTimeout)
			require.Equal(t, name == "a step", kind == bench.FailJob)
			require.Len(t, b.sink.results()["good/full A"].Collections, 2)
		})
	}
}

func TestOneSubjectsFailureLeavesTheOtherMeasured(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	job := b.job(t, measuring(`[ $(cat "$ARTIFACT/tag") = B ]`), "gin/full")
	job.Subjects = append(job.Subjects, b.artifact(t, "B"))
	require.NoError(t, b.run(t, job))
	require.Equal(t, bench.FailJob, b.sink.failure(t, "gin/full").Kind)
	require.Len(t, b.sink.results()["gin/full B"].Collections, 2)
}

func TestTestCasesWithoutWhatTheyRequireAreSkippedWithTheReason(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		requirement func(suite.Paths) suite.Requirement
		met         bool
	}{
		"command":         {func(suite.Paths) suite.Requirement { return suite.Requirement{Command: "sh"} }, true},
		"missing command": {func(suite.Paths) suite.Requirement { return suite.Requirement{Command: "no-such-program-here"} }, false},
		"file": {func(p suite.Paths) suite.Requirement {
			return suite.Requirement{File: filepath.Join(p.Artifact, "tag")}
		}, true},
		"missing file": {func(p suite.Paths) suite.Requirement {
			return suite.Requirement{File: filepath.Join(p.Artifact, "gone")}
		}, false},
		"run":         {func(suite.Paths) suite.Requirement { return suite.Requirement{Run: []string{"true"}} }, true},
		"failing run": {func(suite.Paths) suite.Requirement { return suite.Requirement{Run: []string{"false"}} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t)
			s := measuring("true")
			s.preparation = func(_ suite.Variant, p suite.Paths) (suite.Preparation, error) {
				requirement := want.requirement(p)
				requirement.Reason = "it needs a thing; install it"
				return suite.Preparation{Requires: []suite.Requirement{requirement}}, nil
			}
			require.NoError(t, b.run(t, b.job(t, s, "gin/full")))
			result := b.sink.results()["gin/full A"]
			if want.met {
				require.Len(t, result.Collections, 2)
				return
			}
			require.Equal(t, jobrun.Result{TestCase: testCase("gin/full"), Subject: "A", Skipped: "it needs a thing; install it"}, result)
		})
	}
}

func TestIterationsWithInvalidCountersAreRepeated(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		invalid int // number of attempts with invalid counters
		runs    int
		failed  bool
	}{
		"twice":  {2, 3, false},
		"always": {100, 4, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t)
			runs := 0
			b.sandbox.change = func(_ measure.Command, s *measure.Sample) {
				if runs++; runs <= want.invalid {
					s.Invalid = []measure.InvalidCounter{{Counter: measure.CounterCycles}}
				}
			}
			job := b.job(t, measuring("true"), "gin/full")
			job.Iterations = 1
			require.NoError(t, b.run(t, job))
			require.Equal(t, want.runs, runs)
			if want.failed {
				failure := b.sink.failure(t, "gin/full")
				require.Equal(t, bench.FailJob, failure.Kind)
				require.Contains(t, failure.Message, "cycles:u")
				return
			}
			require.Len(t, b.sink.results()["gin/full A"].Collections, 1)
		})
	}
}

func TestAJobWhoseRequiredMetricsTheMachineLacksDoesNotStart(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.machine.Counters = measure.CounterSupport{measure.CounterInstructions: errors.New("this machine has no hardware counters")}
	s := measuring(`echo ran >>"$JOURNAL"`)
	s.required = []bench.Metric{bench.WallTime, bench.Instructions}
	failure, ok := errors.AsType[*jobrun.Failure](b.run(t, b.job(t, s, "gin/full")))
	require.True(t, ok)
	require.Equal(t, bench.FailPermanent, failure.Kind)
	require.Contains(t, failure.Message, "instructions:u")
	require.Contains(t, failure.Message, "this machine has no hardware counters")
	require.NoFileExists(t, filepath.Join(b.suite, "journal"))
}

func TestTheEndOfALongOutputIsKept(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	require.NoError(t, b.run(t, b.job(t, measuring(`i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; printf 'nul\000\377'; exit 1`), "gin/full")))
	output := b.sink.failure(t, "gin/full").Output
	require.LessOrEqual(t, len(output), jobrun.MaxOutputTail)
	require.True(t, strings.HasPrefix(output, "line "), output[:20])
	require.True(t, strings.HasSuffix(output, "line 2999\nnul?"), output[len(output)-20:])
}

func TestCancellationEndsTheJobWithItsCauseInEveryPhase(t *testing.T) {
	t.Parallel()
	cause := errors.New("a person cancelled it")
	const forever = `echo $$ >>"$JOURNAL"; sleep 1000`
	plain := func(p suite.Paths) suite.Recipe { return suite.Recipe{Measure: sh(p, "true")} }
	for name, recipe := range map[string]func(suite.Paths) (suite.Preparation, suite.Recipe){
		"preparing": func(p suite.Paths) (suite.Preparation, suite.Recipe) {
			return suite.Preparation{Steps: []suite.Step{step(p, forever)}}, plain(p)
		},
		"requirement": func(p suite.Paths) (suite.Preparation, suite.Recipe) {
			return suite.Preparation{Requires: []suite.Requirement{{Run: step(p, forever).Run, Env: environment(p)}}}, plain(p)
		},
		"scenario": func(p suite.Paths) (suite.Preparation, suite.Recipe) {
			r := plain(p)
			r.Prepare = []suite.Step{workStep(p, forever)}
			return suite.Preparation{}, r
		},
		"before": func(p suite.Paths) (suite.Preparation, suite.Recipe) {
			r := plain(p)
			r.Before = []suite.Step{workStep(p, forever)}
			return suite.Preparation{}, r
		},
		"measuring": func(p suite.Paths) (suite.Preparation, suite.Recipe) {
			return suite.Preparation{}, suite.Recipe{Measure: sh(p, forever)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			s := shellSuite{
				preparation: func(_ suite.Variant, p suite.Paths) (suite.Preparation, error) {
					preparation, _ := recipe(p)
					return preparation, nil
				},
				recipe: func(_ bench.TestCase, p suite.Paths) (suite.Recipe, error) {
					_, r := recipe(p)
					return r, nil
				},
			}
			job := b.job(t, s, "gin/full")
			ended := make(chan error, 1)
			go func() { ended <- jobrun.Run(ctx, b.machine, job, b.sink) }()
			journal := filepath.Join(b.suite, "journal")
			require.Eventually(t, func() bool {
				text, err := os.ReadFile(journal)
				return err == nil && strings.HasSuffix(string(text), "\n")
			}, 2*time.Minute, 2*time.Millisecond)
			cancel(cause)
			require.ErrorIs(t, <-ended, cause)
			require.Empty(t, b.sink.blocks, "nothing partial is delivered")
			require.NoDirExists(t, fmt.Sprintf("/proc/%s", b.journal(t)[0]))
		})
	}
}

func TestAJobThatIsCancelledBetweenIterationsEnds(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	cause := errors.New("a newer build")
	ctx, cancel := context.WithCancelCause(t.Context())
	b.sink.onBlock = func(jobrun.Block) error { cancel(cause); return nil }
	job := b.job(t, measuring(`echo ran >>"$JOURNAL"`), "gin/full", "cobra/full")
	require.ErrorIs(t, jobrun.Run(ctx, b.machine, job, b.sink), cause)
	require.Len(t, b.sink.blocks, 1)
	require.Len(t, b.journal(t), 2)
}

// hiding is a sandbox that must not show an artifact.
type hiding struct{ jobrun.Sandbox }

func (hiding) Show(dirs measure.Shown) error {
	return &measure.HiddenError{Dir: dirs.ReadOnly[0], Hidden: "/var/lib/benchloom"}
}

func TestAnArtifactThatIsHiddenFailsTheJob(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.machine.Sandbox = hiding{b.machine.Sandbox}
	err := b.run(t, b.job(t, shellSuite{recipe: func(_ bench.TestCase, p suite.Paths) (suite.Recipe, error) {
		return suite.Recipe{Measure: sh(p, "true")}, nil
	}}, "gin/full"))
	var failure *jobrun.Failure
	require.ErrorAs(t, err, &failure)
	require.Equal(t, bench.FailPermanent, failure.Kind)
	require.Contains(t, failure.Message, "which is hidden from benchmarks: move it elsewhere")
}
