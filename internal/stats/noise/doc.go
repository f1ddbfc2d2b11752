// Package noise models the noise of a series from its sessions.
//
// The package is pure. It knows nothing of commits, requests or the record.
package noise
