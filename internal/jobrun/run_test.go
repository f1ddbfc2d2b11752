//go:build unix

package jobrun_test

import (
	"context"
	"errors"
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

// measuring returns a suite whose test cases all run one script.
func measuring(script string) shellSuite {
	return shellSuite{recipe: func(_ bench.TestCase, p suite.Paths) (suite.Recipe, error) {
		return suite.Recipe{Measure: sh(p, script)}, nil
	}}
}

func TestTwoSubjectsAreInterleavedABBA(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	s := shellSuite{iterations: 3, recipe: func(tc bench.TestCase, p suite.Paths) (suite.Recipe, error) {
		return suite.Recipe{Measure: sh(p, `echo `+tc.Scenario+` $(cat "$ARTIFACT/tag") >>"$JOURNAL"`)}, nil
	}}
	job := b.job(t, s, "gin/full", "gin/patched")
	job.Subjects = append(job.Subjects, b.artifact(t, "B"))

	require.NoError(t, b.run(t, job))
	require.Equal(t, []string{
		"full A", "full B", "patched A", "patched B",
		"full B", "full A", "patched B", "patched A",
		"full A", "full B", "patched A", "patched B",
	}, b.journal(t))

	// One block has all of it.
	require.Len(t, b.sink.blocks, 1)
	last := b.sink.progress[len(b.sink.progress)-1]
	require.Equal(t, [2]int{2, 2}, [2]int{last.Done, last.Total}, "test cases are counted, not subjects")
	results := b.sink.results()
	require.Len(t, results, 4)
	for name, result := range results {
		require.Len(t, result.Collections, 3, name)
		for i, c := range result.Collections {
			require.Equal(t, i+1, c.Iteration)
			require.Positive(t, c.Metrics[bench.WallTime])
		}
	}
}

func TestOneBlockPerVariantInTheOrderOfTheJob(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	require.NoError(t, b.run(t, b.job(t, measuring("true"), "gin/full", "cobra/full", "gin/patched")))
	require.Len(t, b.sink.blocks, 2)
	require.Equal(t, testCase("gin/full"), b.sink.blocks[0].Results[0].TestCase)
	require.Equal(t, testCase("gin/patched"), b.sink.blocks[0].Results[1].TestCase)
	require.Equal(t, testCase("cobra/full"), b.sink.blocks[1].Results[0].TestCase)
	require.Equal(t, []int{1, 2}, []int{b.sink.blocks[0].Number, b.sink.blocks[1].Number})
}

func TestEachIterationStartsFromAFreshCopyAtTheSamePath(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	s := measuring(`echo "$PWD $(cat state) $(find . -name state -newermt 2001-01-02) $(ls "$TMPDIR" | wc -l)" >>"$JOURNAL"
		echo used >>state; touch new "$TMPDIR/litter"`)
	s.preparation = func(_ suite.Variant, p suite.Paths) (suite.Preparation, error) {
		return suite.Preparation{Steps: []suite.Step{step(p, `echo -n prepared >state; touch -t 200101010000 state; touch "$TMPDIR/litter"`)}}, nil
	}
	s.iterations = 3
	b.sink.onBlock = func(jobrun.Block) error {
		entries, err := os.ReadDir(b.sandbox.dir)
		require.NoError(t, err)
		for _, entry := range entries {
			require.False(t, strings.HasPrefix(entry.Name(), "work"), "the work directory is emptied after each iteration")
		}
		return nil
	}
	require.NoError(t, b.run(t, b.job(t, s, "gin/full", "cobra/full")))

	lines := b.journal(t)
	require.Len(t, lines, 6)
	for _, line := range lines {
		require.Equal(t, lines[0], line)
	}
	work, rest, _ := strings.Cut(lines[0], " ")
	require.Equal(t, "prepared  0", rest) // an old modification time, an empty temporary directory
	require.Zero(t, len(work)%64, "the path's length must not depend on the collector's name")

	// Nothing of it is left.
	entries, err := os.ReadDir(b.sandbox.dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, "tmp", entries[0].Name())
}

func TestWhatAKilledCollectorLeftIsRemoved(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	for _, name := range []string{"work____", "prepared0__", "outcome0-001_", "planted"} {
		require.NoError(t, os.MkdirAll(filepath.Join(b.sandbox.dir, name, "sub"), 0o755))
	}
	require.NoError(t, b.run(t, b.job(t, measuring(`ls "$WORK/.." >>"$JOURNAL"`), "gin/full")))
	require.NotContains(t, b.journal(t), "outcome0-001_")
	require.NotContains(t, b.journal(t), "planted")
	entries, err := os.ReadDir(b.sandbox.dir)
	require.NoError(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	require.Equal(t, []string{"tmp"}, names)
}

func TestOnlyCountersThatWorkAreAskedForAndKept(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.machine.Counters = measure.CounterSupport{
		measure.CounterInstructions: nil, measure.CounterTaskClock: nil, measure.CounterCycles: errors.New("not here"),
	}
	b.sandbox.change = func(c measure.Command, s *measure.Sample) {
		require.Equal(t, []measure.Counter{measure.CounterInstructions}, c.Counters)
		s.Counters, s.MaxRSSBytes = map[measure.Counter]uint64{measure.CounterInstructions: 12345}, 4096
		s.UserCPU, s.SystemCPU = 2*time.Second, time.Second
		s.LeftBehind, s.Unenforced = 1, []measure.Unenforced{{Name: measure.LimitMemory, Reason: "no cgroups"}}
	}
	s := measuring("true")
	s.required = []bench.Metric{bench.Instructions, bench.WallTime, "size:binary"}
	require.NoError(t, b.run(t, b.job(t, s, "gin/full")))
	c := b.sink.results()["gin/full A"].Collections[0]
	for metric, value := range map[bench.Metric]float64{
		bench.Instructions: 12345, bench.MaxRSS: 4096, bench.CPUTime: 3, bench.UserTime: 2, bench.SystemTime: 1,
	} {
		require.InDelta(t, value, c.Metrics[metric], 0, metric)
	}
	require.NotContains(t, c.Metrics, bench.Cycles)
	require.Equal(t, 1, c.LeftBehind)
	require.Equal(t, []measure.Limit{measure.LimitMemory}, c.Unenforced)
}

func TestLinkedDirectoriesShareFilesAndOthersDoNot(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	s := measuring(`echo same $(ls -i cache/deep/f | cut -d" " -f1) >>"$JOURNAL"; [ "$(ls -i cachet/f | cut -d" " -f1)" != $(cat inode) ] && echo other >>"$JOURNAL"; rm -r cache`)
	s.preparation = func(_ suite.Variant, p suite.Paths) (suite.Preparation, error) {
		return suite.Preparation{
			Hardlink: []string{filepath.Join(p.Prepared, "cache")},
			Steps: []suite.Step{step(p, `mkdir -p cache/deep cachet; echo 1 >cache/deep/f; echo 2 >cachet/f
				ls -i cachet/f | cut -d" " -f1 >inode; echo same $(ls -i cache/deep/f | cut -d" " -f1) >>"$JOURNAL"`)},
		}, nil
	}
	require.NoError(t, b.run(t, b.job(t, s, "gin/full")))
	lines := b.journal(t)
	require.Equal(t, []string{lines[0], lines[0], "other", lines[0], "other"}, lines)
}

func TestAScenarioIsPreparedAtTheWorkPathOnceAndForItselfOnly(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	s := shellSuite{recipe: func(tc bench.TestCase, p suite.Paths) (suite.Recipe, error) {
		r := suite.Recipe{Measure: sh(p, `echo `+tc.Scenario+` $(cat built 2>/dev/null) $(cat source) >>"$JOURNAL"`)}
		if tc.Scenario == "patched" {
			r.Prepare = []suite.Step{workStep(p, `[ "$PWD" = "$WORK" ] && echo -n built >built; echo prepare >>"$JOURNAL"`)}
			r.Before = []suite.Step{
				{Replace: &suite.Replacement{File: filepath.Join(p.Work, "source"), Old: "original", New: "changed"}},
				{Append: &suite.FileText{File: filepath.Join(p.Work, "source"), Text: " and more"}},
			}
		}
		return r, nil
	}, preparation: func(_ suite.Variant, p suite.Paths) (suite.Preparation, error) {
		// Even a file that is linked is not changed in place by a file step.
		return suite.Preparation{Files: "gin", Hardlink: []string{"."}}, nil
	}}
	require.NoError(t, os.Mkdir(filepath.Join(b.suite, "gin"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(b.suite, "gin", "source"), []byte("original"), 0o444))

	require.NoError(t, b.run(t, b.job(t, s, "gin/full", "gin/patched")))
	require.Equal(t, []string{
		"prepare",
		"full original", "patched built changed and more",
		"full original", "patched built changed and more",
	}, b.journal(t))
	text, err := os.ReadFile(filepath.Join(b.suite, "gin", "source"))
	require.NoError(t, err)
	require.Equal(t, "original", string(text))
}

func TestWarmUpsRunAndAreNotRecorded(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	s := shellSuite{recipe: func(_ bench.TestCase, p suite.Paths) (suite.Recipe, error) {
		return suite.Recipe{Warmups: 2, Iterations: 1, Measure: sh(p, `echo ran >>"$JOURNAL"`)}, nil
	}}
	require.NoError(t, b.run(t, b.job(t, s, "gin/full")))
	require.Len(t, b.journal(t), 3)
	require.Len(t, b.sink.results()["gin/full A"].Collections, 1)
	require.Contains(t, b.log.String(), "== gin build full warm-up 2/2: sh -c")
	require.Contains(t, b.log.String(), "== gin build full 1/1: sh -c")
}

func TestTheJobsIterationsOverrideTheSuites(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	job := b.job(t, measuring("true"), "gin/full")
	job.Iterations = 4
	require.NoError(t, b.run(t, job))
	require.Len(t, b.sink.results()["gin/full A"].Collections, 4)
}

// clock advances only when a test says so.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func TestABlockThatWouldTakeTooLongIsDeliveredTestCaseByTestCase(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		iterations, blocks int
		journal            string
	}{
		"just fits": {2, 1, "a b a b"},     // 2 test cases × 2 iterations × 1 minute
		"too long":  {3, 2, "a b a a b b"}, // 6 minutes
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t)
			now := &clock{now: time.Unix(1e9, 0)}
			b.machine.Now, b.machine.MaxBlock = now.Now, 5*time.Minute
			b.sandbox.started = func(measure.Command) { now.now = now.now.Add(time.Minute) }
			s := shellSuite{iterations: want.iterations, recipe: func(tc bench.TestCase, p suite.Paths) (suite.Recipe, error) {
				return suite.Recipe{Measure: sh(p, `echo `+tc.Scenario+` >>"$JOURNAL"`)}, nil
			}}
			require.NoError(t, b.run(t, b.job(t, s, "gin/a", "gin/b")))
			require.Equal(t, want.journal, strings.Join(b.journal(t), " "))
			require.Len(t, b.sink.blocks, want.blocks)
			for _, result := range b.sink.results() {
				require.Len(t, result.Collections, want.iterations)
				require.Equal(t, time.Minute, result.Collections[0].Duration)
			}
		})
	}
}

func TestASinkThatFailsEndsTheJob(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	full := errors.New("spool is full")
	b.sink.onBlock = func(jobrun.Block) error { return full }
	err := b.run(t, b.job(t, measuring(`echo ran >>"$JOURNAL"`), "gin/full", "cobra/full"))
	require.ErrorIs(t, err, full)
	require.ErrorContains(t, err, "delivering block 1")
	require.Len(t, b.journal(t), 2, "the second benchmark must not be measured")
}

func TestProgressTellsPhaseTestCaseIterationAndWhatIsDone(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	var points []string
	b.machine.Points = func(p string) { points = append(points, p) }
	require.NoError(t, b.run(t, b.job(t, measuring("true"), "gin/full", "cobra/full")))
	require.Equal(t, []string{"preparing", "measuring", "preparing", "measuring"}, points)

	at := func(phase jobrun.Phase, name string, iteration, iterations, done int) jobrun.Progress {
		return jobrun.Progress{Phase: phase, TestCase: testCase(name), Subject: "A", Iteration: iteration, Iterations: iterations, Done: done, Total: 2}
	}
	require.Equal(t, []jobrun.Progress{
		at(jobrun.Preparing, "gin/", 0, 0, 0),
		at(jobrun.Preparing, "gin/full", 0, 0, 0),
		at(jobrun.Measuring, "gin/full", 1, 2, 0),
		at(jobrun.Measuring, "gin/full", 2, 2, 0),
		at(jobrun.Measuring, "gin/full", 2, 2, 1), // delivered
		at(jobrun.Preparing, "cobra/", 0, 0, 1),
		at(jobrun.Preparing, "cobra/full", 0, 0, 1),
		at(jobrun.Measuring, "cobra/full", 1, 2, 1),
		at(jobrun.Measuring, "cobra/full", 2, 2, 1),
		at(jobrun.Measuring, "cobra/full", 2, 2, 2),
	}, b.sink.progress)
}

func TestACommandIsMeasuredInAnEmptyDirectory(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	tc := bench.TestCase{Benchmark: "command", Target: "x86_64-unknown-linux-gnu"}
	job := jobrun.Job{
		Kind: bench.KindCommand, TestCases: []bench.TestCase{tc}, Iterations: 2,
		Command: &jobrun.Command{Argv: []string{"sh", "-c", `ls -A | wc -l; echo $GREETING; touch litter`}, Env: []string{"GREETING=hello"}},
	}
	require.NoError(t, b.run(t, job))
	result := b.sink.results()["command/ "]
	require.Len(t, result.Collections, 2)
	require.Contains(t, result.Collections[0].Metrics, bench.CPUTime)
	require.Equal(t, 2, strings.Count(b.log.String(), "\n0\nhello\n"), b.log.String())

	// Once by default.
	job.Iterations = 0
	require.NoError(t, b.run(t, job))
	require.Len(t, b.sink.results()["command/ "].Collections, 1)

	// Failing is a result.
	job.Command.Argv = []string{"no-such-program-here"}
	require.NoError(t, b.run(t, job))
	require.Equal(t, bench.FailJob, b.sink.results()["command/ "].Failure.Kind)
}

// The caller cleans the slot of a command while its result is delivered: it is told once nothing
// there is needed any more, once, however the job ends.
func TestACommandLeavesItsSlotBeforeItIsDelivered(t *testing.T) {
	t.Parallel()
	job := jobrun.Job{
		Kind: bench.KindCommand, TestCases: []bench.TestCase{{Benchmark: "command", Target: "x86_64-unknown-linux-gnu"}}, Iterations: 2,
		Command: &jobrun.Command{Argv: []string{"true"}},
	}
	broken := errors.New("the disk is full")
	for name, end := range map[string]struct {
		sink   error
		cancel bool
		want   []string
	}{
		"delivered": {nil, false, []string{"command", "command", "left", "delivered"}},
		"refused":   {broken, false, []string{"command", "command", "left", "delivered"}},
		"cancelled": {nil, true, []string{"command", "left"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var events []string
			b.machine.Leave = func() { events = append(events, "left") }
			b.sandbox.started = func(measure.Command) {
				events = append(events, "command")
				if end.cancel {
					cancel()
				}
			}
			b.sink.onBlock = func(jobrun.Block) error {
				events = append(events, "delivered")
				return end.sink
			}
			err := jobrun.Run(ctx, b.machine, job, b.sink)
			if end.cancel {
				require.ErrorIs(t, err, context.Canceled)
			} else {
				require.ErrorIs(t, err, end.sink)
			}
			require.Equal(t, end.want, events)
		})
	}
}

func TestJobsThatDoNotSayWhatTheyNeedAreRefused(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	whole := b.job(t, measuring("true"), "gin/full")
	for name, change := range map[string]func(*jobrun.Job){
		"no test case":           func(j *jobrun.Job) { j.TestCases = nil },
		"no suite":               func(j *jobrun.Job) { j.Suite = nil },
		"no artifact":            func(j *jobrun.Job) { j.Subjects = nil },
		"unknown kind":           func(j *jobrun.Job) { j.Kind = "other" },
		"command without a line": func(j *jobrun.Job) { j.Kind = bench.KindCommand },
	} {
		job := whole
		change(&job)
		failure, ok := errors.AsType[*jobrun.Failure](b.run(t, job))
		require.True(t, ok, name)
		require.Equal(t, bench.FailPermanent, failure.Kind, name)
	}
	require.Empty(t, b.sink.blocks)
}
