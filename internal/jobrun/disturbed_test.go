//go:build unix

package jobrun_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/jobrun"
	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/suite"
)

// readings are taken on a machine with one CPU, on which each measured command takes a
// second.
type readings struct {
	// foreign is the CPU time of others during the nth command, from 1.
	foreign func(n int) time.Duration
	taken   int
	now     machine.Reading
}

func (r *readings) Read() machine.Reading {
	r.taken++
	if r.taken%2 == 0 { // the end
		r.now.Uptime += time.Second
		r.now.Wall = r.now.Wall.Add(time.Second)
		busy := r.now.CPUs[0].Busy + 300*time.Millisecond + r.foreign(r.taken/2)
		r.now.CPUs = map[int]machine.CPUTimes{0: {Busy: busy}}
	} else if r.now.CPUs == nil {
		r.now.CPUs = map[int]machine.CPUTimes{0: {}}
	}
	return r.now
}

func loadedAt(commands ...int) func(int) time.Duration {
	return func(n int) time.Duration {
		for _, c := range commands {
			if c == n {
				return 500 * time.Millisecond
			}
		}
		return 0
	}
}

func always(int) time.Duration { return 500 * time.Millisecond }

// observed returns a bundle whose machine is read, and whose clock advances a
// minute with each command.
func observed(t *testing.T, foreign func(int) time.Duration) *bundle {
	t.Helper()
	b := newBundle(t)
	now := &clock{now: time.Unix(1e9, 0)}
	b.machine.Now, b.machine.MaxBlock = now.Now, 1000*time.Hour
	b.sandbox.started = func(measure.Command) { now.now = now.now.Add(time.Minute) }
	b.sandbox.change = func(_ measure.Command, s *measure.Sample) {
		s.UserCPU, s.SystemCPU = 200*time.Millisecond, 100*time.Millisecond
	}
	b.machine.Readings = &readings{foreign: foreign}
	return b
}

const byOthers = "foreign CPU time: 50 % of the job's CPUs"

// marks returns the marks of a result's collections.
func marks(r jobrun.Result) []string {
	out := make([]string, len(r.Collections))
	for i, c := range r.Collections {
		out[i] = machine.Text(c.Disturbed)
	}
	return out
}

func TestADisturbedIterationIsRepeated(t *testing.T) {
	t.Parallel()
	b := observed(t, loadedAt(2, 3))
	s := measuring(`echo ran >>"$JOURNAL"`)
	s.iterations = 3
	require.NoError(t, b.run(t, b.job(t, s, "gin/full")))
	result := b.sink.results()["gin/full A"]
	require.Len(t, b.journal(t), 5, "two repetitions")
	require.Equal(t, []string{"", "", ""}, marks(result))
	for _, c := range result.Collections {
		require.Equal(t, time.Second, c.Machine.Elapsed)
		require.Equal(t, 300*time.Millisecond, c.Machine.Own)
		require.Zero(t, *c.Machine.Foreign)
	}
	require.Equal(t, 3*time.Minute, result.Collections[1].Duration, "repetitions included")
	require.Contains(t, b.log.String(), "== gin build full 2/3: repeated: disturbed by "+byOthers)
}

func TestAnIterationThatStaysDisturbedIsKeptWithTheMark(t *testing.T) {
	t.Parallel()
	b := observed(t, loadedAt(3, 4, 5, 6, 7))
	s := measuring(`echo ran >>"$JOURNAL"`)
	s.iterations = 5
	require.NoError(t, b.run(t, b.job(t, s, "gin/full")))
	require.Equal(t, []string{"", "", byOthers, byOthers, ""}, marks(b.sink.results()["gin/full A"]))
	require.Len(t, b.journal(t), 8, "the third is repeated three times; then a third of the job is disturbed")
	require.Contains(t, b.log.String(), "== gin build full 3/5: kept with the mark disturbed, by "+byOthers)
}

func TestAMachineThatIsNeverQuietAtMostDoublesTheTimeOfAJob(t *testing.T) {
	t.Parallel()
	for iterations, commands := range map[int]int{1: 2, 2: 4, 3: 6, 4: 7, 20: 23} {
		b := observed(t, always)
		s := measuring(`echo ran >>"$JOURNAL"`)
		s.iterations = iterations
		require.NoError(t, b.run(t, b.job(t, s, "gin/full")))
		result := b.sink.results()["gin/full A"]
		require.Len(t, result.Collections, iterations)
		for _, mark := range marks(result) {
			require.Equal(t, byOthers, mark)
		}
		require.Len(t, b.journal(t), commands, iterations)
	}
}

func TestAMachineWithOtherWorkRepeatsNothing(t *testing.T) {
	t.Parallel()
	b := observed(t, always)
	b.machine.CoLocated = true
	s := measuring(`echo ran >>"$JOURNAL"`)
	s.iterations = 3
	require.NoError(t, b.run(t, b.job(t, s, "gin/full")))
	require.Equal(t, []string{byOthers, byOthers, byOthers}, marks(b.sink.results()["gin/full A"]))
	require.Len(t, b.journal(t), 3)
}

func TestALongIterationIsNotRepeatedBeyondTheTimeOfItsJob(t *testing.T) {
	t.Parallel()
	// The last iterations of a long test case among short ones that were quiet.
	b := observed(t, func(n int) time.Duration {
		if n > 9 {
			return 500 * time.Millisecond
		}
		return 0
	})
	tick := b.sandbox.started
	b.sandbox.started = func(c measure.Command) {
		tick(c)
		if strings.Contains(c.Argv[2], "long") {
			for range 99 {
				tick(c)
			}
		}
	}
	s := shellSuite{iterations: 9, recipe: func(tc bench.TestCase, p suite.Paths) (suite.Recipe, error) {
		r := suite.Recipe{Measure: sh(p, `echo `+tc.Scenario+` >>"$JOURNAL"`)}
		if tc.Scenario == "long" {
			r.Iterations = 1
		}
		return r, nil
	}}
	require.NoError(t, b.run(t, b.job(t, s, "gin/short", "cobra/long")))
	require.Equal(t, 2, strings.Count(strings.Join(b.journal(t), " "), "long"), "once more, for 9 quiet minutes do not make room for another 100")
	require.Equal(t, []string{byOthers}, marks(b.sink.results()["cobra/long A"]))
}

func TestWarmUpsAreNeitherJudgedNorRepeated(t *testing.T) {
	t.Parallel()
	b := observed(t, loadedAt(1, 2))
	s := shellSuite{recipe: func(_ bench.TestCase, p suite.Paths) (suite.Recipe, error) {
		return suite.Recipe{Warmups: 2, Iterations: 2, Measure: sh(p, `echo ran >>"$JOURNAL"`)}, nil
	}}
	require.NoError(t, b.run(t, b.job(t, s, "gin/full")))
	require.Len(t, b.journal(t), 4)
	require.Equal(t, []string{"", ""}, marks(b.sink.results()["gin/full A"]))
}

func TestACommandIsMarkedAndNotRepeated(t *testing.T) {
	t.Parallel()
	b := observed(t, always)
	job := jobrun.Job{
		Kind: bench.KindCommand, TestCases: []bench.TestCase{{Benchmark: "command", Target: "x86_64-unknown-linux-gnu"}}, Iterations: 2,
		Command: &jobrun.Command{Argv: []string{"sh", "-c", "echo ran"}},
	}
	require.NoError(t, b.run(t, job))
	require.Equal(t, []string{byOthers, byOthers}, marks(b.sink.results()["command/ "]))
	require.NotContains(t, b.log.String(), "repeated")
}

func TestInTurnsTheMarkIsThatOfThePair(t *testing.T) {
	t.Parallel()
	b := observed(t, func(n int) time.Duration {
		// A B, B A, then A B B B B: the second side of the third pair stays disturbed.
		if n > 5 && n <= 9 {
			return 500 * time.Millisecond
		}
		return 0
	})
	s := measuring(`cat "$ARTIFACT/tag" >>"$JOURNAL"; echo >>"$JOURNAL"`)
	s.iterations = 4
	job := b.job(t, s, "gin/full")
	job.Subjects = append(job.Subjects, b.artifact(t, "B"))
	require.NoError(t, b.run(t, job))
	require.Equal(t, "A B B A A B B B B B A", strings.Join(b.journal(t), " "))
	results := b.sink.results()
	require.Equal(t, []string{"", "", byOthers + ", while the other side was measured", ""}, marks(results["gin/full A"]))
	require.Equal(t, []string{"", "", byOthers, ""}, marks(results["gin/full B"]))
}

func TestPressureIsJudgedByTheSeriesItself(t *testing.T) {
	t.Parallel()
	b := observed(t, loadedAt())
	b.machine.Readings = &pressed{waits: []time.Duration{900 * time.Millisecond, 800 * time.Millisecond, 850 * time.Millisecond, 990 * time.Millisecond, 860 * time.Millisecond}}
	s := measuring(`echo ran >>"$JOURNAL"`)
	s.iterations = 4
	require.NoError(t, b.run(t, b.job(t, s, "gin/full")))
	require.Equal(t, []string{"", "", "", ""}, marks(b.sink.results()["gin/full A"]))
	require.Contains(t, b.log.String(), "== gin build full 4/4: repeated: disturbed by CPU pressure: 99 %, usually 85 %")
}

// pressed are readings of a machine on which tasks wait for a CPU for so many
// milliseconds of each command's second.
type pressed struct {
	waits []time.Duration
	taken int
	now   machine.Reading
}

func (p *pressed) Read() machine.Reading {
	p.taken++
	if p.taken%2 == 0 {
		p.now.Uptime += time.Second
		p.now.Wall = p.now.Wall.Add(time.Second)
		stalled := p.now.Stalled[machine.CPUPressure] + p.waits[p.taken/2-1]
		p.now.Stalled = map[machine.Quantity]time.Duration{machine.CPUPressure: stalled}
	} else if p.now.Stalled == nil {
		p.now.Stalled = map[machine.Quantity]time.Duration{machine.CPUPressure: 0}
	}
	return p.now
}

func TestCountersAndDisturbancesAreCountedApart(t *testing.T) {
	t.Parallel()
	b := observed(t, loadedAt(3, 4))
	commands := 0
	b.sandbox.change = func(_ measure.Command, s *measure.Sample) {
		s.UserCPU = 300 * time.Millisecond
		if commands++; commands <= 2 {
			s.Invalid = []measure.InvalidCounter{{Counter: measure.CounterInstructions, Enabled: 2, Running: 1}}
		}
	}
	s := measuring(`echo ran >>"$JOURNAL"`)
	require.NoError(t, b.run(t, b.job(t, s, "gin/full")))
	require.Len(t, b.journal(t), 2+2+2)
	require.Equal(t, []string{"", ""}, marks(b.sink.results()["gin/full A"]))
}

func TestAClockThatJumpsBetweenTheSidesOfAPair(t *testing.T) {
	t.Parallel()
	b := observed(t, loadedAt())
	now, commands := time.Unix(1e9, 0), 0
	b.machine.Now = func() time.Time { return now }
	b.sandbox.started = func(measure.Command) {
		now = now.Add(time.Second)
		if commands++; commands%2 == 1 {
			now = now.Add(-time.Hour)
		}
	}
	s := measuring("true")
	s.iterations = 3
	job := b.job(t, s, "gin/full")
	job.Subjects = append(job.Subjects, b.artifact(t, "B"))
	require.NoError(t, b.run(t, job))
	for _, name := range []string{"gin/full A", "gin/full B"} {
		result := b.sink.results()[name]
		require.Nil(t, result.Failure)
		require.Len(t, result.Collections, 3)
		for i, c := range result.Collections {
			require.Equal(t, i+1, c.Iteration, "pairs are formed by iteration, not by time")
			require.GreaterOrEqual(t, c.Duration, time.Duration(0))
		}
	}
}
