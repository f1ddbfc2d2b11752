package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/plan"
)

// profile plans a request for a profile of gin.
func profile(t *testing.T, profiler string, change func(*plan.Facts)) plan.Facts {
	t.Helper()
	return commit(t, func(f *plan.Facts) {
		f.Request.Type, f.Request.Origin, f.Request.Profiler = bench.AdHoc, bench.Origin{}, profiler
		f.Request.Selection = bench.Selection{Benchmarks: []string{"gin"}}
		f.Fleet = append(plan.Fleet{}, f.Fleet...)
		if change != nil {
			change(f)
		}
	})
}

func withPerf(f *plan.Facts) {
	for i := range f.Fleet {
		f.Fleet[i].Devices = []string{"program:perf"}
	}
}

func TestAProfileOfEachArtifactIsAJobOfItsOwn(t *testing.T) {
	t.Parallel()
	jobs := own(t, profile(t, "perf", func(f *plan.Facts) { withPerf(f); f.Request.Versus = "c1" }))
	require.Len(t, jobs, 2)
	for i, tag := range []string{"c2", "c1"} {
		require.Equal(t, []any{bench.KindProfile, tag, "", "perf", []bench.TestCase{gin}}, []any{jobs[i].Kind, jobs[i].Tag, jobs[i].Versus, jobs[i].Profiler, jobs[i].TestCases})
		require.Empty(t, jobs[i].Shape, "nothing is learned from it")
		require.Equal(t, []string{"program:perf"}, jobs[i].Constraints.Devices)
	}
	require.NotEqual(t, jobs[0].Key, jobs[1].Key)
	require.Equal(t, jobs, own(t, profile(t, "perf", func(f *plan.Facts) { withPerf(f); f.Request.Versus = "c1" })), "twice the same")
}

func TestAProfileIsRefusedWithWhatToDo(t *testing.T) {
	t.Parallel()
	_, err := profile(t, "perf", nil).Check()
	require.ErrorContains(t, err, "profiler perf needs the program perf, which no collector for "+string(linux)+" has: install the package linux-perf")
	require.NotNil(t, plan.Unplaceable(err))
	_, err = profile(t, "perf", withPerf).Check()
	require.NoError(t, err)
	_, err = profile(t, "vtune", withPerf).Check()
	require.ErrorIs(t, err, bench.ErrInvalid)
	require.ErrorContains(t, err, `unknown profiler "vtune" of gin; it has cachegrind, callgrind, dhat, perf`)
}
