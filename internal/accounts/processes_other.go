//go:build !linux

package accounts

import "context"

// EndProcesses does nothing: the processes of an account are not known on this system.
func (l *Lease) EndProcesses(context.Context) (killed int, err error) { return 0, nil }
