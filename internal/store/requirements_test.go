package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/placement"
	"github.com/benchloom/benchloom/internal/plan"
	"github.com/benchloom/benchloom/internal/store"
)

// Planning, the fence, failover, replacement, sizing and the explanation demand the same
// of collectors. The table says where size class or pool matter as well.
func TestRequirementsAreTheSameEverywhere(t *testing.T) {
	t.Parallel()
	needs := bench.Constraints{Devices: []string{"gpu"}, Labels: map[string]string{"quiet": "yes"}}
	for name, c := range map[string]struct {
		change func(*bench.Job)
		want   placement.Requirements
		alike  bool // it may wait elsewhere in its pool, or in any
	}{
		"a suite's job": {
			func(*bench.Job) {},
			placement.Requirements{Target: target}, false,
		},
		"one with a smallest class": {
			func(j *bench.Job) { j.MinClass = small.SizeClass },
			placement.Requirements{Target: target, MinSize: small.SizeClass}, false,
		},
		"one with constraints": {
			func(j *bench.Job) { j.Constraints = &needs },
			placement.Requirements{Target: target, Constraints: needs}, true,
		},
		"a command": {
			func(j *bench.Job) {
				j.Work = newCommand(bench.Request{}, 0, "true").Work
			},
			placement.Requirements{Target: target, AcrossPools: true}, true,
		},
		"a command with constraints": {
			func(j *bench.Job) {
				j.Work, j.Constraints = newCommand(bench.Request{}, 0, "true").Work, &needs
			},
			placement.Requirements{Target: target, AcrossPools: true, Constraints: needs}, true,
		},
		"a build": {
			func(j *bench.Job) {
				j.Constraints = &needs
				j.Work = bench.Work{
					Kind: bench.KindBuild, Tag: j.Tag, Target: target, TestCases: []bench.TestCase{}, Build: &bench.BuildSpec{Tag: j.Tag, Target: target, Key: "b0"},
				}
			},
			placement.Requirements{Target: target, Constraints: needs}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRecord(t)
			one := collector("one")
			one.Devices, one.Labels = needs.Devices, needs.Labels
			one, err := r.RegisterCollector(t.Context(), one, offline)
			require.NoError(t, err)
			request := r.inProgress(release(t, "v1"))
			job := newJob(request, "gin")
			c.change(&job)
			r.expand(request, job)

			stored := r.job(job.Key)
			require.Equal(t, c.want, plan.NeedsOf(stored).Requirements(), "planning and the explanation")
			sized, err := r.SizingOf(t.Context(), job.Key)
			require.NoError(t, err)
			require.Equal(t, c.want, sized.Requirements(), "sizing")

			r.silent("one", time.Minute)
			stranded, err := r.StrandedJobs(t.Context())
			require.NoError(t, err)
			require.Len(t, stranded, 1)
			require.Equal(t, c.want, stranded[0].Requirements(), "failover")

			alike, err := r.WaitingGroups(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.alike, len(alike) > 0)
			pool := small.Name
			if c.want.AcrossPools {
				pool = ""
			}
			for _, group := range alike {
				require.Equal(t, c.want.On(small.SizeClass).In(pool), group.Requirements(), "replacement")
			}

			// Other collectors may not begin it; those that meet all requirements may.
			two, err := r.RegisterCollector(t.Context(), collector("two"), offline)
			require.NoError(t, err)
			start := r.runStart(runID(job, 1), two)
			if c.want.Constraints.Hard() {
				_, err = r.StartRun(t.Context(), start)
				require.ErrorIs(t, err, store.ErrUnfit, "the fence")
				require.ErrorContains(t, err, "it has no device gpu, it has no label quiet")
				start.Collector, start.Epoch = one.Name, one.Epoch
			}
			_, err = r.StartRun(t.Context(), start)
			require.NoError(t, err)
		})
	}
}
