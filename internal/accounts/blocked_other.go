//go:build !unix

package accounts

import "errors"

// Blocked is not supported on this system.
func (Account) Blocked(string) (string, error) { return "", errors.ErrUnsupported }

// Give is not supported on this system.
func (Account) Give(string) error { return errors.ErrUnsupported }
