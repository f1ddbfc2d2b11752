package cli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/diagnose"
	"github.com/benchloom/benchloom/internal/sizeclass"
)

const mainQueue = "bench/" + string(linux) + "/2/main"

// explained is a job that waits after it was too small for its first class.
func explained(t *testing.T) diagnose.JobExplanation {
	t.Helper()
	selection := sizeclass.Selection{Class: 4, Why: "least time × class^0.5 of the classes known", Choices: learned(t).choices}
	return diagnose.Job(diagnose.JobCase{
		Key: "aaaaaaaaaaaaaaaa", Project: "go", Status: bench.JobQueued, TaskQueue: mainQueue, SizeClass: 4,
		Needs:   bench.ConstraintSpec{Devices: []string{"gpu"}, Memory: "8g"},
		Waiters: []diagnose.Waiter{{ID: "r7k2m4q9xt2", InTurn: true}},
		Queue: diagnose.Queue{
			Name: "user:ada", Class: "weighted", Weight: 5, Level: 3, OwnLevel: 3, Share: new(0.625), Before: 1, Waiting: 4, HandedOut: 1, Running: 2,
			Earlier: []string{"vip"}, Beside: []string{"project:go", "user:eve"},
		},
		Account: diagnose.Account{Name: "ada", MaxRunning: new(3), UnderWay: 3, FirstLevel: 1},
		Collectors: []diagnose.Collector{
			{Name: "bench-1", State: bench.CollectorBenchmarking, Run: "bbbbbbbbbbbbbbbb-00000001", TaskQueues: []string{mainQueue}, LastHeard: now},
			{Name: "bench-2", State: bench.CollectorOffline, TaskQueues: []string{"bench/other"}, LastHeard: before(time.Hour), Lacks: []string{"it has no device gpu"}},
		},
		Runs: []diagnose.Run{{
			ID: "aaaaaaaaaaaaaaaa-00000001", Number: 1, Reason: bench.Scheduled, Collector: "bench-3", SizeClass: 1, Outcome: bench.RunTooSmall,
			Message: "out of memory", Started: before(10 * time.Minute), Finished: before(9 * time.Minute), Timeout: 2 * time.Minute, PeakMemory: 900 << 20,
		}},
		Size: diagnose.Size{Class: 4, Shape: "shapeshapeshapes", Selected: before(11 * time.Minute), Now: &selection},
	}, now)
}

type lessons struct {
	statistics sizeclass.Statistics
	choices    []sizeclass.Choice
	selection  sizeclass.Selection
}

// learned are statistics of jobs that run out of memory on class 1.
func learned(t *testing.T) lessons {
	t.Helper()
	analyzer, err := sizeclass.New(sizeclass.Defaults())
	require.NoError(t, err)
	var s sizeclass.Statistics
	for i, a := range []sizeclass.Attempt{
		{Class: 1, Outcome: sizeclass.OutOfMemory, Duration: 5 * time.Second, PeakMemory: 900 << 20, CPUTime: 4 * time.Second},
		{Class: 4, Outcome: sizeclass.Succeeded, Duration: 30 * time.Second, PeakMemory: 3 << 30, CPUTime: 80 * time.Second, Largest: true},
		{Class: 4, Outcome: sizeclass.Succeeded, Duration: 32 * time.Second, Largest: true},
	} {
		a.ID, a.Job, a.At, a.Complete = "attempt-"+string(rune('a'+i)), "aaaaaaaaaaaaaaaa", before(time.Duration(10-i)*time.Minute), true
		s = analyzer.Learn(s, a)
	}
	s.Spent = sizeclass.Spent{Total: 250, Probes: 2.5}
	s.Marks = []sizeclass.Mark{{ID: "cccccccccccccccc", Class: 2, Expires: now.Add(time.Hour)}}
	selection, err := analyzer.Explain(s, sizeclass.Question{Classes: []bench.SizeClass{1, 2, 4}, Original: 30 * time.Minute, Now: now})
	require.NoError(t, err)
	return lessons{s, selection.Choices, selection}
}

func TestExplanations(t *testing.T) {
	t.Parallel()
	job, known := explained(t), learned(t)
	shape := diagnose.Shape(known.statistics, &known.selection)
	shape.Project, shape.Shape, shape.About, shape.UpdatedAt = "adhoc", "shapeshapeshapes", "./sort --large on "+string(linux), before(8*time.Minute)
	since := before(time.Minute)
	for name, f := range map[string]func(*strings.Builder, cli.View) error{
		"explain-job": func(b *strings.Builder, v cli.View) error { return cli.JobExplanation(b, job, v) },
		"explain-request": func(b *strings.Builder, v cli.View) error {
			return cli.RequestExplanation(b, apiclient.RequestExplanation{
				Request: apiclient.Request{ID: "r7k2m4q9xt2", Project: "go", Tag: "1.26.0", Status: bench.ArtifactsReady},
				Findings: []apiclient.Finding{
					{Subject: "queue/go", What: "the project was paused by root: new disks", Since: &since, Stuck: true, Remedy: "benchloom queue resume go"},
				},
				Place:    &apiclient.QueueEntry{Position: 2, Reason: "release of 2026-02-10, before all commits", Blocked: "a free slot"},
				Progress: apiclient.Progress{Jobs: 1, TestCases: 3},
				Open:     []apiclient.OpenJob{{Key: "aaaaaaaaaaaaaaaa", Status: bench.JobQueued, Waits: "its turn"}},
			}, v)
		},
		"sizeclass-show": func(b *strings.Builder, v cli.View) error { return cli.Shape(b, shape, v) },
		"sizeclass-list": func(b *strings.Builder, v cli.View) error {
			return cli.Shapes(b, apiclient.ShapeList{Shapes: []apiclient.Shape{
				{Project: "adhoc", Shape: "shapeshapeshapes", About: shape.About, Runs: 2, Next: "class 4", UpdatedAt: shape.UpdatedAt},
			}}, v)
		},
		"shares": func(b *strings.Builder, v cli.View) error {
			return cli.Shares(b, apiclient.Shares{By: "queue", WindowSeconds: 3600, Shares: []apiclient.Share{
				{
					Name: "user:ada", Class: "weighted", Weight: 5, Level: 3, Share: new(0.625), Started: 60, Received: new(0.6), Queued: 8, HandedOut: 3, Running: 1,
					WaitMedian: new(0.25), Wait90: new(12.0), WaitMax: new(80.0), OldestSince: &since,
				},
				{Name: "vip", Class: "strict", Weight: 1, Level: 1},
			}}, v)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			require.NoError(t, f(&b, cli.View{Now: now, Width: 160}))
			golden(t, name, b.String())
		})
	}
}
