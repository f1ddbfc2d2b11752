//go:build unix

package machine

import (
	"time"

	"golang.org/x/sys/unix"
)

// selfTime returns the CPU time of this process; 0 if it is unknown.
func selfTime() time.Duration {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
