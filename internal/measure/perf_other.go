//go:build !linux

package measure

import (
	"errors"
	"fmt"
	"runtime"
)

// ProbeCounters reports every counter as unsupported on this system.
func ProbeCounters() CounterSupport {
	support := CounterSupport{}
	for _, counter := range AllCounters() {
		support[counter] = fmt.Errorf("performance counters are not supported on %s: %w", runtime.GOOS, errors.ErrUnsupported)
	}
	return support
}
