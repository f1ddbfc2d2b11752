package cli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/cli"
	"github.com/benchloom/benchloom/internal/machine"
	"github.com/benchloom/benchloom/internal/measure"
	"github.com/benchloom/benchloom/internal/probe"
	"github.com/benchloom/benchloom/internal/stats/noise"
	"github.com/benchloom/benchloom/internal/tune"
)

func TestADiagnosisEndsWithReasonsAndRemedies(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	d := cli.Diagnosis{
		Report: tune.Report{MeasuringCPUs: measure.CPUList{2, 3}, OtherCPUs: measure.CPUList{0}, Findings: []tune.Finding{
			{Name: "turbo", Grade: tune.Improvable, Value: "on", Reason: "it varies", Remedy: "switch it off", Tunable: true},
			{Name: "swap", Grade: tune.Good, Value: "off"},
			{Name: "pressure readings", Grade: tune.Unavailable, Reason: "no PSI"},
		}},
		Tuned: &tune.Tuned{At: now.Add(-time.Hour), Settings: 7, Complete: true},
	}
	var out strings.Builder
	require.NoError(t, cli.WriteDiagnosis(&out, d, cli.View{Now: now}))
	require.Equal(t, `Benchmarks run on CPUs 2-3, other work on CPU 0.
Tuned 1h00m ago: 7 settings; 'benchloom doctor --restore' puts the originals back.

setting            state               value
turbo              could be better     on
swap               good                off
pressure readings  not available here

Could be better:
* turbo: it varies. Remedy: switch it off.

Not available here:
  pressure readings: no PSI.

* 'benchloom doctor --tune' changes it.
`, out.String())
}

func TestNoiseIsShownWithWhatCausedIt(t *testing.T) {
	t.Parallel()
	session, side := 1.24, 0.31
	measured := probe.Noise{
		Elapsed: 118 * time.Second, Comparisons: 5, Pairs: 230, Iterations: 460, Disturbed: 23,
		Causes: []probe.Cause{{Cause: machine.ForeignCPU, Iterations: 20}, {Cause: machine.StolenCPU, Iterations: 4}},
		Metrics: []probe.Metric{
			{Name: bench.WallTime, Spread: 0.0123, SessionOffset: &session, SideOffset: &side, Labels: []noise.Label{noise.Skewed, noise.Wandering}, Sees: 0.0141, NoDifference: 4, Undecided: 1},
			{Name: bench.Instructions, Spread: 0.00013, Sees: 0.002, NoDifference: 5},
		},
		NotRead: map[machine.Quantity]string{machine.Frequency: "not shown"},
	}
	show := func() string {
		var out strings.Builder
		require.NoError(t, cli.WriteNoise(&out, cli.Diagnosis{Noise: &measured}, cli.View{}))
		return out.String()
	}
	require.Equal(t, `
Noise: a program was compared with itself 5 times, 230 pairs in 1m58s:

metric           spread  session offset  side offset  would have seen  verdicts                      noise
wall-time         1.2 %             1.2          0.3          ≥ 1.4 %  4 no difference, 1 undecided  skewed, wandering
instructions:u  0.013 %         unknown      unknown          ≥ 0.2 %  5 no difference

spread: within a session; session offset, side offset: between sessions, and between the two sides of one, in
units of the spread; would have seen: the smallest change, median of the comparisons

Disturbed: 23 of 460 iterations (5 %), by foreign CPU time (20), steal (4).
Not read: frequency: not shown.
`, show())

	measured.Disturbed, measured.Metrics[0].Changed, measured.Metrics[0].Sees = 200, 1, 0
	require.Contains(t, show(), "1 comparison called the same program changed: do not trust this machine")
	require.Contains(t, show(), "With that much, values enter no model of noise")
	require.Contains(t, show(), "nothing")
	measured.Disturbed = 0
	require.Contains(t, show(), "Disturbed: none of 460 iterations.")

	var out strings.Builder
	require.NoError(t, cli.WriteNoise(&out, cli.Diagnosis{NotMeasured: "no CPU 7"}, cli.View{}))
	require.Equal(t, "\nNoise: not measured: no CPU 7\n", out.String())
}

func TestWhatTuningChangedAndWhatItCouldNot(t *testing.T) {
	t.Parallel()
	o := tune.Outcome{
		Interrupted: true,
		Restored:    []tune.Changed{{Name: "swap", Path: "/proc/swappiness", From: "1", To: "60"}},
		Set: []tune.Changed{
			{Name: "frequency governor", Path: "/policy0", From: "powersave", To: "performance"},
			{Name: "frequency governor", Path: "/policy1", From: "powersave", To: "performance"},
			{Name: "frequency governor", Path: "/policy2", From: "ondemand", To: "performance"},
		},
		NotSet: []tune.Refused{
			{Name: "interrupts", Path: "/irq/1", Wanted: "0", Reason: "input/output error"},
			{Name: "interrupts", Path: "/irq/2", Wanted: "0", Reason: "input/output error"},
		},
		NotRestored: []tune.Refused{{Name: "turbo", Path: "/no_turbo", Wanted: "0", Reason: "operation not permitted"}},
	}
	var out strings.Builder
	require.NoError(t, cli.WriteTuning(&out, o, cli.View{}))
	require.Equal(t, `An earlier tuning or restoring had been cut short.
Restored:
  setting  from  to  files
  swap     1     60  /proc/swappiness
Set:
  setting             from       to           files
  frequency governor  powersave  performance  /policy0 and 1 more
  frequency governor  ondemand   performance  /policy2
Could not be set:
  interrupts to 0: input/output error (/irq/1 and 1 more)
Could not be restored:
  turbo to 0: operation not permitted (/no_turbo)
`, out.String())
	out.Reset()
	require.NoError(t, cli.WriteTuning(&out, tune.Outcome{Restarted: true}, cli.View{}))
	require.Equal(t, "The machine has restarted since it was tuned, which restored its settings.\n", out.String())
}
