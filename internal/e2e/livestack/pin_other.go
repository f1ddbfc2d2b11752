//go:build !linux

package livestack

import (
	"fmt"
	"runtime"

	"github.com/benchloom/benchloom/internal/measure"
)

func OnCPUs(cpus measure.CPUList, _ func() error) error {
	return fmt.Errorf("pinning to CPUs %s is not supported on %s", cpus, runtime.GOOS)
}
