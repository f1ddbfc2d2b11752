package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/plan"
)

const (
	linux = bench.Target("x86_64-unknown-linux-gnu")
	arm   = bench.Target("aarch64-unknown-linux-gnu")
)

var fleet = []placement.Collector{
	{Name: "a", Pool: bench.Pool{Target: linux, SizeClass: 2, Name: "small"}, Live: true, Active: true},
	{Name: "b", Pool: bench.Pool{Target: linux, SizeClass: 4, Name: "large"}, Live: true, Active: true},
	{Name: "c", Pool: bench.Pool{Target: arm, SizeClass: 1, Name: "board"}, Live: true, Active: true},
}

func request() bench.Request {
	return bench.Request{
		ID: "rabcdefghjk", Project: "adhoc", Type: bench.AdHoc,
		Submission: bench.Submission{Submitter: "ada", Branch: "dev"},
		Commands:   bench.Commands{Command: &bench.Command{Argv: []string{"./x"}, TimeoutSeconds: 60, Iterations: 3}},
	}
}

func facts(r bench.Request) plan.Facts { return plan.Facts{Request: r, Fleet: fleet} }

func line(number int) plan.Line {
	return plan.Line{Number: number, Name: "quick", Command: bench.Command{Argv: []string{"./x"}}, Target: linux}
}

func TestACommandBecomesAJobOfItsSubmitter(t *testing.T) {
	t.Parallel()
	r := request()
	p := plan.NewCommands(facts(r))
	j, err := p.Job(p.Only())
	require.NoError(t, err)
	require.Equal(t, bench.Job{
		Project: "adhoc", Key: j.Key,
		Work:     bench.Work{Kind: bench.KindCommand, Target: linux, TestCases: []bench.TestCase{{Benchmark: bench.CommandBenchmark, Target: linux}}, Iterations: 3, Command: r.Command},
		Location: bench.Location{SizeClass: 4, Pool: "large", TaskQueue: "bench/x86_64-unknown-linux-gnu/4/large"},
		Turn:     bench.Turn{Queue: "user:ada", Weight: 1, Priority: plan.DefaultPriority, Submitter: "ada", Branch: "dev"},
		Sizing:   bench.Sizing{Shape: j.Shape},
		JobState: bench.JobState{Status: bench.JobQueued},
	}, j.Job)
	require.NotEmpty(t, j.Shape)

	again, err := p.Job(p.Only())
	require.NoError(t, err)
	require.Equal(t, j, again, "planning twice gives the same job")
	r.ID = "rkjhgfedcba"
	other, err := plan.NewCommands(facts(r)).Job(p.Only())
	require.NoError(t, err)
	require.NotEqual(t, j.Key, other.Key, "two requests for the same command are two jobs")
}

func TestWhereACommandRuns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*bench.Request, *bench.ProjectConfig, *plan.Line)
		want   string
	}{
		"on the largest class":       {func(*bench.Request, *bench.ProjectConfig, *plan.Line) {}, "large"},
		"on the project's class":     {func(_ *bench.Request, c *bench.ProjectConfig, _ *plan.Line) { c.Size.Class = 2 }, "small"},
		"on the request's before it": {func(r *bench.Request, c *bench.ProjectConfig, _ *plan.Line) { r.SizeClass, c.Size.Class = 2, 4 }, "small"},
		"on its own before all":      {func(r *bench.Request, _ *bench.ProjectConfig, l *plan.Line) { r.SizeClass, l.Class = 4, 2 }, "small"},
		"on its target":              {func(_ *bench.Request, _ *bench.ProjectConfig, l *plan.Line) { l.Target = arm }, "board"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, config, l := request(), bench.ProjectConfig{}, line(1)
			c.change(&r, &config, &l)
			j, err := plan.NewCommands(plan.Facts{Request: r, Config: config, Fleet: fleet}).Job(l)
			require.NoError(t, err)
			require.Equal(t, c.want, j.Pool)
		})
	}
}

func TestTheOnlyCommandOfARequestHasATarget(t *testing.T) {
	t.Parallel()
	r, config := request(), bench.ProjectConfig{}
	require.Equal(t, linux, plan.NewCommands(plan.Facts{Request: r, Config: config, Fleet: fleet}).Only().Target, "that of any collector")
	config.Targets = []bench.Target{arm}
	require.Equal(t, arm, plan.NewCommands(plan.Facts{Request: r, Config: config, Fleet: fleet}).Only().Target, "else the project's")
	r.Selection.Targets = []bench.Target{linux}
	require.Equal(t, linux, plan.NewCommands(plan.Facts{Request: r, Config: config, Fleet: fleet}).Only().Target, "else its own")
	r.Selection.Targets = nil
	require.Empty(t, plan.NewCommands(plan.Facts{Request: r}).Only().Target)
}

func TestEqualLinesAreTwoJobs(t *testing.T) {
	t.Parallel()
	p := plan.NewCommands(facts(request()))
	keys := make(map[bench.JobKey]bool)
	for number := range 1000 {
		j, err := p.Job(line(number))
		require.NoError(t, err)
		require.Equal(t, number, j.Line)
		require.Equal(t, "quick", j.Name)
		keys[j.Key] = true
	}
	require.Len(t, keys, 1000)
}

func TestALineMayHaveItsOwnQueueAndConstraints(t *testing.T) {
	t.Parallel()
	r := request()
	r.Queue, r.Constraints = "bisect", &bench.Constraints{CPUs: 1}
	p := plan.NewCommands(facts(r))
	j, err := p.Job(line(1))
	require.NoError(t, err)
	require.Equal(t, "bisect", j.Queue)
	require.Equal(t, r.Constraints, j.Constraints)
	l := line(2)
	l.Queue, l.Constraints = "single-build", &bench.Constraints{CPUs: 2}
	j, err = p.Job(l)
	require.NoError(t, err)
	require.Equal(t, "single-build", j.Queue)
	require.Equal(t, l.Constraints, j.Constraints)
}

func TestUnplaceableCommandsAreRefused(t *testing.T) {
	t.Parallel()
	p := plan.NewCommands(facts(request()))
	l := line(1)
	l.Class = 64
	for range 2 { // also when it is remembered
		_, err := p.Job(l)
		var unplaceable *placement.Unplaceable
		require.ErrorAs(t, err, &unplaceable)
	}
}
