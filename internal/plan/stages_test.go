package plan_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/suite"
	"github.com/benchloom/benchloom/internal/verdict"
)

const smallSuite = `name: small
artifact: {provider: directory, parameters: {path: "/artifacts/{tag}"}}
targets: [x86_64-unknown-linux-gnu, aarch64-unknown-linux-gnu]
procedures:
  runtime: {measure: {run: [sh, -c, "true"]}}
benchmarks:
  - {name: gin, kind: runtime}
  - {name: sort, kind: runtime}
`

var (
	gin  = bench.TestCase{Benchmark: "gin", Target: linux}
	sort = bench.TestCase{Benchmark: "sort", Target: linux}
)

// commit plans a merged commit of a project with the small suite, on Linux.
func commit(t *testing.T, change func(*plan.Facts)) plan.Facts {
	t.Helper()
	loaded, err := suite.Load(fstest.MapFS{suite.FileName: {Data: []byte(smallSuite)}})
	require.NoError(t, err)
	f := plan.Facts{
		Request: bench.Request{
			ID: "rabcdefghjk", Project: "go", Type: bench.Master, Tag: "c2",
			Submission: bench.Submission{Submitter: "ada"}, Origin: bench.Origin{Parent: "c1", WaitsFor: "c1"},
		},
		Config: bench.ProjectConfig{Targets: []bench.Target{linux}}, Fleet: fleet, Suite: loaded, SuiteHash: "abc",
	}
	if change != nil {
		change(&f)
	}
	return f
}

func own(t *testing.T, f plan.Facts) []bench.PlannedJob {
	t.Helper()
	jobs, err := f.Own()
	require.NoError(t, err)
	for _, j := range jobs {
		require.NoError(t, j.Validate())
	}
	return jobs
}

// pools says which benchmarks are measured on which pool.
func pools(jobs []bench.PlannedJob) map[string][]string {
	out := make(map[string][]string)
	for _, j := range jobs {
		for _, tc := range j.TestCases {
			out[j.Pool] = append(out[j.Pool], tc.Benchmark)
		}
	}
	return out
}

func TestWhereTestCasesAreMeasured(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*plan.Facts)
		want   map[string][]string
	}{
		"on the largest class": {nil, map[string][]string{"large": {"gin", "sort"}}},
		"where their series live": {
			func(f *plan.Facts) { f.Series = map[bench.TestCase]bench.SizeClass{gin: 2} },
			map[string][]string{"small": {"gin"}, "large": {"sort"}},
		},
		"not where nobody is left": {
			func(f *plan.Facts) { f.Series = map[bench.TestCase]bench.SizeClass{gin: 16, sort: 16} },
			map[string][]string{"large": {"gin", "sort"}},
		},
		"where their like went": {
			func(f *plan.Facts) { f.Learned = map[bench.Shape]bench.SizeClass{f.Shapes()[0]: 2} },
			map[string][]string{"small": {"gin", "sort"}},
		},
		"on the class that a person has chosen": {
			func(f *plan.Facts) {
				f.Config.Size.Class, f.Series = 2, map[bench.TestCase]bench.SizeClass{gin: 4}
			},
			map[string][]string{"small": {"gin", "sort"}},
		},
		"on the pools of their benchmark sets": {
			func(f *plan.Facts) {
				f.Config.BenchmarkSets = []bench.BenchmarkSet{{Name: "a", Pool: "small", Benchmarks: []string{"gin"}}, {Name: "b", Pool: "large", Benchmarks: []string{"sort"}}}
			},
			map[string][]string{"small": {"gin"}, "large": {"sort"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, pools(own(t, commit(t, c.change))))
		})
	}
}

func TestStages(t *testing.T) {
	t.Parallel()
	f := commit(t, nil)
	require.Equal(t, []bench.Stage{bench.StageParent, bench.StageOwn}, plan.Stages(f.Request, f.Config, f.Suite))
	f.Config.Verify, f.Config.Artifacts.Provider = bench.VerifyAll, bench.BuildProvider
	require.Equal(t, []bench.Stage{bench.StageBuild, bench.StageParent, bench.StageOwn}, plan.Stages(f.Request, f.Config, f.Suite))
	require.Equal(t, []bench.Stage{bench.StageOwn}, plan.Stages(request(), f.Config, nil))
}

// The story of a commit: its parent lacks something, is measured where the commit is, and
// suspects are measured again in turns.
func TestACommitAndItsParent(t *testing.T) {
	t.Parallel()
	f := commit(t, nil)
	require.True(t, f.Backfills())
	jobs := own(t, f)
	parents, err := f.Parent(jobs)
	require.NoError(t, err)
	require.Equal(t, "c1", parents[0].Tag)
	require.Equal(t, jobs[0].At(), parents[0].At())

	// One test case is stored, nothing runs: the other is lacking.
	of := plan.QueryOf(parents[0].Job)
	require.Equal(t, plan.CoverageQuery{Tag: "c1", Pool: bench.Pool{Target: linux, SizeClass: 4, Name: "large"}, SuiteHash: "abc"}, of)
	lacking := func(stage bench.Stage, c plan.Coverage) ([]bench.PlannedJob, []bench.JobKey) {
		return f.Uncovered(stage, parents, map[plan.CoverageQuery]plan.Coverage{of: c})
	}
	rest, shared := lacking(bench.StageParent, plan.Coverage{Stored: map[bench.TestCase]bool{gin: true}})
	require.Equal(t, map[string][]string{"large": {"sort"}}, pools(rest))
	require.Empty(t, shared)
	require.NotEqual(t, parents[0].Key, rest[0].Key, "other test cases are another job")
	require.NotEqual(t, parents[0].Shape, rest[0].Shape)

	// One runs, one was tried and failed: that is not tried again for a child, but for the
	// artifact's own request.
	c := plan.Coverage{Running: map[bench.TestCase]bench.JobKey{gin: "running"}, Impossible: map[bench.TestCase]string{sort: "it failed"}}
	rest, shared = lacking(bench.StageParent, c)
	require.Empty(t, rest)
	require.Equal(t, []bench.JobKey{"running"}, shared)
	rest, _ = lacking(bench.StageOwn, c)
	require.Equal(t, map[string][]string{"large": {"sort"}}, pools(rest))

	look, err := f.Look("c1", map[bench.TestCase]bool{sort: true}, 6)
	require.NoError(t, err)
	require.Equal(t, map[string][]string{"large": {"sort"}}, pools(look))
	require.Equal(t, []string{"c2", "c1", "idle"}, []string{look[0].Tag, look[0].Versus, look[0].Queue})
	require.Equal(t, 6, look[0].Iterations)

	// Nobody has asked for the parent.
	f.Request.WaitsFor = ""
	require.False(t, f.Backfills())
}

func TestAParentsJobsKeepTheConstraints(t *testing.T) {
	t.Parallel()
	f := commit(t, func(f *plan.Facts) { f.Request.Constraints = &bench.Constraints{Machines: []string{"b"}} })
	jobs := own(t, f)
	require.NotZero(t, jobs[0].MinClass)
	parents, err := f.Parent(jobs)
	require.NoError(t, err)
	require.Equal(t, f.Request.Constraints, parents[0].Constraints)
	require.Equal(t, jobs[0].MinClass, parents[0].MinClass)

	jobs[0].Pool, jobs[0].SizeClass = "small", 2
	_, err = f.Parent(jobs)
	require.NotNil(t, plan.Unplaceable(err), "no collector of that pool meets them")
}

func TestLooksBelongToTheirRequest(t *testing.T) {
	t.Parallel()
	look := func(f plan.Facts) []bench.PlannedJob {
		f.Config.OptionalTargets = []bench.Target{arm}
		jobs, err := f.Look("c1", map[bench.TestCase]bool{gin: true, {Benchmark: "gin", Target: arm}: true}, 8)
		require.NoError(t, err)
		return jobs
	}
	jobs := look(commit(t, nil))
	require.Equal(t, map[string][]string{"large": {"gin"}}, pools(jobs), "not those of optional targets")
	other := look(commit(t, func(f *plan.Facts) { f.Request.ID = "rkjhgfedcba" }))
	require.NotEqual(t, jobs[0].Key, other[0].Key)
}

// Who shares a job, and when the same test cases are another one.
func TestAJobsKey(t *testing.T) {
	t.Parallel()
	f := commit(t, nil)
	key := own(t, f)[0].Key
	other := commit(t, func(f *plan.Facts) { f.Request.ID = "rkjhgfedcba" })
	require.Equal(t, key, own(t, other)[0].Key, "tracked requests share")
	require.NotEqual(t, key, own(t, commit(t, func(f *plan.Facts) { f.Request.Type = bench.AdHoc }))[0].Key, "ad-hoc ones do not")

	// A parent's job is meant for its pool, in its first generation and in all later ones.
	parent := func(f plan.Facts, pool string) bench.PlannedJob {
		j := own(t, f)[0]
		j.Pool = pool
		jobs, err := f.Parent([]bench.PlannedJob{j})
		require.NoError(t, err)
		return jobs[0]
	}
	here, there := parent(f, "large"), parent(f, "other")
	require.NotEqual(t, here.Key, there.Key)
	require.Equal(t, here.Key, parent(other, "large").Key, "children share it")
	require.NotEqual(t, plan.Later(here.Job, f.Request.ID, 1).Key, plan.Later(there.Job, f.Request.ID, 1).Key)
	require.NotEqual(t, plan.Later(here.Job, f.Request.ID, 1).Key, plan.Later(here.Job, other.Request.ID, 1).Key, "a later one is its request's")
	require.Equal(t, plan.Later(here.Job, f.Request.ID, 1).Key, f.Generation(here, 1).Key, "planned or replaced")
	require.Equal(t, here, f.Generation(here, 0))

	// Builds are everybody's; commands belong to no pool.
	spec := bench.BuildSpec{Key: "b0", Tag: "c2", Target: linux}
	build, err := f.Build(spec, 0)
	require.NoError(t, err)
	spec.Tag = "same tree"
	again, err := other.Build(spec, 0)
	require.NoError(t, err)
	require.Equal(t, build.Key, again.Key)
	require.Equal(t, plan.Later(build.Job, f.Request.ID, 1).Key, plan.Later(again.Job, other.Request.ID, 1).Key)
	commands := plan.NewCommands(facts(request()))
	command, err := commands.Job(commands.Only())
	require.NoError(t, err)
	moved := command.Job
	moved.Pool = "other"
	require.Equal(t, plan.Later(command.Job, "r", 1).Key, plan.Later(moved, "r", 1).Key)
}

func TestCheckBeforeSubmission(t *testing.T) {
	t.Parallel()
	warnings, err := commit(t, nil).Check()
	require.NoError(t, err)
	require.Empty(t, warnings)

	for name, c := range map[string]struct {
		change func(*plan.Facts)
		want   string
	}{
		"nobody of the class": {func(f *plan.Facts) { f.Config.Size.Class = 16 }, "of size class 16"},
		"nobody of the set's pool": {
			func(f *plan.Facts) {
				f.Config.BenchmarkSets = []bench.BenchmarkSet{{Name: "a", Pool: "nowhere", Benchmarks: []string{"gin", "sort"}}}
			},
			"in pool nowhere",
		},
		"no such benchmark, and nobody to run it": {
			func(f *plan.Facts) {
				f.Config.Targets, f.Fleet, f.Request.Selection.Benchmarks = nil, nil, []string{"tar"}
			},
			`"tar"`,
		},
		"constraints exclude each other": {
			func(f *plan.Facts) {
				f.Config.Constraints.Machines = []string{"a"}
				f.Request.Constraints = &bench.Constraints{Machines: []string{"b"}}
			},
			"project go and the request: ",
		},
	} {
		_, err := commit(t, c.change).Check()
		require.ErrorContains(t, err, c.want, name)
	}
	_, err = commit(t, func(f *plan.Facts) { f.Config.OptionalTargets, f.Fleet = []bench.Target{arm}, fleet[:2] }).Check()
	require.NoError(t, err, "an optional target may have nobody")
	warnings, err = commit(t, func(f *plan.Facts) {
		f.Fleet = plan.Fleet{{Name: "away", Pool: bench.Pool{Target: linux, SizeClass: 2, Name: "small"}, Active: true}}
	}).Check()
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	require.Contains(t, warnings[0], "away (offline)")
}

// A request in turns begins with the first look, unless the number is fixed.
func TestARequestInTurnsBeginsWithTheFirstLook(t *testing.T) {
	t.Parallel()
	family, err := verdict.NewFamily(1)
	require.NoError(t, err)
	first, _ := family.NextLook(0)
	require.Equal(t, plan.FirstLook, first)
	for fixed, want := range map[int]int{0: first, 3: 3} {
		f := commit(t, func(f *plan.Facts) {
			f.Request.Type, f.Request.Parent, f.Request.Versus, f.Request.Selection.Iterations = bench.AdHoc, "", "c1", fixed
		})
		for _, j := range own(t, f) {
			require.Equal(t, want, j.Iterations)
		}
		look, err := f.Look("c1", map[bench.TestCase]bool{gin: true}, 8)
		require.NoError(t, err)
		require.Equal(t, []any{8, "user:ada"}, []any{look[0].Iterations, look[0].Queue})
	}
}
