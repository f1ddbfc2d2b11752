//go:build !linux

package accounts

// Switchable returns nil: root may run other processes as an account.
func Switchable() error { return nil }
