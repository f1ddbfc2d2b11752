//go:build !linux && !darwin

package measure

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// Sandbox is not supported on this system.
type Sandbox struct{}

// NewSandbox returns an error that wraps [errors.ErrUnsupported].
func NewSandbox(SandboxConfig) (*Sandbox, error) { return nil, unsupported() }

func unsupported() error {
	return fmt.Errorf("running measured commands is not supported on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Name is empty.
func (s *Sandbox) Name() string { return "" }

// WorkDir is empty.
func (s *Sandbox) WorkDir() string { return "" }

// TempDir is empty.
func (s *Sandbox) TempDir() string { return "" }

// Unenforced is empty.
func (s *Sandbox) Unenforced() []Unenforced { return nil }

// Sweep returns an error that wraps [errors.ErrUnsupported].
func (s *Sandbox) Sweep(context.Context) (int, error) { return 0, unsupported() }

// Clean returns an error that wraps [errors.ErrUnsupported].
func (s *Sandbox) Clean(context.Context) error { return unsupported() }

// Show returns an error that wraps [errors.ErrUnsupported].
func (s *Sandbox) Show(Shown) error { return unsupported() }

// Run returns an error that wraps [errors.ErrUnsupported].
func (s *Sandbox) Run(context.Context, Command) (Sample, error) {
	return Sample{Status: StatusNotStarted, ExitCode: -1}, unsupported()
}

// Stuck is nil.
func (s *Sandbox) Stuck() error { return nil }

// Close does nothing.
func (s *Sandbox) Close() error { return nil }
