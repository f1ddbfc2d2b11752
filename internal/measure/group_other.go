//go:build !linux

package measure

// Groups is empty: this system has no control groups.
func (s *Sandbox) Groups() map[string]string { return nil }
