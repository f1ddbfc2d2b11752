package results_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
	"github.com/benchloom/benchloom/internal/results"
	"github.com/benchloom/benchloom/internal/store"
)

func origin(tc bench.TestCase, collector string, where bench.Surrounding, iterations int) store.Origin {
	at := time.Date(2026, 5, 1, 12, iterations, 0, 0, time.UTC)
	return store.Origin{TestCase: tc, Surrounding: where, Pool: "main", Collector: collector, Iterations: iterations, First: at, Last: at.Add(time.Minute)}
}

func TestPartsSumUpWhatWasMeasuredAlike(t *testing.T) {
	t.Parallel()
	require.Empty(t, results.Parts(nil))
	turns := origin(gin, "c2", alone(2, "cpu0"), 14)
	turns.InTurns = true
	parts := results.Parts([]store.Origin{turns, origin(gin, "c2", alone(1, "cpu0"), 3), origin(gin, "c3", alone(2, "cpu0"), 5), origin(hugo, "c1", alone(2, "cpu0"), 3)})
	require.Len(t, parts, 3)
	most := parts[0]
	require.Equal(t, []string{"c1", "c3"}, most.Collectors)
	require.Equal(t, []int{2, 3, 5}, []int{most.TestCases, most.Fewest, most.Most})
	require.Equal(t, "12:03 12:06", most.First.Format("15:04")+" "+most.Last.Format("15:04"))
	require.Equal(t, bench.SizeClass(1), parts[1].SizeClass)
	require.True(t, parts[2].InTurns, "alone comes first")
}

func TestDifferencesInMeasuringAreNamed(t *testing.T) {
	t.Parallel()
	plain := []store.Origin{origin(gin, "c1", alone(2, "cpu0"), 5)}
	turns := origin(gin, "c9", alone(4, "cpu9"), 14)
	turns.InTurns = true
	plain[0].Segment = "6.1|performance|||||"
	updated := origin(gin, "c1", alone(2, "cpu0"), 5)
	updated.Segment = "6.8||||||"
	for name, c := range map[string]struct {
		b    []store.Origin
		want []string
	}{
		"alike":             {plain, nil},
		"nothing measured":  {nil, nil},
		"only in turns":     {[]store.Origin{turns}, nil},
		"another collector": {[]store.Origin{origin(gin, "c2", alone(2, "cpu0"), 5)}, []string{"collectors: c2 instead of c1"}},
		"fewer iterations":  {[]store.Origin{origin(gin, "c1", alone(2, "cpu0"), 3)}, []string{"iterations: 3 instead of 5"}},
		"another machine": {
			[]store.Origin{origin(gin, "c1", alone(1, "cpu1"), 5)},
			[]string{"size class: 1 instead of 2", "hardware: cpu1 instead of cpu0"},
		},
		"another kernel": {[]store.Origin{updated}, []string{"another kernel: 6.1 and 6.8"}},
		"beside others":  {[]store.Origin{origin(gin, "c1", coLocated(2, "cpu0"), 5)}, []string{"other jobs on the machine: some instead of none"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, results.Differences(results.Parts(plain), results.Parts(c.b)))
		})
	}
}
