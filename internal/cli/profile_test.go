package cli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/profiler"
)

// sampledRun has two attempts: one that was cut off, and one that ended.
func sampledRun() cli.RunMetrics {
	batch := func(attempt string, series profiler.Series, sequence int, values ...float64) profiler.Batch {
		b := profiler.Batch{Series: series, Unit: series.Unit(), Attempt: attempt, Host: "m1", Sequence: sequence, Values: values}
		for i := range values {
			b.Batches = append(b.Batches, 1)
			b.Times = append(b.Times, now.Add(time.Duration(100*sequence+i)*profiler.Interval))
		}
		return b
	}
	used := profiler.Series{Scope: profiler.ScopeJob, Name: string(profiler.CPUUsed)}
	free := profiler.Series{Scope: profiler.ScopeMachine, Name: string(profiler.MemoryFree)}
	return cli.RunMetrics{
		Profile: apiclient.Profile{Run: "aaaaaaaaaaaaaaaa-00000001", State: apiclient.ProfileFinished, Over: true, Attempts: []apiclient.ProfileAttempt{
			{Attempt: "a1", Host: "m1", Partial: true, DroppedTotal: 7},
			{Attempt: "a2\x1b[2J", Host: "m1", Absent: []profiler.Absence{{Scope: profiler.ScopeMachine, Metric: profiler.CPUFrequency, Reason: "a virtual machine"}}},
		}},
		Batches: []profiler.Batch{
			batch("a1", used, 0, 1), batch("a2\x1b[2J", used, 0, 0, 0.5, 1, 2), batch("a2\x1b[2J", free, 0, 1<<30, 1<<30), batch("a2\x1b[2J", used, 1, 2, 1),
		},
		Summaries: []apiclient.ProfileSummary{{Attempt: "a2\x1b[2J", Summary: profiler.Summary{Phases: []profiler.PhaseSummary{{Name: "fetch", Count: 2, TotalSeconds: 3.25, LongestSeconds: 2}}}}},
	}
}

func TestMetricsAreDrawnInATerminal(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, cli.Metrics(&out, sampledRun(), cli.View{Now: now}))
	require.Equal(t, `attempt a1 on m1, partial: it was cut off; 7 values were lost
series         least    mean    most  over time
job/cpu_used  1 CPUs  1 CPUs  1 CPUs  ▁

attempt a2�[2J on m1
`, strings.SplitAfter(out.String(), "on m1\n")[0])
	out.Reset()
	require.NoError(t, cli.Metrics(&out, cli.RunMetrics{Profile: apiclient.Profile{Over: true}}, cli.View{}))
	require.Equal(t, "Nothing was sampled during this run.\n", out.String())
	out.Reset()
	require.NoError(t, cli.Metrics(&out, cli.RunMetrics{}, cli.View{}))
	require.Equal(t, "Nothing has been sampled yet.\n", out.String())
}

func TestMetricsAreWrittenAsCSV(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, cli.WriteMetricsCSV(&out, sampledRun()))
	lines := strings.Split(out.String(), "\n")
	require.Equal(t, "attempt,host,scope,name,device,unit,batch_index,time,value", lines[0])
	require.Equal(t, "a1,m1,job,cpu_used,,CPUs,1,2026-03-04T15:00:00Z,1", lines[1])
	require.Len(t, lines, 1+9+1)
}
