//go:build !linux && !darwin

package diskspace

import (
	"context"
	"errors"
	"time"
)

// Of is not supported on this system.
func Of(string) (Space, error) { return Space{}, errors.ErrUnsupported }

// Measure is not supported on this system.
func Measure(context.Context, string, time.Time) (Usage, error) {
	return Usage{}, errors.ErrUnsupported
}
