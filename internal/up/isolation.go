package up

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/benchloom/benchloom/internal/accounts"
)

// isolationOff is the value of Isolation that switches it off.
const isolationOff = "off"

// accountFile holds the name of a collector's last account, in its state directory.
const accountFile = "account"

// lease reserves an account for each collector's benchmarks, and makes those that are missing. Without root there are none: all
// processes belong to one user.
func (s *stack) lease(ctx context.Context) error {
	if s.Isolation == isolationOff || os.Geteuid() != 0 || accounts.Switchable() != nil {
		return nil //nolint:nilerr // the collectors say so
	}
	prefer := make([]string, len(s.layout.Slots))
	for i, slot := range s.layout.Slots {
		text, err := os.ReadFile(s.state.Path("collectors", slot.Name, accountFile))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("reading the account of collector %s: %w", slot.Name, err)
		}
		prefer[i] = strings.TrimSpace(string(text))
	}
	leases, made, err := s.Accounts.Reserve(ctx, len(prefer), prefer)
	if err != nil {
		return fmt.Errorf("benchmarks must not run as root: %w; or let them do all that root may with --isolation=off", err)
	}
	s.leases = leases
	if len(made) > 0 {
		names := make([]string, len(made))
		for i, a := range made {
			names[i] = a.Name
		}
		s.Log.InfoContext(ctx, "made accounts for benchmarks, users without rights", "accounts", strings.Join(names, ", "))
	}
	// The accounts pass through to their own directories, and list nothing.
	if err := os.Chmod(s.state.Dir(), 0o711); err != nil {
		return fmt.Errorf("opening the state directory to accounts of benchmarks: %w", err)
	}
	return nil
}

func (s *stack) release() error {
	var errs []error
	for _, l := range s.leases {
		errs = append(errs, l.Release())
	}
	return errors.Join(errs...)
}

// isolated returns the flags that keep the benchmarks of a collector apart.
func (s *stack) isolated(slot int) []string {
	argv := []string{"--isolation", s.Isolation, "--hide", s.state.Dir()}
	if len(s.leases) > 0 {
		argv = append(argv, "--account", s.leases[slot].Name)
	}
	if s.DiskReserve != "" {
		argv = append(argv, "--disk-reserve", s.DiskReserve)
	}
	return argv
}
