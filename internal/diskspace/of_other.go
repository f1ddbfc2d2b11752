//go:build !linux && !darwin

package diskspace

import "errors"

// Of is not supported on this system.
func Of(string) (Space, error) { return Space{}, errors.ErrUnsupported }
