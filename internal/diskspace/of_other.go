//go:build !linux && !darwin

package diskspace

import (
	"context"
	"errors"
)

// Of is not supported on this system.
func Of(string) (Space, error) { return Space{}, errors.ErrUnsupported }

// Used is not supported on this system.
func Used(context.Context, string) (int64, error) { return 0, errors.ErrUnsupported }
