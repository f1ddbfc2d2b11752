//go:build !linux && !darwin

package jobrun

func freeBytes(string) (bytes uint64, known bool) { return 0, false }
