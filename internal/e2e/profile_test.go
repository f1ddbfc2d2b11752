package e2e_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/apiclient"
	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/profiler"
)

// profile returns everything that was recorded of a run.
func (s *stack) profile(t *testing.T, run bench.RunID) (batches []profiler.Batch, sums []apiclient.ProfileSummary) {
	t.Helper()
	for from, more := 0, true; more; {
		page, err := s.api.ProfileMetrics(t.Context(), run, from)
		require.NoError(t, err)
		batches, sums = append(batches, page.Batches...), append(sums, page.Summaries...)
		from, more = page.Next, page.More
	}
	return batches, sums
}

// requireOnce requires that each batch of each series is there once, and belongs to the run.
func requireOnce(t *testing.T, run bench.RunID, batches []profiler.Batch) {
	t.Helper()
	sequences := map[profiler.Series][]int{}
	for _, b := range batches {
		require.Equal(t, string(run), b.Attempt)
		sequences[b.Series] = append(sequences[b.Series], b.Sequence)
	}
	for series, got := range sequences {
		slices.Sort(got)
		for n := range got {
			require.Equal(t, n, got[n], "%s has batches %v", series.Name, got)
		}
	}
}

// requireSpaced requires that no two samples stand within half an interval, unless a short run has only these, and that whatever kept a sample waiting for longer than two and
// a half has been recorded: the processor was stolen, or tasks waited for it.
func requireSpaced(t *testing.T, batches []profiler.Batch) {
	t.Helper()
	samples, waiting := map[profiler.Scope][]time.Time{}, map[time.Time]bool{}
	for _, b := range batches {
		metric := profiler.Metric(b.Name)
		// The group of a job is read at once, a machine in parts.
		if b.Scope == profiler.ScopeJob || b.Scope == profiler.ScopeMachine && metric == profiler.MemoryFree {
			samples[b.Scope] = append(samples[b.Scope], b.Times...)
		}
		if metric == profiler.CPUPressure || metric == profiler.CPUSteal {
			for i, at := range b.Times {
				waiting[at] = waiting[at] || b.Values[i] > 0
			}
		}
	}
	const rounding = 2 * time.Microsecond
	for scope, times := range samples {
		slices.SortFunc(times, time.Time.Compare)
		times = slices.CompactFunc(times, time.Time.Equal)
		late, longest, shortest := 0, time.Duration(0), profiler.Interval/2
		if len(times) == 2 {
			// A group is sampled however short the run was, a machine only after a tick of its counters.
			shortest = map[profiler.Scope]time.Duration{profiler.ScopeMachine: 10 * time.Millisecond}[scope]
		}
		for i := 1; i < len(times); i++ {
			gap := times[i].Sub(times[i-1])
			require.GreaterOrEqual(t, gap, shortest-rounding, "%s: %s and %s", scope, times[i-1], times[i])
			longest = max(longest, gap)
			if gap > profiler.Interval*3/2 {
				late++
			}
			if gap > profiler.Interval*5/2 && len(waiting) > 0 {
				explained := false
				for at, is := range waiting {
					explained = explained || is && at.After(times[i-1]) && at.Before(times[i].Add(profiler.Interval))
				}
				require.True(t, explained, "%s: nothing tells why there was no sample for %s before %s", scope, gap, times[i])
			}
		}
		t.Logf("%s: %d samples, %d intervals above 150 ms, the longest %s", scope, len(times), late, longest)
	}
}

// indexes returns the batch indexes of a series of the whole machine, the whole job or a phase.
func indexes(batches []profiler.Batch, scope profiler.Scope, name string) []int {
	var all []int
	for _, b := range batches {
		if b.Scope == scope && b.Name == name && b.Device == "" {
			all = append(all, b.Batches...)
		}
	}
	return all
}

// recorded measures artifacts until the record of a run is whole, and returns that run. On a busy machine the end of a record may not
// arrive within its second.
func (s *stack) recorded(t *testing.T, shell shellSuite) (run bench.RunID, tag string, batches []profiler.Batch, sums []apiclient.ProfileSummary) {
	t.Helper()
	for n := range 8 {
		tag = fmt.Sprintf("1.%d.0", n)
		shell.artifact(t, tag, 20_000)
		r := s.submit(t, apiclient.NewRequest{Project: "shell", Type: bench.Release, Tag: tag})
		d := s.await(t, r.ID, patience)
		requireSuccess(t, d.Outcome, d)
		run = s.runsOf(t, r.ID)[0].ID
		if batches, sums = s.profile(t, run); len(sums) > 0 {
			return run, tag, batches, sums
		}
	}
	require.FailNow(t, "the record of no run is whole")
	return run, tag, batches, sums
}

// A run has its series under the numbers of its measured commands, and tells what these are. When its collector is killed, the job is
// measured again: both attempts have what they sent, and neither anything twice.
func TestLongRunsAreRecorded(t *testing.T) {
	t.Parallel()
	s := startStack(t, "--collectors", "1x1", "--share-cores")
	shell := newShellSuite(t, 2)
	s.applyProject(t, "shell", shell.dir, bench.ProjectConfig{Verify: bench.VerifyOff})
	run, tag, batches, sums := s.recorded(t, shell)
	requireOnce(t, run, batches)
	requireSpaced(t, batches)
	require.Equal(t, []int{1, 2, 3, 4, 5, 6}, indexes(batches, profiler.ScopeTiming, "measuring"))
	require.Equal(t, []int{0}, indexes(batches, profiler.ScopeTiming, "fetching"))
	// Another service on this machine may be the one that records it.
	require.True(t, slices.IsSorted(indexes(batches, profiler.ScopeMachine, string(profiler.MemoryFree))))
	shown, err := s.api.Profile(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, apiclient.ProfileFinished, shown.State)
	require.Len(t, shown.Attempts, 1)
	ofJob := slices.ContainsFunc(shown.Attempts[0].Series, func(s apiclient.ProfileSeries) bool { return s.Scope == profiler.ScopeJob })
	lacking := slices.ContainsFunc(shown.Attempts[0].Absent, func(a profiler.Absence) bool { return a.Scope == profiler.ScopeJob && a.Metric == profiler.CPUUsed })
	require.NotEqual(t, lacking, ofJob, "the job's control group is recorded, or the reason why it cannot be")
	t.Logf("%d series, %d absent", len(shown.Attempts[0].Series), len(shown.Attempts[0].Absent))
	require.Len(t, sums, 1)
	require.Len(t, sums[0].Commands, 6)
	measured := map[string]int{}
	for _, c := range sums[0].Commands {
		require.Equal(t, tag, c.Artifact)
		measured[strings.Fields(c.Case)[0]]++
	}
	require.Equal(t, map[string]int{"count-1": 3, "count-2": 3}, measured)

	// A collector is killed once some of what it has recorded has arrived.
	g := s.enrol(t, "guest")
	g.start(t, s.bin, "collector", "run")
	s.awaitState(t, "guest", bench.CollectorWaiting)
	job := s.gated(t)
	job.begun(t)
	first := s.runsOf(t, job.id)[0].ID
	require.Eventually(t, func() bool {
		batches, _ := s.profile(t, first)
		return len(batches) > 0
	}, patience, 100*time.Millisecond, "nothing arrives")
	require.NoError(t, g.command.Process.Kill())
	g.code(t)
	g.start(t, s.bin, "collector", "run")
	job.letGo(t)
	d := s.await(t, job.id, patience)
	requireSuccess(t, d.Outcome, d)

	runs := s.runsOf(t, job.id)
	require.Len(t, runs, 2)
	for n, again := range runs {
		batches, sums := s.profile(t, again.ID)
		requireOnce(t, again.ID, batches)
		requireSpaced(t, batches)
		require.LessOrEqual(t, len(sums), n, "the first one has not come to its end")
		require.Subset(t, []int{1}, indexes(batches, profiler.ScopeTiming, "measuring"))
	}
}

// gateSuite has a profiler that waits until it is let go.
const gateSuite = `name: gated
description: a profiler that waits
artifact: {provider: directory, parameters: {path: "%s/{tag}"}}
benchmarks:
  - name: one
    measure: {run: ["true"]}
    profilers:
      gate: {run: [sh, "${suite}/gate.sh", "%s", "${profile_file}"], format: folded}
`

// When its collector is killed while a profiler runs, a profile is made again, and stored once.
func TestLongAProfileIsMadeAgainWhenItsCollectorDies(t *testing.T) {
	t.Parallel()
	s := startStack(t, "--collectors", "1x1", "--share-cores")
	shell := newSuite(t)
	job := gatedJob{file: filepath.Join(t.TempDir(), "gate")}
	shell.write(t, "suite.yaml", fmt.Sprintf(gateSuite, shell.artifacts, job.file))
	shell.write(t, "gate.sh", `touch "$1.begun"; while [ ! -e "$1.go" ]; do sleep 0.05; done; echo "main;hot 3" >"$2"`)
	shell.artifact(t, "1.0.0", 1)
	s.applyProject(t, "gated", shell.dir, bench.ProjectConfig{})
	g := s.enrol(t, "guest")
	g.start(t, s.bin, "collector", "run")
	s.awaitState(t, "guest", bench.CollectorWaiting)
	r := s.submit(t, apiclient.NewRequest{
		Project: "gated", Type: bench.AdHoc, Tag: "1.0.0", Profiler: "gate", Selection: bench.Selection{Benchmarks: []string{"one"}},
		PlacementWish: apiclient.PlacementWish{SizeClass: guestClass},
	})
	job.id = r.ID
	job.begun(t)
	require.NoError(t, g.command.Process.Kill())
	g.code(t)
	g.start(t, s.bin, "collector", "run")
	job.letGo(t)
	d := s.await(t, r.ID, patience)
	requireSuccess(t, d.Outcome, d)
	runs := s.runsOf(t, r.ID)
	require.Len(t, runs, 2)
	made, err := s.api.CodeProfiles(t.Context(), "gated", apiclient.CodeProfileQuery{})
	require.NoError(t, err)
	require.Len(t, made, 1)
	require.Contains(t, []bench.RunID{runs[0].ID, runs[1].ID}, made[0].Run)
	require.EqualValues(t, 3, made[0].SampleTypes[0].Total)
}
