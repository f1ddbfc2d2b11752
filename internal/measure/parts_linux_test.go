package measure_test

import (
	"encoding/binary"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/benchloom/benchloom/internal/measure"
)

func TestControlGroupsAreFoundInAllLayouts(t *testing.T) {
	t.Parallel()
	for layout, want := range map[string][][]string{
		"hybrid": {
			{"/sys/fs/cgroup/unified", "system.slice/bench.service"},
			{"/sys/fs/cgroup/memory", "system.slice/bench.service", "memory"},
			{"/sys/fs/cgroup/cpuset", ".", "cpuset"},
			{"/sys/fs/cgroup/pids", "system.slice/bench.service", "pids"},
		},
		"unified": {{"/sys/fs/cgroup", "system.slice/bench.service/collector"}},
		"container": {
			{"/sys/fs/cgroup/memory", "sub", "memory"},
			{"/sys/fs/cgroup/my pids", "outside: the own control group /elsewhere is not below the mounted /docker/abc"},
		},
	} {
		got, err := measure.Hierarchies("testdata/" + layout)
		require.NoError(t, err)
		require.Equal(t, want, got, layout)
	}
	_, err := measure.Hierarchies("testdata/nowhere")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestProcessesAreReadWhateverTheirName(t *testing.T) {
	t.Parallel()
	for stat, dead := range map[string]bool{
		"4720 (true) Z 4698 4720 4721 0 -1 4 50 0 1 0 0 0 0 0 20 0 1 0 123328 0 0":      true,
		"4720 (a) R 1) Z) S 4698 4720 4721 0 -1 4 50 0 1 0 0 0 0 0 20 0 1 0 123328 0 0": false,
		// The main thread has ended, others run.
		"4720 (go) Z 4698 4720 4721 0 -1 4 50 0 1 0 0 0 0 0 20 0 3 0 123328 0 0": false,
	} {
		p, ok := measure.ParseStat(stat)
		require.True(t, ok, stat)
		require.Equal(t, dead, p.IsDead(), stat)
		pid, parent, session, start := p.Identity()
		require.Equal(t, []int{4720, 4698, 4721}, []int{pid, parent, session}, stat)
		require.Equal(t, uint64(123328), start, stat)
	}
	for _, stat := range []string{"", "1 (x", "1 x) S 1 1", "1 (x) S 1 1 1", ") (", "x (x) S 1 1 1 0 -1 4 50 0 1 0 0 0 0 0 20 0 1 0 12 0"} {
		_, ok := measure.ParseStat(stat)
		require.False(t, ok, stat)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("4720 (true) Z 4698 4720 4721 0 -1 4 50 0 1 0 0 0 0 0 20 0 1 0 123328 0 0")
	f.Add("1 ()) S")
	f.Fuzz(func(t *testing.T, stat string) {
		if p, ok := measure.ParseStat(stat); !ok {
			require.Zero(t, p)
		}
	})
}

func TestWhyACounterIsMissingSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want []string
	}{
		{measure.ExplainHardware(unix.EACCES, "testdata/paranoid"),
			[]string{"/proc/sys/kernel/perf_event_paranoid is 4", "`sysctl kernel.perf_event_paranoid=2`"}},
		{measure.ExplainMigrations(unix.EPERM, "testdata/paranoid"), []string{"is 4", "`sysctl kernel.perf_event_paranoid=1`"}},
		{measure.ExplainHardware(unix.EPERM, "testdata/open"), []string{"although", "is 1", "seccomp"}},
		{measure.ExplainHardware(unix.EPERM, "testdata/nowhere"), []string{"perf_event_paranoid cannot be read"}},
		{measure.ExplainHardware(unix.ENOENT, "/"), []string{"no hardware counters (virtual machine?)"}},
		{measure.ExplainHardware(unix.EOPNOTSUPP, "/"), []string{"no hardware counters (virtual machine?)"}},
		{measure.ExplainHardware(unix.ENOSYS, "/"), []string{"this kernel has no performance counters"}},
		{measure.ExplainHardware(unix.EMFILE, "/"), []string{"perf_event_open: too many open files"}},
	} {
		for _, text := range c.want {
			require.ErrorContains(t, c.err, text)
		}
	}
	require.ErrorIs(t, measure.ExplainHardware(unix.EACCES, "testdata/paranoid"), unix.EACCES)
}

func TestACounterRecordIsDecoded(t *testing.T) {
	t.Parallel()
	var record [24]byte
	for i, number := range []uint64{7, 3000, 2000} {
		binary.NativeEndian.PutUint64(record[8*i:], number)
	}
	value, enabled, running := measure.DecodePerf(record)
	require.Equal(t, uint64(7), value)
	require.Equal(t, 3*time.Microsecond, enabled)
	require.Equal(t, 2*time.Microsecond, running)
}
