//go:build !linux

package measure

// Avoid does nothing: this system binds no thread to CPUs.
func Avoid(CPUList) (bool, error) { return false, nil }
