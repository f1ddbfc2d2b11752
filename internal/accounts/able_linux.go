package accounts

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Switchable returns nil if this process, which is root, may run others as an account and give files to it; else the reason.
func Switchable() error {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return fmt.Errorf("reading the capabilities of this process: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		value, ok := strings.CutPrefix(line, "CapEff:")
		if !ok {
			continue
		}
		held, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		if err != nil {
			return fmt.Errorf("reading the capabilities of this process: %w", err)
		}
		for _, c := range []struct {
			bit  int
			name string
		}{
			{unix.CAP_SETUID, "CAP_SETUID"}, {unix.CAP_SETGID, "CAP_SETGID"}, {unix.CAP_CHOWN, "CAP_CHOWN"}, {unix.CAP_KILL, "CAP_KILL"},
			{unix.CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"}, {unix.CAP_FOWNER, "CAP_FOWNER"},
		} {
			if held&(1<<c.bit) == 0 {
				return fmt.Errorf("this process is root without the capability %s; give it to the container, or run the collector as an ordinary user", c.name)
			}
		}
	}
	return nil
}
