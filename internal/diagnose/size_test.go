package diagnose_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/diagnose"
	"github.com/benchloom/benchloom/internal/sizeclass"
)

func TestSizeReasons(t *testing.T) {
	t.Parallel()
	best := &sizeclass.Selection{Class: 2, Why: "least time × class^0.5 of the classes known"}
	then := now.Add(-time.Minute)
	for name, c := range map[string]struct {
		size diagnose.Size
		runs []diagnose.Run
		want string
	}{
		"fixed":        {diagnose.Size{Class: 2}, nil, "it is the class on which its results are compared, or the largest that can run it"},
		"pinned":       {diagnose.Size{Class: 2, Pinned: "request raaaaaaaaaa"}, nil, "it was pinned by request raaaaaaaaaa"},
		"not yet":      {diagnose.Size{Class: 4, Shape: "s"}, nil, "it is selected when the job is handed out"},
		"most likely":  {diagnose.Size{Class: 4, Shape: "s", Now: best}, nil, "it is selected when the job is handed out, by what is known now class 2: least time × class^0.5 of the classes known"},
		"selected":     {diagnose.Size{Class: 2, Shape: "s", Selected: then, Why: "nothing was known", Now: best}, nil, "it was selected when the job was handed out: nothing was known"},
		"to learn":     {diagnose.Size{Class: 1, Shape: "s", Selected: then, Probe: true, Why: "no sample tells about it", Now: best}, nil, "it was selected when the job was handed out: no sample tells about it"},
		"by then":      {diagnose.Size{Class: 1, Shape: "s", Selected: then, Now: best}, nil, "it was selected from the history of its shape, as it was then"},
		"a probe":      {diagnose.Size{Class: 1, Shape: "s", Selected: then, Probe: true, Now: best}, nil, "it was selected to learn whether this class is better than the best known"},
		"too small":    {diagnose.Size{Class: 4, Shape: "s", Selected: then}, []diagnose.Run{{ID: "run", SizeClass: 1, Outcome: bench.RunTooSmall}}, "class 1 was too small: run run ended as too small there"},
		"failed there": {diagnose.Size{Class: 4}, []diagnose.Run{{ID: "run", SizeClass: 1, Outcome: bench.RunFailure}}, "class 1 was too small: run run ended as failure there"},
		"only lost there": {
			diagnose.Size{Class: 4, Pinned: "project go"}, []diagnose.Run{{ID: "run", SizeClass: 1, Outcome: bench.RunLost}}, "it was pinned by project go",
		},
		"only lost": {
			diagnose.Size{Class: 4}, []diagnose.Run{{ID: "run", SizeClass: 1, Outcome: bench.RunLost}, {ID: "other", SizeClass: 4, Outcome: bench.RunFailure}},
			"it is the class on which its results are compared, or the largest that can run it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := diagnose.Job(changed(func(x *diagnose.JobCase) { x.Size, x.Runs = c.size, c.runs }), now)
			require.Equal(t, c.want, e.Size.Why)
			require.Equal(t, c.size.Class, e.Size.Class)
			require.Equal(t, !c.size.Selected.IsZero(), e.Size.SelectedAt != nil)
		})
	}
}

// What a sample says depends on what is acceptable today; classes without a
// collector keep what was learned of them.
func TestAShapeIsExplained(t *testing.T) {
	t.Parallel()
	sample := func(outcome sizeclass.Outcome, seconds int, pending bool) sizeclass.Sample {
		return sizeclass.Sample{Outcome: outcome, Duration: time.Duration(seconds) * time.Second, Pending: pending}
	}
	stats := sizeclass.Statistics{
		Runs: 7, FailedOnLargest: now, Spent: sizeclass.Spent{Total: 100, Probes: 9}, Counts: sizeclass.Counts{Probes: 2},
		Marks: []sizeclass.Mark{{ID: "aaaaaaaaaaaaaaaa", Class: 2, Expires: now}},
		Classes: []sizeclass.History{
			{Class: 1, Samples: []sizeclass.Sample{
				sample(sizeclass.Succeeded, 20, false), sample(sizeclass.Succeeded, 21, false), sample(sizeclass.TimedOut, 19, false),
				sample(sizeclass.TimedOut, 30, false), sample(sizeclass.OutOfMemory, 1, false), sample(sizeclass.Failed, 1, false), sample(sizeclass.Failed, 1, true),
				{Outcome: sizeclass.TimedOut, Duration: 9 * time.Second, OwnLimit: true},
			}},
			{Class: 3, Samples: []sizeclass.Sample{sample(sizeclass.Succeeded, 1000, false)}},
			{Class: 8, Samples: []sizeclass.Sample{sample(sizeclass.Succeeded, 500, false)}},
		},
	}
	selection := &sizeclass.Selection{
		Class: 8, Timeout: time.Minute, Why: "because",
		Choices: []sizeclass.Choice{{Class: 1, Acceptable: 20 * time.Second}, {Class: 2, Probability: 0.25}, {Class: 8, Probability: 0.75, Acceptable: time.Second}},
	}
	e := diagnose.Shape(stats, selection)
	require.Equal(t, diagnose.NextSize{Class: 8, TimeoutSeconds: 60, Why: "because"}, e.Next)
	require.Equal(t, []diagnose.OutstandingProbe{{Attempt: "aaaaaaaaaaaaaaaa", Class: 2, ExpiresAt: now}}, e.Outstanding)
	require.Equal(t, now, *e.FailedOnLargest)
	require.Equal(t, []float64{100, 9}, []float64{e.CoreSeconds, e.ProbeCoreSeconds})
	var classes []bench.SizeClass
	var available []bool
	for _, c := range e.Classes {
		classes, available = append(classes, c.Class), append(available, c.Available)
	}
	require.Equal(t, []bench.SizeClass{1, 2, 3, 8}, classes)
	require.Equal(t, []bool{true, true, false, true}, available)
	var says []string
	for _, s := range e.Classes[0].Samples {
		says = append(says, s.Meaning)
	}
	require.Equal(t, []string{
		"good enough", "large enough, but slower than acceptable", "nothing: it was stopped within the time that is acceptable today", "too small",
		"too small", "too small", "nothing yet: a larger class has to show whether the job fails by itself",
		"too small: it reached the job's own limit, and did not on a larger class",
	}, says)
	require.Empty(t, e.Classes[1].Samples)
	require.Equal(t, "large enough", e.Classes[2].Samples[0].Meaning)
	require.Equal(t, "good enough", e.Classes[3].Samples[0].Meaning, "nothing is faster than the largest")

	nobody := diagnose.Shape(stats, nil)
	require.Equal(t, diagnose.NextSize{Why: "no collector is registered that could run such jobs"}, nobody.Next)
	require.Len(t, nobody.Classes, 3)
	require.Empty(t, diagnose.Shape(sizeclass.Statistics{}, nil).Classes)
}
