//go:build !linux

package measure

// InitMain must be called at the very beginning of main in programs that isolate commands. On this system it does nothing, because
// nothing is isolated.
func InitMain() {}
