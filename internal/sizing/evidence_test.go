package sizing_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/bench"
)

// The CPU time that a run used bounds how long it takes with fewer CPUs, by those that the
// collectors have: what the classes are called says nothing.
func TestAClassWithAsManyCPUsIsTried(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cpus map[bench.SizeClass]int
		want bench.SizeClass
	}{
		"four times the cores": {map[bench.SizeClass]int{1: 1, 4: 4}, 4},
		"as many":              {map[bench.SizeClass]int{1: 4, 4: 4}, 1},
		"class 1 does not say": {map[bench.SizeClass]int{4: 4}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, `{}`, 1, 4)
			for class, cpus := range c.cpus {
				b.execute(`update collector_config set cpus = $2 where size_class = $1`, class, cpus)
			}
			first := b.submit("make")
			b.execute(`update job_queue set selected_at = now() where key = $1`, first) // somebody wanted it there
			b.run(first, 1, bench.RunSuccess, 60)
			b.execute(`update job_run set cpu_seconds = 240`)
			b.end(first)
			next := b.submit("make")
			b.place(4)
			require.Equal(t, c.want, b.at(next).SizeClass)
		})
	}
}

// A command reaches its own time limit on class 1, long before the one of the class, and
// does not on class 4: it is not tried on class 1 again.
func TestClassWithOwnTimeoutsIsGivenUp(t *testing.T) {
	t.Parallel()
	b := setup(t, `{"size": {"minimum": "1m"}}`, 1, 4)
	first := b.submit("make")
	b.place(4)
	require.Equal(t, 60.0, b.at(first).TimeoutSeconds)
	b.run(first, 1, bench.RunTimeout, 20)
	b.Learn(t.Context(), first)
	b.escalate(first)
	b.run(first, 2, bench.RunSuccess, 15)
	b.end(first)
	next := b.submit("make")
	b.place(4)
	require.Equal(t, bench.SizeClass(4), b.at(next).SizeClass)
}
