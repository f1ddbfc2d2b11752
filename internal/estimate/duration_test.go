package estimate_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/estimate"
)

var now = time.Date(2026, 3, 4, 15, 0, 0, 0, time.UTC)

func TestDurationsComeFromTheMostAlike(t *testing.T) {
	t.Parallel()
	job := estimate.Shape{Project: "go", Kind: bench.KindCompileTime, Target: "x86_64-unknown-linux-gnu", Backend: "gc", Profile: "build", Cases: "abc", CaseCount: 4}
	otherCases, otherProfile, otherKind := job, job, job
	otherCases.Cases, otherCases.CaseCount = "xyz", 2
	otherProfile.Profile, otherProfile.Cases, otherProfile.CaseCount = "vet", "vvv", 8
	otherKind.Kind = bench.KindRuntime
	here, elsewhere, larger := estimate.Pool{SizeClass: 4, Name: "main"}, estimate.Pool{SizeClass: 4, Name: "spare"}, estimate.Pool{SizeClass: 8, Name: "main"}
	past := func(s estimate.Shape, at estimate.Pool, took time.Duration) estimate.Past {
		return estimate.Past{Shape: s, Pool: at, Took: took, Ended: now}
	}
	// The least similar first: each one is preferred to all before it.
	var history []estimate.Past
	for _, step := range []struct {
		adds  estimate.Past
		takes time.Duration
		basis estimate.Basis
		words string
	}{
		{past(otherKind, here, time.Hour), estimate.DefaultJob, estimate.Assumed, "1 job assumed to take 10 minutes, nothing like it has run"},
		{past(otherProfile, here, 80*time.Second), 40 * time.Second, estimate.SameKind, "1 job by the project's jobs of that kind"},
		{past(otherCases, here, 30*time.Second), 60 * time.Second, estimate.Kin, "1 job by jobs with the same profile and other test cases"},
		{past(job, larger, 50*time.Second), 50 * time.Second, estimate.OtherClass, "1 job by the same job's history on other size classes"},
		{past(job, elsewhere, 70*time.Second), 70 * time.Second, estimate.SameClass, "1 job by the same job's history in other pools of its size class"},
		{past(job, here, 90*time.Second), 90 * time.Second, estimate.OwnHistory, "1 job by the same job's history in its pool"},
	} {
		history = append(history, step.adds)
		took, basis := estimate.NewHistory(history).Job(job, here)
		require.Equal(t, step.takes, took, step.words)
		require.Equal(t, step.basis, basis, step.words)
		require.Equal(t, step.words, estimate.Words([]estimate.Basis{basis}))
	}
	otherProject := job
	otherProject.Project = "rustc"
	took, basis := estimate.NewHistory(history).Job(otherProject, here)
	require.Equal(t, estimate.DefaultJob, took, "another project's jobs say nothing")
	require.Equal(t, estimate.Assumed, basis)
}

func TestTheLastJobsCount(t *testing.T) {
	t.Parallel()
	job, here := estimate.Shape{Project: "go", Cases: "abc", CaseCount: 1}, estimate.Pool{SizeClass: 1, Name: "main"}
	var history []estimate.Past
	for i := range 3 * estimate.Recent {
		took := time.Hour
		if i < estimate.Recent {
			took = time.Minute + time.Duration(i)*time.Second
		}
		history = append(history, estimate.Past{Shape: job, Pool: here, Took: took, Ended: now.Add(-time.Duration(i) * time.Hour)})
	}
	history[3].Took = 5 * time.Hour // one that hung
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(history), func(i, j int) { history[i], history[j] = history[j], history[i] })
	took, _ := estimate.NewHistory(history).Job(job, here)
	require.Equal(t, time.Minute+5500*time.Millisecond, took)
}

func TestDurationsGrowWithTheirHistory(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 2_000 {
		past := randomPast(random)
		job, at := randomShape(random), randomPool(random)
		before, basis := estimate.NewHistory(past).Job(job, at)
		require.GreaterOrEqual(t, before, time.Duration(0))

		// The order in which a history is read changes nothing.
		shuffled := slices.Clone(past)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		again, sameBasis := estimate.NewHistory(shuffled).Job(job, at)
		require.Equal(t, before, again)
		require.Equal(t, basis, sameBasis)

		// Longer jobs do not make the estimate shorter.
		longer := slices.Clone(past)
		for i := range longer {
			longer[i].Took += time.Duration(random.IntN(100)) * time.Second
		}
		after, _ := estimate.NewHistory(longer).Job(job, at)
		require.GreaterOrEqual(t, after, before, "%+v", past)
	}
}

func randomShape(random *rand.Rand) estimate.Shape {
	n := 1 + random.IntN(3)
	return estimate.Shape{
		Project: "go", Kind: []bench.JobKind{bench.KindCompileTime, bench.KindRuntime}[random.IntN(2)],
		Profile: []string{"build", "vet"}[random.IntN(2)], Cases: string(rune('a' + n)), CaseCount: n,
	}
}

func randomPool(random *rand.Rand) estimate.Pool {
	return estimate.Pool{SizeClass: bench.SizeClass(1 + random.IntN(2)), Name: []string{"main", "spare"}[random.IntN(2)]}
}

func randomPast(random *rand.Rand) []estimate.Past {
	past := make([]estimate.Past, random.IntN(40))
	for i := range past {
		past[i] = estimate.Past{
			Shape: randomShape(random), Pool: randomPool(random), Took: time.Duration(random.IntN(600)) * time.Second,
			Ended: now.Add(-time.Duration(i) * time.Minute), // distinct, so that "the last ones" does not depend on durations
		}
	}
	return past
}

func TestTheRestOfARunningJob(t *testing.T) {
	t.Parallel()
	require.Equal(t, time.Minute, estimate.Rest(time.Minute, 0))
	require.Equal(t, time.Minute, estimate.Rest(time.Minute, -time.Second), "clocks differ")
	require.Equal(t, 20*time.Second, estimate.Rest(time.Minute, 40*time.Second))
	require.Equal(t, 20*time.Second, estimate.Rest(time.Minute, 200*time.Second), "overdue")
}

func TestWordsNameEveryBasisOnce(t *testing.T) {
	t.Parallel()
	require.Empty(t, estimate.Words(nil))
	require.Equal(t, "2 jobs by the same job's history in its pool, 1 job by the project's jobs of that kind",
		estimate.Words([]estimate.Basis{estimate.OwnHistory, estimate.SameKind, estimate.OwnHistory}))
}
