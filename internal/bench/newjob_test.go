package bench_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

var inPool = bench.Pool{Target: linux, SizeClass: 2, Name: "main"}

// plannedJobs makes one job of each kind that is ready to be recorded.
func plannedJobs(t *testing.T) map[string]bench.PlannedJob {
	t.Helper()
	ready := func(j bench.Job, err error) bench.PlannedJob {
		t.Helper()
		require.NoError(t, err)
		j.Key = "abcdefghijklmnop"
		j.Queue = "user:ada"
		p := bench.PlannedJob{Job: j}
		p.PutAt(bench.Place{Pool: inPool})
		return p
	}
	return map[string]bench.PlannedJob{
		"suite": ready(bench.NewSuiteJob("go", bench.Work{
			Kind: bench.KindRuntime, Target: linux, Tag: "v2", Versus: "v1", SuiteHash: "f00d", Iterations: 3,
			TestCases: []bench.TestCase{{Benchmark: "gin", Target: linux}, {Benchmark: "zip", Target: linux}},
		})),
		"build":   ready(bench.NewBuildJob("go", bench.BuildSpec{Tag: "v2", Target: linux}, 1)),
		"command": ready(bench.NewCommandJob("adhoc", echo, linux, 4, "quick")),
	}
}

func TestNewJobsAreQueued(t *testing.T) {
	t.Parallel()
	for kind, j := range plannedJobs(t) {
		require.NoError(t, j.Validate(), kind)
		require.Equal(t, bench.JobState{Status: bench.JobQueued}, j.JobState, kind)
		require.Equal(t, bench.Place{Pool: inPool}, j.At(), kind)
		require.Equal(t, inPool.TaskQueue(), j.TaskQueue, kind)
	}
	build, command := plannedJobs(t)["build"], plannedJobs(t)["command"]
	require.Equal(t, bench.KindBuild, build.Kind)
	require.Equal(t, "v2", build.Tag)
	require.Equal(t, 1, build.Generation)
	require.Equal(t, []bench.TestCase{{Benchmark: bench.CommandBenchmark, Target: linux}}, command.TestCases)
	require.Equal(t, 4, command.Line)
	require.Equal(t, 1, command.Iterations, "the command's")
}

// Each change makes a job of these kinds impossible, and leaves it possible for all
// others.
func TestJobsHaveOnlyFieldsOfTheirKind(t *testing.T) {
	t.Parallel()
	all := []string{"suite", "build", "command"}
	own := []bench.TestCase{{Benchmark: "gin", Profile: "build", Target: linux}}
	for name, c := range map[string]struct {
		change  func(*bench.PlannedJob)
		refused []string
	}{
		"no project":          {func(j *bench.PlannedJob) { j.Project = "" }, all},
		"no key":              {func(j *bench.PlannedJob) { j.Key = "" }, all},
		"no target":           {func(j *bench.PlannedJob) { j.Target = "" }, all},
		"no queue":            {func(j *bench.PlannedJob) { j.Queue = "" }, all},
		"no pool":             {func(j *bench.PlannedJob) { j.Pool = "" }, all},
		"no size class":       {func(j *bench.PlannedJob) { j.SizeClass = 0 }, all},
		"another task queue":  {func(j *bench.PlannedJob) { j.TaskQueue = "bench/other" }, all},
		"another set":         {func(j *bench.PlannedJob) { j.Set = []string{"one"} }, all},
		"negative affinity":   {func(j *bench.PlannedJob) { j.AffinityFor = -time.Second }, all},
		"an unknown kind":     {func(j *bench.PlannedJob) { j.Kind = "profile" }, all},
		"a kind in capitals":  {func(j *bench.PlannedJob) { j.Kind = "COMMAND" }, all},
		"no status":           {func(j *bench.PlannedJob) { j.Status = "" }, all},
		"begun already":       {func(j *bench.PlannedJob) { j.Status = bench.JobInProgress }, all},
		"an end too early":    {func(j *bench.PlannedJob) { j.CompletedAt = &madeAt }, all},
		"fewer than none":     {func(j *bench.PlannedJob) { j.Iterations = -1 }, all},
		"before the first":    {func(j *bench.PlannedJob) { j.Generation = -1 }, all},
		"no artifact":         {func(j *bench.PlannedJob) { j.Tag = "" }, []string{"suite", "build"}},
		"an artifact":         {func(j *bench.PlannedJob) { j.Tag = "v3" }, []string{"command"}},
		"another artifact":    {func(j *bench.PlannedJob) { j.Versus = "v0" }, []string{"build", "command"}},
		"itself in turns":     {func(j *bench.PlannedJob) { j.Tag, j.Versus = "v3", "v3" }, all},
		"no suite":            {func(j *bench.PlannedJob) { j.SuiteHash = "" }, []string{"suite"}},
		"a suite":             {func(j *bench.PlannedJob) { j.SuiteHash = "beef" }, []string{"build", "command"}},
		"no test cases":       {func(j *bench.PlannedJob) { j.TestCases = nil }, []string{"suite", "command"}},
		"a test case":         {func(j *bench.PlannedJob) { j.TestCases = own }, []string{"build", "command"}},
		"of another target":   {func(j *bench.PlannedJob) { j.TestCases = []bench.TestCase{{Benchmark: "gin", Target: "b-c"}} }, all},
		"no command":          {func(j *bench.PlannedJob) { j.Command = nil }, []string{"command"}},
		"an empty command":    {func(j *bench.PlannedJob) { j.Command = &bench.Command{} }, all},
		"a command":           {func(j *bench.PlannedJob) { j.Command = &echo }, []string{"suite", "build"}},
		"nothing to build":    {func(j *bench.PlannedJob) { j.Build = nil }, []string{"build"}},
		"something to build":  {func(j *bench.PlannedJob) { j.Build = &bench.BuildSpec{Target: linux} }, []string{"suite", "command"}},
		"built for another":   {func(j *bench.PlannedJob) { j.Build = &bench.BuildSpec{Target: "b-c"} }, all},
		"a line":              {func(j *bench.PlannedJob) { j.Line = 2 }, []string{"suite", "build"}},
		"a line before all":   {func(j *bench.PlannedJob) { j.Line = -1 }, all},
		"a name":              {func(j *bench.PlannedJob) { j.Name = "mine" }, []string{"build"}},
		"a profile":           {func(j *bench.PlannedJob) { j.Profile = "build" }, []string{"command"}},
		"constraints":         {func(j *bench.PlannedJob) { j.Constraints = &bench.Constraints{CPUs: 1} }, nil},
		"a later generation":  {func(j *bench.PlannedJob) { j.Generation = 5 }, nil},
		"a set of collectors": {func(j *bench.PlannedJob) { j.PutAt(bench.Place{Pool: inPool, Set: []string{"one"}}) }, nil},
		"a wait for caches":   {func(j *bench.PlannedJob) { j.AffinityFor = time.Minute }, nil},
	} {
		for kind, j := range plannedJobs(t) {
			c.change(&j)
			err := j.Validate()
			refused := false
			for _, k := range c.refused {
				refused = refused || k == kind
			}
			if !refused {
				require.NoError(t, err, "%s of a %s job", name, kind)
				continue
			}
			require.ErrorIs(t, err, bench.ErrInvalid, "%s of a %s job", name, kind)
		}
	}
}

// A job that is recorded already may have ended.
func TestOnlyEndedJobsHaveAnEnd(t *testing.T) {
	t.Parallel()
	j := plannedJobs(t)["suite"].Job
	for status, open := range map[bench.JobStatus]bool{
		bench.JobQueued: true, bench.JobHandedOut: true, bench.JobInProgress: true,
		bench.JobSuccess: false, bench.JobFailure: false, bench.JobCancelled: false,
	} {
		j.Status, j.CompletedAt = status, nil
		require.Equal(t, open, j.Validate() == nil, "%s without an end", status)
		j.CompletedAt = &madeAt
		require.Equal(t, !open, j.Validate() == nil, "%s with an end", status)
	}
}

func TestOnlySuiteJobsMeasureASuite(t *testing.T) {
	t.Parallel()
	for _, kind := range []bench.JobKind{bench.KindCommand, bench.KindBuild, "", "profile"} {
		w := plannedJobs(t)["suite"].Work
		w.Kind = kind
		j, err := bench.NewSuiteJob("go", w)
		require.ErrorIs(t, err, bench.ErrInvalid, "%s", kind)
		require.Zero(t, j)
	}
	_, err := bench.NewCommandJob("adhoc", bench.Command{}, linux, 0, "")
	require.ErrorContains(t, err, "no command line")
	_, err = bench.NewBuildJob("go", bench.BuildSpec{Target: linux}, 0)
	require.ErrorContains(t, err, "names no artifact")
}
