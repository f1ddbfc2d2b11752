package profiler_test

import (
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/benchloom/benchloom/internal/profiler"
)

// An alarm rings after its time and not before, again and again, until it is stopped.
func TestAnAlarmRingsUntilItIsStopped(t *testing.T) {
	t.Parallel()
	for name, alarm := range map[string]profiler.Alarm{"of the kernel": profiler.NewAlarm(), "of Go": profiler.NewTimerAlarm()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer alarm.Close()
			for _, d := range []time.Duration{0, 2 * time.Millisecond, 30 * time.Millisecond} {
				begun := time.Now()
				require.True(t, alarm.Wait(d))
				require.GreaterOrEqual(t, time.Since(begun), d)
			}
			rang := make(chan bool)
			go func() { rang <- alarm.Wait(time.Hour) }()
			alarm.Stop()
			require.False(t, <-rang, "stopped, before it waits or while it does")
			alarm.Stop()
			require.False(t, alarm.Wait(0), "and from then on")
		})
	}
}

func TestOnLinuxTheKernelRings(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		return
	}
	alarm := profiler.NewAlarm()
	defer alarm.Close()
	require.NotEqual(t, reflect.TypeOf(profiler.NewTimerAlarm()), reflect.TypeOf(alarm))
}
