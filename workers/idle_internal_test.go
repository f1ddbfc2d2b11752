package workers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/machine"
)

// used are readings of a machine with one CPU, taken every three seconds, of
// which others use so much.
type used struct {
	times []time.Duration
	now   machine.Reading
}

func (u *used) Read() machine.Reading {
	u.now.Uptime += 3 * time.Second
	u.now.Wall = u.now.Wall.Add(3 * time.Second)
	u.now.CPUs = map[int]machine.CPUTimes{0: {Busy: u.now.CPUs[0].Busy + u.times[0]}}
	u.times = u.times[1:]
	return u.now
}

func TestACollectorThatIsSetAsideTellsWhetherItsMachineIsQuiet(t *testing.T) {
	t.Parallel()
	readings := &used{times: []time.Duration{time.Second, 10 * time.Millisecond, 2 * time.Second, time.Second, 0}}
	report := idleReport{readings: readings}
	require.Nil(t, report.next(true), "nobody asked")
	require.Len(t, readings.times, 5)
	report.asked = true
	require.Nil(t, report.next(true), "the first reading is a beginning")
	require.Empty(t, *report.next(true))
	require.Equal(t, "foreign CPU time: 67 % of the job's CPUs", *report.next(true))
	require.Nil(t, report.next(false), "its own last job is no disturbance")
	require.Nil(t, report.next(true))
	require.Empty(t, *report.next(true))
	report.readings = nil
	require.Nil(t, report.next(true), "a machine that cannot be read")
}
