package sizeclass_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/sizeclass"
)

var now = time.Date(2026, time.January, 31, 12, 0, 0, 0, time.UTC)

func analyzer(t *testing.T) *sizeclass.Analyzer {
	t.Helper()
	return newAnalyzer(t, func(*sizeclass.Policy) {})
}

func newAnalyzer(t *testing.T, change func(*sizeclass.Policy)) *sizeclass.Analyzer {
	t.Helper()
	p := sizeclass.Defaults()
	change(&p)
	a, err := sizeclass.New(p)
	require.NoError(t, err)
	return a
}

func question() sizeclass.Question {
	return sizeclass.Question{Classes: classes, Original: 30 * time.Minute, Now: now, Attempt: "a1"}
}

// shape is a job that runs repeatedly.
type shape struct {
	t *testing.T
	*sizeclass.Analyzer
	statistics sizeclass.Statistics
	question   sizeclass.Question
	attempts   int
	runs       int
}

func newShape(t *testing.T, change func(*sizeclass.Policy)) *shape {
	t.Helper()
	return &shape{t: t, Analyzer: newAnalyzer(t, change), question: question()}
}

func unchanged(*sizeclass.Policy) {}

// choose starts a run.
func (s *shape) choose() sizeclass.Selection {
	s.t.Helper()
	s.runs++
	s.attempts++
	s.question.Attempt = fmt.Sprint("attempt ", s.attempts)
	selection, statistics, err := s.Select(s.statistics, s.question)
	require.NoError(s.t, err)
	s.statistics = statistics
	return selection
}

func (s *shape) escalate(from bench.SizeClass) (sizeclass.Selection, bool) {
	s.t.Helper()
	s.attempts++
	s.question.Attempt = fmt.Sprint("attempt ", s.attempts)
	return s.Escalate(s.statistics, s.question, from)
}

// end ends the last attempt.
func (s *shape) end(class bench.SizeClass, outcome sizeclass.Outcome, after time.Duration) {
	s.t.Helper()
	s.learn(s.attempt(class, outcome, after))
}

func (s *shape) attempt(class bench.SizeClass, outcome sizeclass.Outcome, after time.Duration) sizeclass.Attempt {
	s.question.Now = s.question.Now.Add(after)
	return sizeclass.Attempt{
		ID: s.question.Attempt, Job: fmt.Sprint("job ", s.runs), Class: class, Outcome: outcome, Duration: after, At: s.question.Now,
		Largest: class == s.question.Classes[len(s.question.Classes)-1], Complete: true,
	}
}

func (s *shape) learn(a sizeclass.Attempt) {
	s.t.Helper()
	s.statistics = s.Learn(s.statistics, a)
	// What is stored is what is known.
	text, err := s.statistics.Encode()
	require.NoError(s.t, err)
	s.statistics, err = sizeclass.Read(text)
	require.NoError(s.t, err)
}

// succeed makes n runs that take the same time on any class.
func (s *shape) succeed(n int, after time.Duration) {
	s.t.Helper()
	for range n {
		s.question.Random = 0.99 // no probe, where there is a choice
		s.end(s.choose().Class, sizeclass.Succeeded, after)
	}
	s.question.Random = 0
}

func TestFirstRunIsOnTheSmallestClassForTheMinimum(t *testing.T) {
	t.Parallel()
	s := newShape(t, unchanged)
	first := s.choose()
	require.EqualValues(t, 1, first.Class)
	require.Equal(t, 10*time.Second, first.Timeout)
	require.Equal(t, 10*time.Second, first.Expected)
	require.False(t, first.Probe, "nothing better is known, its result counts")

	// It times out and goes straight to the largest class, with the job's timeout.
	s.end(1, sizeclass.TimedOut, first.Timeout)
	next, ok := s.escalate(1)
	require.True(t, ok)
	require.EqualValues(t, 8, next.Class)
	require.Equal(t, 30*time.Minute, next.Timeout)
	s.end(8, sizeclass.Succeeded, time.Minute)

	// Ten seconds say nothing about a job that may take 170 there.
	second := s.choose()
	require.EqualValues(t, 1, second.Class)
	require.True(t, second.Probe)
	require.Equal(t, "2m49.705627484s", second.Choices[0].Acceptable.String())
	require.Equal(t, "4m14.558441226s", second.Timeout.String())
	s.end(1, sizeclass.Succeeded, time.Minute)

	third := s.choose()
	require.EqualValues(t, 1, third.Class)
	require.False(t, third.Probe)
	require.Equal(t, time.Minute, third.Expected)

	// The job's own timeout is never exceeded.
	s.question.Original = 5 * time.Second
	require.Equal(t, 5*time.Second, s.choose().Timeout)
}

func TestAShortJobStaysOnTheSmallestClass(t *testing.T) {
	t.Parallel()
	s := newShape(t, unchanged)
	for range 50 {
		selection := s.choose()
		require.EqualValues(t, 1, selection.Class)
		require.GreaterOrEqual(t, selection.Timeout, 10*time.Second)
		s.end(1, sizeclass.Succeeded, 50*time.Millisecond)
	}
}

func TestConcurrentFirstRunsAreOneProbe(t *testing.T) {
	t.Parallel()
	s := newShape(t, unchanged)
	require.EqualValues(t, 1, s.choose().Class)
	probe := s.question.Attempt
	for range 10 {
		other := s.choose()
		require.EqualValues(t, 8, other.Class, "the others go to the largest")
		require.Equal(t, 30*time.Minute, other.Timeout)
	}
	require.Equal(t, 10, s.statistics.Counts.InFlight)

	// An abandoned probe releases the mark and changes nothing else; so does an
	// expired one.
	freed := s.Learn(s.statistics, sizeclass.Attempt{ID: probe, Class: 1, Outcome: sizeclass.Abandoned, Duration: time.Second, At: now})
	require.Empty(t, freed.Marks)
	require.Empty(t, freed.Classes)
	again, _, err := s.Select(freed, s.question)
	require.NoError(t, err)
	require.EqualValues(t, 1, again.Class)

	s.question.Now = now.Add(time.Hour + 9*time.Second)
	require.EqualValues(t, 8, s.choose().Class)
	s.question.Now = now.Add(time.Hour + 10*time.Second)
	require.EqualValues(t, 1, s.choose().Class)
	require.Len(t, s.statistics.Marks, 1)
}

func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	s := newShape(t, unchanged)
	s.end(s.choose().Class, sizeclass.OutOfMemory, 5*time.Second)
	next, ok := s.escalate(1)
	require.True(t, ok)
	s.end(next.Class, sizeclass.Succeeded, time.Minute)

	// The next run starts where the last one succeeded, a later one probes class 2.
	second := s.choose()
	require.EqualValues(t, 8, second.Class)
	require.False(t, second.Probe)
	s.end(8, sizeclass.Succeeded, time.Minute)
	require.EqualValues(t, 2, s.choose().Class)
	s.end(2, sizeclass.OutOfMemory, 5*time.Second)
	require.Equal(t, "too small: a larger class ran out of memory", explain(t, s.Analyzer, s.statistics, s.question)[0].Verdict)
}

func TestMeasuredMemorySavesProbes(t *testing.T) {
	t.Parallel()
	s := newShape(t, unchanged)
	s.question.Memory = map[bench.SizeClass]int64{1: 4 << 30, 2: 8 << 30, 4: 16 << 30, 8: 32 << 30}
	s.end(s.choose().Class, sizeclass.TimedOut, 10*time.Second)
	s.escalate(1)
	success := s.attempt(8, sizeclass.Succeeded, time.Minute)
	success.PeakMemory = 10 << 30
	s.learn(success)
	selection := s.choose()
	require.EqualValues(t, 4, selection.Class, "classes 1 and 2 have less memory than the job needed")
	require.Equal(t, "too small: runs needed up to 10 GiB, it has 4 GiB", selection.Choices[0].Verdict)
	require.Zero(t, selection.Choices[0].Probability)

	// A measured size never prevents a job from running.
	s.question.Memory[8] = 1 << 30
	s.question.Classes = []bench.SizeClass{1, 8}
	require.EqualValues(t, 8, s.choose().Class)
}

func TestMeasuredCPUTimeSavesProbes(t *testing.T) {
	t.Parallel()
	s := newShape(t, unchanged)
	s.end(s.choose().Class, sizeclass.TimedOut, 10*time.Second)
	s.escalate(1)
	success := s.attempt(8, sizeclass.Succeeded, time.Minute)
	success.CPUTime = 8 * time.Minute // eight cores were busy all the time
	s.learn(success)
	s.question.CPUs = map[bench.SizeClass]int{1: 1, 2: 2, 4: 4, 8: 8}
	for _, c := range explain(t, s.Analyzer, s.statistics, s.question)[:3] {
		require.Zero(t, c.Probability)
		require.Equal(t, "not tried: it cannot be better", c.Verdict)
	}

	// A class is not a number of cores: with eight each, or an unknown number,
	// the same work may take no longer.
	for _, cpus := range []map[bench.SizeClass]int{{1: 8, 2: 8, 4: 8, 8: 8}, nil} {
		s.question.CPUs = cpus
		require.Equal(t, "could be better, not tried", explain(t, s.Analyzer, s.statistics, s.question)[0].Verdict)
	}
}

// A job reaches its own limit on class 1, but not on class 8: class 1 is too
// small, although that time would be acceptable there without the limit.
func TestAJobThatReachesItsOwnLimitIsTooLargeForTheClass(t *testing.T) {
	t.Parallel()
	tooSmall := func(s *shape) int { return explain(t, s.Analyzer, s.statistics, s.question)[0].TooSmall }
	for _, complete := range []bool{true, false} {
		s := newShape(t, unchanged)
		s.choose()
		attempt := s.attempt(1, sizeclass.TimedOut, 20*time.Second)
		attempt.OwnLimit, attempt.Complete = true, complete
		s.learn(attempt)
		require.Zero(t, tooSmall(s), "nobody knows yet whether it does everywhere")
		s.escalate(1)
		s.end(8, sizeclass.Succeeded, 15*time.Second)
		require.Equal(t, 1, tooSmall(s))
	}

	// It reaches the limit on every class: that says nothing about class 1.
	s := newShape(t, unchanged)
	s.choose()
	attempt := s.attempt(1, sizeclass.TimedOut, 20*time.Second)
	attempt.OwnLimit = true
	s.learn(attempt)
	s.escalate(1)
	s.end(8, sizeclass.TimedOut, 20*time.Second)
	require.Empty(t, s.statistics.Of(1).Samples)
}

func TestAFailureIsClassifiedByTheLargestClass(t *testing.T) {
	t.Parallel()
	tooSmall := func(s *shape) int { return explain(t, s.Analyzer, s.statistics, s.question)[0].TooSmall }

	// It succeeds there: class 1 was too small.
	s := newShape(t, unchanged)
	s.end(s.choose().Class, sizeclass.Failed, time.Second)
	require.Zero(t, tooSmall(s))
	s.escalate(1)
	s.end(8, sizeclass.Succeeded, time.Minute)
	require.Equal(t, 1, tooSmall(s))
	require.Zero(t, s.statistics.FailedOnLargest)

	// It fails there: the failure is the job's own, and says nothing about class 1.
	s = newShape(t, unchanged)
	s.end(s.choose().Class, sizeclass.Failed, time.Second)
	s.escalate(1)
	s.end(8, sizeclass.Failed, time.Second)
	require.Zero(t, tooSmall(s))
	require.Empty(t, s.statistics.Of(1).Samples)
	_, ok := s.escalate(8)
	require.False(t, ok, "what fails on the largest class fails")

	// For a day, or until one succeeds there, runs go there at once.
	require.EqualValues(t, 8, s.choose().Class)
	s.question.Now = s.question.Now.Add(24 * time.Hour)
	require.EqualValues(t, 8, s.choose().Class)
	waited := s.question
	waited.Now = waited.Now.Add(time.Nanosecond)
	later, _, err := s.Select(s.statistics, waited)
	require.NoError(t, err)
	require.EqualValues(t, 1, later.Class)
	s.end(8, sizeclass.Succeeded, time.Minute)
	require.EqualValues(t, 1, s.choose().Class)
}

func TestUninformativeAttemptsAreIgnored(t *testing.T) {
	t.Parallel()
	s := newShape(t, unchanged)
	s.end(s.choose().Class, sizeclass.TimedOut, 10*time.Second)
	s.escalate(1)
	first := s.attempt(8, sizeclass.Succeeded, time.Minute)
	s.learn(first)
	known := s.statistics

	for name, change := range map[string]func(*sizeclass.Attempt){
		"the same attempt once more": func(a *sizeclass.Attempt) { a.ID = first.ID },
		"a class that does not exist": func(a *sizeclass.Attempt) {
			a.Class = 0
		},
		"an outcome that does not exist": func(a *sizeclass.Attempt) { a.Outcome = "exploded" },
		"a machine that was lost":        func(a *sizeclass.Attempt) { a.Outcome = sizeclass.Abandoned },
	} {
		a := first
		a.ID, a.Duration = "another", time.Second
		change(&a)
		require.Equal(t, known, s.Learn(known, a), name)
	}
	resumed := first
	resumed.ID, resumed.Complete, resumed.Duration = "resumed", false, time.Second
	require.Equal(t, known.Classes[1].Samples, s.Learn(known, resumed).Classes[1].Samples, "a run that did a part of the job")
	resumed.Class, resumed.Largest, resumed.Outcome = 1, false, sizeclass.TimedOut
	require.Equal(t, known.Classes[0].Samples, s.Learn(known, resumed).Classes[0].Samples)
	resumed.Outcome = sizeclass.OutOfMemory
	require.Len(t, s.Learn(known, resumed).Classes[0].Samples, 2, "memory does not depend on how much was left to do")
	require.Equal(t, known, s.statistics, "learning changes nothing in place")
}

func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	s := newShape(t, func(p *sizeclass.Policy) { p.History = 3 })
	s.succeed(5, time.Second)
	s.succeed(2, 2*time.Second)
	samples := s.statistics.Of(1).Samples
	require.Len(t, samples, 3)
	require.Equal(t, time.Second, samples[0].Duration)
	require.Equal(t, 2*time.Second, samples[2].Duration)
	require.Equal(t, 7, s.statistics.Runs)
}

func TestAClassThatIsTooSmallAllAtOnceIsForgotten(t *testing.T) {
	t.Parallel()
	for outcome, streak := range map[sizeclass.Outcome]int{sizeclass.OutOfMemory: 2, sizeclass.TimedOut: 3, sizeclass.Failed: 3} {
		s := newShape(t, unchanged)
		s.end(s.choose().Class, sizeclass.TimedOut, 10*time.Second)
		s.escalate(1)
		s.end(8, sizeclass.Succeeded, time.Minute)
		s.end(s.choose().Class, sizeclass.Succeeded, time.Minute)
		s.succeed(30, time.Minute)
		require.Len(t, s.statistics.Of(1).Samples, 32)

		s.question.Random = 0.99
		for range streak {
			require.Zero(t, s.statistics.Counts.Forgotten)
			selection := s.choose()
			require.EqualValues(t, 1, selection.Class, outcome)
			s.end(1, outcome, selection.Timeout)
			s.escalate(1)
			s.end(8, sizeclass.Succeeded, time.Minute)
		}
		require.Equal(t, 1, s.statistics.Counts.Forgotten, outcome)
		require.Len(t, s.statistics.Of(1).Samples, streak)
		require.Equal(t, "best known", explain(t, s.Analyzer, s.statistics, s.question)[3].Verdict)
	}
}

func TestAJobThatChangesItsPaceIsLearnedAnew(t *testing.T) {
	t.Parallel()
	for _, pace := range []time.Duration{2 * time.Second, 8 * time.Second} {
		s := newShape(t, unchanged)
		s.succeed(20, 4*time.Second)
		s.succeed(2, pace)
		require.Zero(t, s.statistics.Counts.Forgotten)
		s.succeed(1, pace)
		require.Equal(t, 1, s.statistics.Counts.Forgotten)
		require.Len(t, s.statistics.Of(1).Samples, 3)
	}
	// One that varies is not.
	s := newShape(t, unchanged)
	for range 10 {
		s.succeed(3, 2*time.Second)
		s.succeed(3, 8*time.Second)
	}
	require.Zero(t, s.statistics.Counts.Forgotten)
}

func TestStepwise(t *testing.T) {
	t.Parallel()
	s := newShape(t, func(p *sizeclass.Policy) { p.Stepwise = true })
	class := s.choose().Class
	for _, want := range []bench.SizeClass{2, 4, 8} {
		s.end(class, sizeclass.OutOfMemory, time.Second)
		next, ok := s.escalate(class)
		require.True(t, ok)
		require.Equal(t, want, next.Class)
		class = next.Class
	}
	_, ok := s.escalate(8)
	require.False(t, ok)
}

func TestNext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, straight, stepwise bench.SizeClass
	}{{1, 8, 2}, {2, 8, 4}, {3, 8, 4}, {4, 8, 8}, {8, 0, 0}, {9, 0, 0}} {
		straight, ok := sizeclass.Next(classes, c.from, false)
		require.Equal(t, c.straight, straight)
		require.Equal(t, c.straight != 0, ok)
		stepwise, ok := sizeclass.Next(classes, c.from, true)
		require.Equal(t, c.stepwise, stepwise)
		require.Equal(t, c.stepwise != 0, ok)
	}
}

func TestProbesAreHeldToTheirBudget(t *testing.T) {
	t.Parallel()
	s := newShape(t, func(p *sizeclass.Policy) { p.Recheck = 10 })
	s.end(s.choose().Class, sizeclass.TimedOut, 10*time.Second)
	s.escalate(1)
	s.end(8, sizeclass.Succeeded, time.Minute)
	s.end(s.choose().Class, sizeclass.Succeeded, time.Minute)
	s.succeed(20, time.Minute)
	spent := s.statistics
	require.Positive(t, s.Learn(spent, sizeclass.Attempt{}).Spent.Total)
	s.question.Random = 0

	spent.Spent.Probes = spent.Spent.Total
	selection, after, err := s.Select(spent, s.question)
	require.NoError(t, err)
	require.EqualValues(t, 1, selection.Class)
	require.Equal(t, spent.Counts.Budget+1, after.Counts.Budget)

	spent.Spent.Probes = 0
	spent.Spent.Total *= 10
	selection, after, err = s.Select(spent, s.question)
	require.NoError(t, err)
	require.NotEqualValues(t, 1, selection.Class)
	require.True(t, selection.Probe)
	require.Equal(t, spent.Counts.Budget, after.Counts.Budget)
}

func TestALargerClassThatIsNew(t *testing.T) {
	t.Parallel()
	s := newShape(t, unchanged)
	s.question.Classes = []bench.SizeClass{1, 2}
	s.end(s.choose().Class, sizeclass.TimedOut, 10*time.Second)
	s.escalate(1)
	s.end(2, sizeclass.Succeeded, 5*time.Minute)
	s.question.Classes = classes
	probe := s.choose()
	require.EqualValues(t, 8, probe.Class, "it could be the best")
	require.Equal(t, 30*time.Minute, probe.Timeout)
	s.end(8, sizeclass.Abandoned, time.Second)
	next, ok := s.escalate(1)
	require.True(t, ok)
	require.EqualValues(t, 8, next.Class)
	require.Equal(t, 30*time.Minute, next.Timeout)
}

func TestQuestionsThatCannotBeAnswered(t *testing.T) {
	t.Parallel()
	a := analyzer(t)
	for want, change := range map[string]func(*sizeclass.Question){
		"no size class":                        func(q *sizeclass.Question) { q.Classes = nil },
		"[4 2] are not in ascending order":     func(q *sizeclass.Question) { q.Classes = []bench.SizeClass{4, 2} },
		"[2 2] are not in ascending order":     func(q *sizeclass.Question) { q.Classes = []bench.SizeClass{2, 2} },
		"a size class is a whole number":       func(q *sizeclass.Question) { q.Classes = []bench.SizeClass{0} },
		"timeout is 0s; it has to be above 0":  func(q *sizeclass.Question) { q.Original = 0 },
		"timeout is -1s; it has to be above 0": func(q *sizeclass.Question) { q.Original = -time.Second },
	} {
		q := question()
		change(&q)
		_, _, err := a.Select(sizeclass.Statistics{}, q)
		require.ErrorContains(t, err, want)
		_, err = a.Explain(sizeclass.Statistics{}, q)
		require.ErrorContains(t, err, want)
		_, ok := a.Escalate(sizeclass.Statistics{}, q, 1)
		require.False(t, ok)
	}
	q := question()
	q.Classes = classes[:1]
	selection, _, err := a.Select(sizeclass.Statistics{}, q)
	require.NoError(t, err)
	require.Equal(t, q.Original, selection.Timeout, "on the only class a job has the time that it asks for")
	require.Equal(t, "it is the only class", selection.Why)
}

func TestExplainHasNoSideEffects(t *testing.T) {
	t.Parallel()
	s := newShape(t, unchanged)
	selection, err := s.Explain(s.statistics, s.question)
	require.NoError(t, err)
	require.EqualValues(t, 1, selection.Class)
	require.Equal(t, "nothing is known yet: the smallest class is tried for the minimum acceptable time", selection.Why)
	require.Zero(t, s.statistics)
}

// A probe whose class is selected again before it starts does not block itself
// and is marked once.
func TestAProbeThatIsSelectedAgainIsStillOne(t *testing.T) {
	t.Parallel()
	a, err := sizeclass.New(sizeclass.Defaults())
	require.NoError(t, err)
	q := sizeclass.Question{Classes: classes, Original: time.Hour, Now: now, Attempt: "job"}
	first, s, err := a.Select(sizeclass.Statistics{}, q)
	require.NoError(t, err)
	again, s, err := a.Select(s, q)
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.Len(t, s.Marks, 1)
}

// A probe that moved to another class before it started releases its mark at
// its end and is not charged as a probe.
func TestAProbeThatEndsOnAnotherClassIsNotCharged(t *testing.T) {
	t.Parallel()
	s := newShape(t, unchanged)
	s.statistics.Marks = []sizeclass.Mark{{ID: "job 1", Class: 1, Expires: now.Add(time.Hour)}}
	s.runs = 1
	s.end(8, sizeclass.Succeeded, time.Minute)
	require.Empty(t, s.statistics.Marks)
	require.Zero(t, s.statistics.Spent.Probes)
	require.Equal(t, 480.0, s.statistics.Spent.Total)
}
